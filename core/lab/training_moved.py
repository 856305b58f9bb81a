"""Which weights a training moved, and whether those of the served model are what they were."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator
from typing import Any, Final

import torch
from torch import Tensor

from core.engine.local import LocalEngine
from core.lab.training_records import Kind, Moved

_LAYER: Final = re.compile(r"\.(?:layers|h|blocks)\.(\d+)\.")
_ATTENTION: Final = re.compile(r"attn|attention")
_FEED_FORWARD: Final = re.compile(r"mlp|feed_forward|\.fc\d?\.|ffn")
_NORM: Final = re.compile(r"norm|\.ln_")
_HEAD: Final = re.compile(r"lm_head|embed_out")
SHOWN: Final = 8
"""Single tensors that are listed."""
BLOCK: Final = 2**26
"""Bytes that are hashed at once."""


def kind_of(name: str) -> tuple[Kind, int | None]:
    """(what a tensor belongs to, its layer from 0), by its name in the model."""
    found = _LAYER.search(name)
    layer = int(found.group(1)) if found else None
    # A norm inside a layer may carry the name of the part that it stands before.
    if _NORM.search(name) and not re.search(r"attn\.|mlp\.", name):
        return "norm", layer
    if layer is None:
        return ("head" if _HEAD.search(name) else "embedding"), None
    if _ATTENTION.search(name):
        return "attention", layer
    return ("feed_forward" if _FEED_FORWARD.search(name) else "other"), layer


def moved(original: Any, trained: Any) -> tuple[tuple[Moved, ...], tuple[tuple[str, float], ...]]:
    """(how far the weights of each part of each layer moved, the tensors that moved most)."""
    groups = dict[tuple[Kind, int | None], list[float]]()
    tensors = []
    own = dict(trained.named_parameters())
    with torch.no_grad():
        for name, parameter in original.named_parameters():
            off = float((own[name] - parameter).float().square().sum(dtype=torch.float64))
            whole = float(parameter.float().square().sum(dtype=torch.float64))
            group = groups.setdefault(kind_of(name), [0.0, 0.0, 0.0])
            for place, value in enumerate((off, whole, parameter.numel())):
                group[place] += value
            tensors.append((name, _ratio(off, whole)))
    found = (
        Moved(kind, layer, _ratio(off, whole), int(count))
        for (kind, layer), (off, whole, count) in groups.items()
    )
    most = sorted(tensors, key=lambda pair: -pair[1])[:SHOWN]
    return tuple(found), tuple(most)


def _ratio(off: float, whole: float) -> float:
    return float((off / whole) ** 0.5) if whole else 0.0


def fingerprint(engine: LocalEngine) -> Generator[float, None, str]:
    """SHA-256 over every weight and buffer of the served model, with names and shapes.

    Nobody writes to them, so they are read while others use the model. Yields the share done.
    """
    with engine.borrowed() as model:
        found = [*model.named_parameters(), *model.named_buffers()]
    whole, seen, digest = sum(t.nbytes for _, t in found) or 1, 0, hashlib.sha256()
    since = 0
    for name, tensor in found:
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        digest.update(_bytes(tensor))
        seen, since = seen + tensor.nbytes, since + tensor.nbytes
        if since > BLOCK:
            since = 0
            yield seen / whole
    return digest.hexdigest()


def _bytes(tensor: Tensor) -> memoryview:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data
