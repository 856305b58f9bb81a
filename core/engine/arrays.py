"""From a recorder's tensors to the read-only arrays of a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from core.engine.traced import Recorder
from core.trace import Edit


def numpy_of(tensor: Tensor) -> np.ndarray:
    """float32, on the CPU, not writable."""
    array: np.ndarray = tensor.detach().float().cpu().numpy()
    array.setflags(write=False)
    return array


def _stacked(
    tensors: dict[int, Tensor], layers: Sequence[int], *, pad: int = 0
) -> np.ndarray | None:
    """The layers as one array, or ``None`` where not every one of them was heard.

    Sliding windows give fewer key positions: ``pad`` names the dimension (from the end,
    1-based) that is filled with zeros on the left.
    """
    if not tensors or any(layer not in tensors for layer in layers):
        return None
    rows = [tensors[layer] for layer in layers]
    if pad:
        most = max(row.shape[-pad] for row in rows)
        rows = [_padded(row, most - row.shape[-pad], pad) for row in rows]
    return numpy_of(torch.stack(rows))


def _padded(row: Tensor, missing: int, dimension: int) -> Tensor:
    if missing == 0:
        return row
    return torch.nn.functional.pad(row, (0, 0) * (dimension - 1) + (missing, 0))


def arrays_of(recorder: Recorder, layers: int, edit: Edit) -> dict[str, Any]:
    """The array fields of a :class:`~core.trace.Forward`."""
    every = range(layers)
    heard = every if recorder.capture.layer is None else (recorder.capture.layer,)
    residual = _stacked(recorder.residual, every)
    if recorder.embedding is None or residual is None or recorder.normed is None:
        raise RuntimeError("the hooks did not hear every layer")
    attention, feed_forward = _parts(recorder, layers, edit)
    # A hybrid's other layers never call the attention function.
    attending = [
        layer for layer in heard if layer in recorder.attention or layer in recorder.scores
    ]
    return {
        "embedding": numpy_of(recorder.embedding),
        "residual": residual,
        "normed": numpy_of(recorder.normed),
        "layers": tuple(heard),
        "attending": tuple(attending),
        "attention": _stacked(recorder.attention, attending, pad=1),
        "scores": _stacked(recorder.scores, attending, pad=1),
        "queries": _stacked(recorder.queries, attending),
        "keys": _stacked(recorder.keys, attending, pad=2),
        "values": _stacked(recorder.values, attending, pad=2),
        "attention_part": _stacked(attention, every),
        "feed_forward_part": _stacked(feed_forward, every),
        "neurons": _stacked(recorder.neurons, heard),
        "gate": _stacked(recorder.gate, heard),
        "up": _stacked(recorder.up, heard),
    }


def _parts(
    recorder: Recorder, layers: int, edit: Edit
) -> tuple[dict[int, Tensor], dict[int, Tensor]]:
    """What attention and the feed-forward part add, in the layers where both can be told."""
    entry = recorder.embedding
    if entry is None:
        return {}, {}
    attention: dict[int, Tensor] = {}
    feed_forward: dict[int, Tensor] = {}
    for layer in range(layers):
        before = recorder.residual[layer - 1] if layer else entry
        after = recorder.residual[layer]
        if layer in edit.layers_off:
            attention[layer] = feed_forward[layer] = torch.zeros_like(after)
        elif layer in recorder.middle:
            attention[layer] = recorder.middle[layer] - before
            feed_forward[layer] = after - recorder.middle[layer]
        elif layer in recorder.beside:
            attention[layer] = recorder.beside[layer]
            feed_forward[layer] = after - before - recorder.beside[layer]
    return attention, feed_forward
