"""One matrix of a model with its cut: which of its weights would be set to zero."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import torch

from core.edits.pieces import matrices_in
from core.edits.spec import Zeros
from core.edits.zero import keep_mask
from core.engine.local import LocalEngine
from core.lab.prune_copy import norms_of
from core.lab.prune_records import Cut

BINS: Final = 61
"""Odd, so that 0 lies in the middle of one."""
REACH: Final = 0.998
"""The share of the weights that lie within the bins."""
_NAMES: Final[WeakKeyDictionary[LocalEngine, tuple[str, ...]]] = WeakKeyDictionary()
"""A page asks again and again, and must not wait for the model each time."""


def names_of(engine: LocalEngine) -> tuple[str, ...]:
    """The matrices of all layers, in order. Raises Fault for a model without."""
    found = _NAMES.get(engine)
    if found is None:
        with engine.borrowed() as model:
            found = _NAMES[engine] = tuple(name for name, _ in matrices_in(model))
    return found


def cut(engine: LocalEngine, name: str, zeros: Zeros) -> Generator[Cut, None, None]:
    """The weights of the matrix ``name`` by size: which stay and which go.

    Raises KeyError for another name.
    """
    names = names_of(engine)
    place = names.index(name) if name in names else -1
    if place < 0:
        raise KeyError(name)
    norms = norms_of(engine).get(name) if zeros.method == "wanda" else None
    with engine.borrowed() as model:
        weight = dict(matrices_in(model))[name].weight.float().clone()
    with torch.inference_mode():
        keep = keep_mask(weight, zeros, norms=norms, seed=place)
    values, stays = weight.cpu().numpy().ravel(), keep.cpu().numpy().ravel()
    sizes = np.abs(values)
    # A few outliers would leave no room for all the others: they are counted at the ends.
    reach = float(np.quantile(sizes, REACH)) or 1.0
    edges = np.linspace(-reach, reach, BINS + 1)
    drawn = np.clip(values, -reach, reach)
    kept, _ = np.histogram(drawn[stays], edges)
    dropped, _ = np.histogram(drawn[~stays], edges)
    yield Cut(
        name=name,
        rows=weight.shape[0],
        columns=weight.shape[1],
        edges=edges,
        kept=kept,
        dropped=dropped,
        limit=_limit(sizes[~stays]) if _by_size_alone(zeros) else None,
        smallest_kept=float(sizes[stays].min()) if stays.any() else 0.0,
        largest_dropped=float(sizes[~stays].max()) if (~stays).any() else 0.0,
    )


def _by_size_alone(zeros: Zeros) -> bool:
    return zeros.method == "magnitude" and not zeros.two_of_four


def _limit(dropped: np.ndarray) -> float:
    return float(dropped.max()) if dropped.size else 0.0
