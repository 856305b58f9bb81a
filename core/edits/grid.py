"""Rounding weights to a grid: round-to-nearest quantization, any bits, any grouping.

This is the arithmetic itself, on plain arrays, so that each number can be checked by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int

from core.faults import Fault

Span = Literal["tensor", "channel", "group"]
"""The weights that share one scale: all, one row (an output channel), ``group`` neighbours in
a row."""
SPANS: Final[tuple[Span, ...]] = ("tensor", "channel", "group")
BITS: Final = (2, 8)


@dataclass(frozen=True)
class Grid:
    """How weights are rounded. Raises Fault with one sentence for illegal values."""

    bits: int = 8
    """2 … 8: a code is one of 2^bits numbers."""
    span: Span = "channel"
    group: int = 64
    """Weights in a group; used by the span "group" alone."""
    symmetric: bool = True
    """The grid is centred on 0, from -(2^(bits-1) - 1) to 2^(bits-1) - 1 times the scale.
    Otherwise it runs from the smallest to the largest weight in 2^bits - 1 steps."""

    def __post_init__(self) -> None:
        low, high = BITS
        if isinstance(self.bits, bool) or not isinstance(self.bits, int):
            raise Fault("setting_not_whole", name="bits", value=self.bits)
        if not low <= self.bits <= high:
            raise Fault("setting_out_of_range", name="bits", value=self.bits, low=low, high=high)
        if self.span not in SPANS:
            raise Fault("unknown_span", value=self.span, allowed=", ".join(SPANS))
        if isinstance(self.group, bool) or not isinstance(self.group, int) or self.group < 1:
            raise Fault("setting_out_of_range", name="group", value=self.group, low=1, high=2**16)

    @property
    def levels(self) -> int:
        """Codes in use."""
        codes: int = 2**self.bits
        return codes - 1 if self.symmetric else codes

    def overhead(self, columns: int) -> float:
        """Bits a weight that the scales (and offsets) cost, each stored as 16 bits."""
        per = {"tensor": 0.0, "channel": 1 / columns, "group": 1 / min(self.group, columns)}
        return per[self.span] * (16 if self.symmetric else 32)


@dataclass(frozen=True, eq=False)
class Rounded:
    """A matrix on its grid: weight ≈ offset + scale · code."""

    grid: Grid
    codes: Int[np.ndarray, "row column"]
    scale: Float[np.ndarray, "row span"]
    """One a span of each row; "tensor" repeats one number."""
    offset: Float[np.ndarray, "row span"]
    """0 where the grid is symmetric."""

    @property
    def values(self) -> Float[np.ndarray, "row column"]:
        """The weights that the codes stand for, float32."""
        columns = self.codes.shape[1]
        size = _size(columns, self.grid)
        scale = np.repeat(self.scale, size, axis=1)[:, :columns]
        offset = np.repeat(self.offset, size, axis=1)[:, :columns]
        out: Float[np.ndarray, "row column"] = offset + scale * self.codes
        return out.astype(np.float32)


def round_to(weights: Float[np.ndarray, "row column"], grid: Grid) -> Rounded:
    """Each weight to the nearest point of its span's grid; halves go to the even code.

    The error of a weight is at most half a scale. A span without any spread (all 0, or for an
    asymmetric grid all equal) keeps its weights exactly. A last group may be shorter. Raises
    Fault for weights that are not finite.
    """
    table = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    if not np.isfinite(table).all():
        raise Fault("weights_not_finite")
    low, high = _ends(table, grid)
    top = 2 ** (grid.bits - 1) - 1 if grid.symmetric else 2**grid.bits - 1
    scale = np.maximum(-low, high) / top if grid.symmetric else (high - low) / top
    offset = np.zeros_like(scale) if grid.symmetric else low
    size = _size(table.shape[1], grid)
    wide = [np.repeat(a, size, axis=1)[:, : table.shape[1]] for a in (scale, offset)]
    steps = np.divide(table - wide[1], wide[0], out=np.zeros_like(table), where=wide[0] > 0)
    codes = np.clip(np.rint(steps), -top if grid.symmetric else 0, top)
    return Rounded(grid, codes.astype(np.int16), scale, offset)


def _size(columns: int, grid: Grid) -> int:
    return min(grid.group, columns) if grid.span == "group" else columns


def _ends(
    table: Float[np.ndarray, "row column"], grid: Grid
) -> tuple[Float[np.ndarray, "row span"], Float[np.ndarray, "row span"]]:
    """(smallest, largest) weight of each span; a symmetric grid also contains 0."""
    starts = np.arange(0, table.shape[1], _size(table.shape[1], grid))
    low = np.minimum.reduceat(table, starts, axis=1)
    high = np.maximum.reduceat(table, starts, axis=1)
    if grid.span == "tensor":
        low = np.full_like(low, low.min())
        high = np.full_like(high, high.max())
    return low, high


def on_grid(weights: Float[np.ndarray, "row column"], grid: Grid) -> bool:
    """Whether rounding changes nothing beyond float32's own rounding: the weights already sit
    on such a grid."""
    table = np.atleast_2d(np.asarray(weights, dtype=np.float32))
    reach = float(np.abs(table).max(initial=0.0))
    error = float(np.abs(round_to(table, grid).values - table).max(initial=0.0))
    return error <= reach * 2.0**-22
