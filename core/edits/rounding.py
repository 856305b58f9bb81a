"""Rounding the weights of a whole model, on torch; the same grid as :mod:`core.edits.grid`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from core.edits.grid import Grid
from core.edits.spec import Rounding


def rounded(weight: Tensor, grid: Grid) -> Tensor:
    """The weights that the nearest codes stand for, [row, column], in the weight's own dtype.

    As :func:`core.edits.grid.round_to`: halves go to the even code, a span without any spread
    keeps its weights, a last group may be shorter. Scales are float32, not rounded.
    """
    table = weight.detach().float()
    rows, columns = table.shape
    size = min(grid.group, columns) if grid.span == "group" else columns
    short = -columns % size
    # A last group is filled up with its own last weight, which moves none of its ends.
    padded = torch.cat([table, table[:, -1:].expand(rows, short)], dim=1) if short else table
    spans = padded.reshape(rows, -1, size)
    low, high = spans.amin(-1, keepdim=True), spans.amax(-1, keepdim=True)
    if grid.span == "tensor":
        low, high = low.amin().expand_as(low), high.amax().expand_as(high)
    if grid.symmetric:
        top = 2 ** (grid.bits - 1) - 1
        scale, offset, first = torch.maximum(-low, high) / top, torch.zeros_like(low), -top
    else:
        top = 2**grid.bits - 1
        scale, offset, first = (high - low) / top, low, 0
    codes = torch.where(scale > 0, (spans - offset) / scale, 0.0).round().clamp(first, top)
    values: Tensor = (offset + codes * scale).reshape(rows, -1)[:, :columns]
    return values.to(weight.dtype)


def matrices(model: Any, *, head: bool = False) -> Iterator[tuple[str, nn.Linear]]:
    """(name, linear layer) of everything that multiplies by a matrix of weights, in order.

    The LM head only with ``head``.
    """
    last = model.get_output_embeddings()
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and (head or module is not last):
            yield name, module


def round_weights(model: Any, rounding: Rounding) -> None:
    """Round every matrix in place."""
    with torch.inference_mode():
        for _, module in matrices(model, head=rounding.head):
            module.weight.copy_(rounded(module.weight, rounding.grid))
