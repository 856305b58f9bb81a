"""Rounding the weights of a whole model, on torch; the same grid as :mod:`core.edits.grid`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from core.edits.grid import Grid
from core.edits.spec import Rounding

BLOCK: Final = 2**17
"""Weights that are worked on at once: few enough for the processor's cache."""


@dataclass(frozen=True, eq=False)
class Coded:
    """A matrix on its grid: weight ≈ offset + scale · code. As ``core.edits.grid.Rounded``."""

    codes: Tensor
    """[row, column], int16."""
    scale: Tensor
    """[row, span], float64; one of all for the span "tensor"."""
    offset: Tensor
    """[row, span]; 0 where the grid is symmetric."""


def rounded(weight: Tensor, grid: Grid) -> Tensor:
    """The weights that the nearest codes stand for, [row, column], in the weight's own dtype.

    To the bit what :func:`core.edits.grid.round_to` says: halves go to the even code, a span
    without any spread keeps its weights, a last group may be shorter.
    """
    out = torch.empty_like(weight)
    for first, spans, scale, offset in _blocks(weight, grid):
        values = (offset + scale * _codes(spans, scale, offset, grid)).flatten(1)
        out[first : first + spans.shape[0]] = values[:, : weight.shape[1]].float().to(out.dtype)
    return out


def coded(weight: Tensor, grid: Grid) -> Coded:
    """The codes themselves, with the scale and the offset of each span."""
    rows, columns = weight.shape
    codes = torch.empty(rows, columns, dtype=torch.int16, device=weight.device)
    scales, offsets = [], []
    for first, spans, scale, offset in _blocks(weight, grid):
        found = _codes(spans, scale, offset, grid).flatten(1)[:, :columns]
        codes[first : first + spans.shape[0]] = found.to(torch.int16)
        scales.append(scale[..., 0])
        offsets.append(offset[..., 0])
    return Coded(codes, torch.cat(scales), torch.cat(offsets))


def _blocks(weight: Tensor, grid: Grid) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
    """(first row, weights [row, span, weight], scale, offset [row, span, 1]) of a few rows at a
    time, as float64."""
    rows, columns = weight.shape
    size = min(grid.group, columns) if grid.span == "group" else columns
    short = -columns % size
    whole = (weight.min().double(), weight.max().double()) if grid.span == "tensor" else None
    most = max(1, BLOCK // columns)
    for first in range(0, rows, most):
        table = weight.detach()[first : first + most].double()
        if short:
            # A last group is filled up with its own last weight, which moves none of its ends.
            table = torch.cat([table, table[:, -1:].expand(-1, short)], dim=1)
        spans = table.reshape(table.shape[0], -1, size)
        low, high = spans.amin(-1, keepdim=True), spans.amax(-1, keepdim=True)
        if whole:
            low, high = (end.expand_as(low) for end in whole)
        yield first, spans, *_scale(low, high, grid)


def _scale(low: Tensor, high: Tensor, grid: Grid) -> tuple[Tensor, Tensor]:
    if grid.symmetric:
        return torch.maximum(-low, high) / (2 ** (grid.bits - 1) - 1), torch.zeros_like(low)
    return (high - low) / (2**grid.bits - 1), low


def _codes(spans: Tensor, scale: Tensor, offset: Tensor, grid: Grid) -> Tensor:
    top = 2 ** (grid.bits - 1) - 1 if grid.symmetric else 2**grid.bits - 1
    first = -top if grid.symmetric else 0
    return torch.where(scale > 0, (spans - offset) / scale, 0.0).round().clamp(first, top)


def matrices(model: Any, *, head: bool = False) -> Iterator[tuple[str, Any]]:
    """(name, module) of everything that multiplies by a matrix of weights, in order.

    The LM head only with ``head``.
    """
    last = model.get_output_embeddings()
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear | Conv1D) and (head or module is not last):
            yield name, module


def rows_of(module: Any) -> Tensor:
    """The matrix with one row for each output: a view, also where it is stored the other way
    round (GPT-2)."""
    weight: Tensor = module.weight.detach()
    return weight.T if isinstance(module, Conv1D) else weight


def round_weights(model: Any, rounding: Rounding) -> None:
    """Round every matrix in place."""
    with torch.inference_mode():
        for _, module in matrices(model, head=rounding.head):
            rows_of(module).copy_(rounded(rows_of(module), rounding.grid))
