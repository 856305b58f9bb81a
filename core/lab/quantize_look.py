"""Looking at one matrix and its grid, and finding out whether weights were rounded before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from core.edits.grid import Grid, Rounded, Span, on_grid, round_to
from core.edits.pack import Packed
from core.edits.rounding import matrices, rounded, rows_of
from core.engine.local import LocalEngine
from core.faults import Fault
from core.lab.quantize_records import (
    CURVES,
    Hand,
    Look,
    OnGrid,
    Origin,
    Outlier,
    SpanScale,
    at_bits,
)

BINS: Final = 161
SHOWN: Final = 16
"""Weights of a row that are worked by hand."""
LARGEST: Final = 8
_SPANS: Final[tuple[tuple[Span, int], ...]] = (
    ("group", 32),
    ("group", 64),
    ("group", 128),
    ("channel", 64),
)
SCREENED: Final = 2
"""Rows of a tensor that are tried first."""
KNOWN: Final = tuple(
    Grid(bits, span, group, symmetric)
    for bits in (2, 3, 4, 5, 6, 8)
    for span, group in _SPANS
    for symmetric in (False, True)
)
"""Grids that are looked for, the coarsest first."""


# ---------------------------------------------------------------- where the weights come from


def origin(engine: LocalEngine) -> Generator[Origin, None, None]:
    """Which tensors already sit on a grid, tensor by tensor; yields a few times a second."""
    with engine.borrowed() as model:
        tensors = [parameter.detach() for parameter in model.parameters()]
    count, weights = len(tensors), sum(tensor.numel() for tensor in tensors)
    hits: Counter[Grid] = Counter()
    sizes: Counter[Grid] = Counter()
    last: Grid | None = None

    def told(share: float, done: bool = False) -> Origin:
        grids = tuple(OnGrid(grid, number, sizes[grid]) for grid, number in hits.most_common())
        return Origin(grids, count, weights, share, done)

    for place, tensor in enumerate(tensors, 1):
        found = _grid_of(tensor, last) if tensor.dim() == 2 else None
        if found is not None:
            last = found
            hits[found] += 1
            sizes[found] += tensor.numel()
        if place % 16 == 0 or tensor.numel() > 10**7:
            yield told(place / count)
    yield told(1.0, True)


def _grid_of(weight: Tensor, first: Grid | None) -> Grid | None:
    """The coarsest known grid on which the whole matrix sits."""
    head = weight[:SCREENED].float().cpu().numpy()
    if not np.isfinite(head).all() or not head.any():
        return None
    tried = KNOWN if first is None else (first, *(grid for grid in KNOWN if grid != first))
    for grid in tried:
        if on_grid(head, grid) and sits_on(weight, grid):
            return grid
    return None


def sits_on(weight: Tensor, grid: Grid) -> bool:
    """:func:`core.edits.grid.on_grid`, for large tensors."""
    with torch.inference_mode():
        table = weight.float()
        error = (rounded(table, grid) - table).abs().max()
        return bool(error <= table.abs().max() * 2.0**-22)


# ---------------------------------------------------------------- one matrix


def matrix_names(engine: LocalEngine) -> tuple[str, ...]:
    """All matrices that can be looked at, the LM head last."""
    with engine.borrowed() as model:
        return tuple(name for name, _ in matrices(model, head=True))


def matrix(engine: LocalEngine, name: str) -> Float[np.ndarray, "row column"]:
    """A copy of one matrix, [out, in]. Raises Fault for a name that is none of them."""
    with engine.borrowed() as model:
        found = dict(matrices(model, head=True)).get(name)
        if found is None or isinstance(found, Packed):
            raise Fault("no_such_matrix", name=name)
        table: np.ndarray = rows_of(found).float().cpu().numpy().copy()
    return table


def look(
    name: str, table: Float[np.ndarray, "row column"], grid: Grid, row: int, start: int = 0
) -> Look:
    """A matrix and what ``grid`` makes of it; ``row`` is worked by hand from ``start`` on.

    Both wrap around. Raises Fault for weights that are not finite.
    """
    row %= table.shape[0]
    found = round_to(table, grid)
    reach = float(np.abs(table).max(initial=0.0)) or 1.0
    edges = np.linspace(-reach, reach, BINS + 1)
    hand = by_hand(table, found, row, start)
    return Look(
        name=name,
        shape=(table.shape[0], table.shape[1]),
        grid=grid,
        edges=edges,
        counts=np.histogram(table, edges)[0],
        rounded=np.histogram(found.values, edges)[0],
        points=_points(hand, grid),
        hand=hand,
        outliers=outliers(table),
        scales=tuple(span_scale(table, at_bits(curve, grid.bits)) for curve in _curves(grid)),
        without=_scale_without_largest(table, grid),
    )


def _curves(grid: Grid) -> Sequence[Grid]:
    return [curve for curve in CURVES if curve.symmetric == grid.symmetric]


def by_hand(
    table: Float[np.ndarray, "row column"], found: Rounded, row: int, start: int = 0
) -> Hand:
    """The first weights of one span of a row, with their codes and values."""
    grid, columns = found.grid, table.shape[1]
    size = min(grid.group, columns) if grid.span == "group" else columns
    span = start % columns // size
    first = span * size if grid.span == "group" else start % columns
    stop = min(first + SHOWN, (span + 1) * size, columns)
    shared = {
        "tensor": table,
        "channel": table[row],
        "group": table[row, span * size : (span + 1) * size],
    }[grid.span]
    return Hand(
        row=row,
        start=first,
        weights=table[row, first:stop].astype(np.float64),
        codes=found.codes[row, first:stop].astype(np.int64),
        values=found.offset[row, span]
        + found.scale[row, span] * found.codes[row, first:stop].astype(np.float64),
        scale=float(found.scale[row, span]),
        offset=float(found.offset[row, span]),
        low=float(shared.min()),
        high=float(shared.max()),
        span=int(shared.size),
    )


def _points(hand: Hand, grid: Grid) -> Float[np.ndarray, " point"]:
    top = 2 ** (grid.bits - 1) - 1
    codes = np.arange(-top, top + 1) if grid.symmetric else np.arange(2**grid.bits)
    return hand.offset + hand.scale * codes.astype(np.float64)


def outliers(table: Float[np.ndarray, "row column"]) -> tuple[Outlier, ...]:
    """The largest weights by size, the largest first."""
    flat = np.abs(table).ravel()
    most = min(LARGEST, flat.size)
    best = np.argpartition(-flat, most - 1)[:most]
    best = best[np.lexsort((best, -flat[best]))]
    deviation = float(table.std()) or 1.0
    return tuple(
        Outlier(
            row=int(i // table.shape[1]),
            column=int(i % table.shape[1]),
            value=float(table.flat[i]),
            deviations=float(flat[i]) / deviation,
        )
        for i in best
    )


def span_scale(table: Float[np.ndarray, "row column"], grid: Grid) -> SpanScale:
    """The scales that one way of sharing gives, and what they do to the matrix."""
    found = round_to(table, grid)
    values = found.values
    size = float(np.linalg.norm(table)) or 1.0
    lost = (values == 0) & (table != 0)
    return SpanScale(
        grid=grid,
        smallest=float(found.scale.min()),
        median=float(np.median(found.scale)),
        largest=float(found.scale.max()),
        error=float(np.linalg.norm(table - values)) / size,
        zeroed=float(lost.mean()),
    )


def _scale_without_largest(table: Float[np.ndarray, "row column"], grid: Grid) -> float:
    """The scale of the whole tensor, if its largest weight were 0."""
    rest = table.ravel().astype(np.float64)
    if rest.size > 1:
        rest[np.abs(rest).argmax()] = 0.0
    return float(round_to(rest[None], Grid(grid.bits, "tensor", 64, grid.symmetric)).scale[0, 0])
