"""Weights of a whole model set to zero, on torch; the same choice as :mod:`core.edits.masks`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from core.edits.calibrate import Calibration, input_norms
from core.edits.masks import Method
from core.edits.pieces import layers_of, matrices_in, out_of
from core.edits.spec import Zeros
from core.faults import Fault

TURN: Final = 16
"""Matrices that are worked on in one turn."""


def scores(weight: Tensor, method: Method, *, norms: Tensor | None = None, seed: int = 0) -> Tensor:
    """As :func:`core.edits.masks.scores_of`, [row, column], float32 (float64 for "random")."""
    if method == "random":
        dice = np.random.default_rng(seed).random(tuple(weight.shape))
        return torch.from_numpy(dice).to(weight.device)
    size = weight.detach().float().abs()
    if method != "wanda":
        return size
    if norms is None or norms.shape != (weight.shape[1],):
        raise Fault("wanda_without_norms")
    return size * norms


def kept(table: Tensor, zeros: float, *, by_row: bool) -> Tensor:
    """As :func:`core.edits.masks.share_mask`, without sorting: ``True`` keeps, [row, column]."""
    rows = table if by_row else table.reshape(1, -1)
    count = int(zeros * rows.shape[1] + 1e-9)
    if count == 0:
        return torch.ones_like(table, dtype=torch.bool)
    limit = rows.kthvalue(count, dim=1, keepdim=True).values
    below, ties = rows < limit, rows == limit
    # Of those at the limit, the first ones go, until the count is full.
    left = count - below.sum(1, keepdim=True)
    drop = below | (ties & (ties.cumsum(1) <= left))
    return ~drop.reshape(table.shape)


def kept_two_of_four(table: Tensor) -> Tensor:
    """As :func:`core.edits.masks.two_of_four`: ``True`` keeps, [row, column]."""
    rows, columns = table.shape
    short = -columns % 4
    padded = torch.nn.functional.pad(table, (0, short), value=-torch.inf) if short else table
    fours = padded.reshape(rows, -1, 4)
    # The place in its four: how many are higher, or as high and before it.
    places = torch.zeros(fours.shape, dtype=torch.int8, device=table.device)
    for one in range(4):
        for other in range(4):
            if other != one:
                ahead = fours[..., other] >= fours[..., one]
                if other > one:
                    ahead = fours[..., other] > fours[..., one]
                places[..., one] += ahead
    return (places < 2).reshape(rows, -1)[:, :columns]


def keep_mask(
    weight: Tensor, zeros: Zeros, *, norms: Tensor | None = None, seed: int = 0
) -> Tensor:
    """Which weights of one matrix stay, [row, column]."""
    table = scores(weight, zeros.method, norms=norms, seed=seed)
    if zeros.two_of_four:
        return kept_two_of_four(table)
    return kept(table, zeros.share, by_row=zeros.method in ("magnitude_row", "wanda"))


def zero_weights(
    model: Any, zeros: Zeros, calibration: Calibration, *, norms: dict[str, Tensor] | None = None
) -> None:
    """Set weights of all matrices of the layers to 0, in place.

    For "wanda" the norms are those of the model as it is, in one pass, unless they are given
    (the paper reads again after each layer that it has pruned). Raises Fault for a model whose
    layers have no such matrices.
    """
    for _ in zeroing(model, zeros, calibration, norms=norms):
        pass


def zeroing(
    model: Any, zeros: Zeros, calibration: Calibration, *, norms: dict[str, Tensor] | None = None
) -> Iterator[float]:
    """``zero_weights``, some matrices at a time; yields the share done."""
    found = list(matrices_in(model))
    if zeros.method == "wanda" and norms is None:
        norms = input_norms(model, found, calibration())
    for place, (name, matrix) in enumerate(found):
        own = None if norms is None else norms.get(name)
        with torch.inference_mode():
            matrix.weight.mul_(keep_mask(matrix.weight, zeros, norms=own, seed=place))
        if place % TURN == TURN - 1:
            yield (place + 1) / len(found)


def silence_heads(model: Any, heads: Sequence[tuple[int, int]]) -> None:
    """What these (layer, head) write becomes 0, in place; the shape of the model stays.

    Raises Fault for a layer or a head that the model has not.
    """
    config = model.config.get_text_config()
    _, _, layers = layers_of(model)
    count = config.num_attention_heads
    for layer, head in heads:
        if layer >= len(layers):
            raise Fault("no_such_layer", layer=layer, last=len(layers) - 1)
        if head >= count:
            raise Fault("no_such_head", head=head, last=count - 1)
    with torch.inference_mode():
        for layer, head in heads:
            weight = out_of(model, layers[layer]).weight
            size = weight.shape[1] // count
            weight[:, head * size : (head + 1) * size] = 0
