"""Which positions the journey draws, and the rows of the records that belong to them.

A step's ``Forward`` holds only its own new positions, so the rows of earlier positions are
taken from the earlier steps. Letters as in :mod:`core.trace`; R are the drawn positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float

from core.trace import Forward

LAST: Final = 10
"""Positions drawn at the end of a long text; the first one is always drawn as well."""


class Lanes(NamedTuple):
    """The drawn positions, and how many between the first and the second were left out."""

    positions: tuple[int, ...]
    hidden: int


def lanes(total: int, last: int = LAST) -> Lanes:
    """All of ``total`` positions, or the first and the ``last`` ones with a gap of ≥ 2."""
    if total <= last + 2:
        return Lanes(tuple(range(total)), 0)
    return Lanes((0, *range(total - last, total)), total - last - 1)


def owner(forwards: Sequence[Forward], position: int) -> tuple[Forward, int]:
    """The pass that computed ``position``, and its row there. Raises LookupError if none did."""
    for forward in forwards:
        if forward.start <= position < len(forward.ids):
            return forward, position - forward.start
    raise LookupError(position)


def embeddings(
    forwards: Sequence[Forward], positions: Sequence[int]
) -> Float[np.ndarray, "row width"]:
    """The vector with which each position enters the first layer."""
    found = [owner(forwards, position) for position in positions]
    return np.stack([forward.embedding[row] for forward, row in found])


def changes(
    forwards: Sequence[Forward], positions: Sequence[int]
) -> Float[np.ndarray, "layer row"]:
    """How much each layer changed each position's vector: ‖Δ‖ ÷ ‖h‖."""
    found = [owner(forwards, position) for position in positions]
    return np.concatenate([_one_row(forward, row).change for forward, row in found], axis=1)


def _one_row(forward: Forward, row: int) -> Forward:
    """The pass cut down to one position: a long prompt has many that are not drawn."""
    one = slice(row, row + 1)
    return replace(
        forward, embedding=forward.embedding[one].copy(), residual=forward.residual[:, one].copy()
    )


def attention(
    forwards: Sequence[Forward], drawn: Lanes
) -> Float[np.ndarray, "layer row column"] | None:
    """Attention weights averaged over the heads; row = the position that attends.

    Columns are the drawn positions; with a gap, one more column at the end holds the sum over
    the hidden ones, so that each row still adds up to 1. NaN: that layer has no attention.
    ``None``: some pass did not keep them, or there are no layers.
    """
    found = [owner(forwards, position) for position in drawn.positions]
    rows = []
    total = drawn.positions[-1] + 1
    for forward, row in found:
        if forward.attention is None or not forward.attention.size:
            return None
        weights = np.full((len(forward.residual), forward.attention.shape[3]), np.nan)
        held = list(forward.attending or range(len(weights)))
        weights[held] = forward.attention[:, :, row].mean(axis=1)
        full = np.zeros((weights.shape[0], total), dtype=weights.dtype)
        full[np.isnan(weights[:, 0])] = np.nan
        full[:, : min(total, weights.shape[1])] = weights[:, :total]
        columns = full[:, list(drawn.positions)]
        if drawn.hidden:
            rest = full[:, 1 : 1 + drawn.hidden].sum(axis=1, keepdims=True)
            columns = np.concatenate([columns, rest], axis=1)
        rows.append(columns)
    return np.stack(rows, axis=1)


def telling_layer(weights: Float[np.ndarray, "layer row column"] | None, rows: int) -> int | None:
    """The layer in which the last position reads most from one earlier drawn position.

    The first position is left out (it is the attention sink), and so is the last itself.
    ``None``: there is no layer. The first with attention when there is nothing in between.
    """
    if weights is None or not weights.shape[0]:
        return None
    between = weights[:, -1, 1 : rows - 1]
    peaks = between.max(axis=1) if between.size else weights[:, -1, 0] * 0
    return int(np.nan_to_num(peaks, nan=-1).argmax())
