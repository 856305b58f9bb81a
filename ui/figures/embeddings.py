"""Tokens as rows of the embedding matrix: records → what the component draws. Pure."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from core.geometry import principal
from core.trace import Token

Label = Callable[[int], str]
SAME: Final = 1e-6
"""Largest difference, relative to the largest number, that passes for rounding."""


@dataclass(frozen=True)
class Near:
    """A token of the vocabulary, and how alike its row's direction is."""

    id: int
    cosine: float


@dataclass(frozen=True)
class Entering:
    """How what enters the first layer comes from the row of the matrix."""

    kind: str
    """``same``, ``scaled`` (by ``factor``), ``added`` (the position's row), or ``other``."""
    factor: float
    difference: float
    """Largest difference between the two sides of that equation."""


def entering(
    row: Float[np.ndarray, " width"],
    vector: Float[np.ndarray, " width"],
    position: Float[np.ndarray, " width"] | None,
) -> Entering:
    """Compare a stored row with what entered the first layer at its place."""
    stored, used = row.astype(np.float64), vector.astype(np.float64)
    length = float(stored @ stored)
    factor = float(used @ stored) / length if length else 1.0
    added = stored if position is None else stored + position
    for kind, size, made in (
        ("same", 1.0, stored),
        ("added", 1.0, added),
        ("scaled", factor, factor * stored),
    ):
        difference = float(np.abs(used - made).max(initial=0.0))
        if difference <= SAME * max(1.0, float(np.abs(used).max(initial=0.0))):
            return Entering(kind, size, difference)
    return Entering("other", 1.0, float(np.abs(used - stored).max()))


def lookup_data(
    tokens: Sequence[Token], at: int, rows: Float[np.ndarray, "token width"], *, stored: bool
) -> dict[str, Any]:
    """The tokens that were read, and the row of the one in view, every number of it.

    ``rows`` are those of ``tokens``; ``stored`` says that they stand so in the matrix.
    """
    row = rows[at]
    return {
        "tokens": [token_data(token) for token in tokens],
        "at": at,
        "row": packed(row),
        "width": int(row.size),
        "saturation": float(np.quantile(np.abs(row), 0.98)) if row.size else 0.0,
        "length": float(np.linalg.norm(row.astype(np.float64))),
        "lowest": float(row.min(initial=0.0)),
        "highest": float(row.max(initial=0.0)),
        "stored": stored,
    }


def token_data(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "position": token.position,
        "label": token.label,
        "source": token.source,
        "special": token.special,
    }


def near_data(near: Sequence[Near], label: Label) -> list[dict[str, Any]]:
    """The nearest rows as JSON; equal cosines were already ranked by id."""
    return [{"id": n.id, "label": label(n.id), "cosine": n.cosine} for n in near]


def nearest(
    ids: Sequence[int], cosines: Sequence[float], n: int, without: Sequence[int] = ()
) -> list[Near]:
    """The first ``n`` of a ranking, leaving out the tokens in ``without``."""
    pairs = zip(ids, cosines, strict=True)
    return [Near(int(id), float(c)) for id, c in pairs if int(id) not in without][:n]


@dataclass(frozen=True, eq=False)
class Rows:
    """Different rows of the embedding matrix, each once."""

    ids: tuple[int, ...]
    vectors: Float[np.ndarray, "row width"]


def different(ids: Sequence[int], vectors: Float[np.ndarray, "token width"]) -> Rows:
    """Each token's row once, in the order in which the tokens first appear."""
    first = {id: i for i, id in reversed(list(enumerate(ids)))}
    order = sorted(first, key=first.__getitem__)
    return Rows(tuple(order), vectors[[first[id] for id in order]])


def map_data(
    ids: Sequence[int], vectors: Float[np.ndarray, "token width"], near: Rows | None, label: Label
) -> dict[str, Any]:
    """Where the tokens' rows lie in the space of their first three principal components.

    ``spots`` has a place of its own for every position, so that a repeated token is drawn as
    often as it occurs; the analysis itself counts each different row once. With ``near`` there
    is a second map, of those rows and the nearest rows of the vocabulary together.
    """
    rows = different(ids, vectors)
    return {
        "alone": _map(rows, ids, (), label),
        "among": None if near is None else _map(_joined(rows, near), ids, near.ids, label),
    }


def _joined(rows: Rows, near: Rows) -> Rows:
    new = [i for i, id in enumerate(near.ids) if id not in rows.ids]
    ids = (*rows.ids, *(near.ids[i] for i in new))
    return Rows(ids, np.concatenate([rows.vectors, near.vectors[new]]))


def _map(rows: Rows, ids: Sequence[int], near: Sequence[int], label: Label) -> dict[str, Any]:
    found = principal(rows.vectors, 3)
    place = {id: found.coordinates[i].tolist() for i, id in enumerate(rows.ids)}
    others = [id for id in near if id not in ids]
    return {
        "spots": [place[id] for id in ids],
        "others": [{"id": id, "label": label(id), "spot": place[id]} for id in others],
        "explained": found.explained.tolist(),
        "rows": len(rows.ids),
    }


def packed(array: np.ndarray) -> str:
    """Base64 of little-endian float32: a component's data is either JSON or bytes, never both."""
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode()
