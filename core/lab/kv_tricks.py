"""Smaller caches: fewer bits, fewer positions; what each saves, and what it costs.

A text is read up to ``prefix`` tokens in full, its cache is made smaller, and the rest is read
with what is left. The predictions of the rest are compared with those of the full cache.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from core.engine.local import LocalEngine
from core.engine.memory import cache_bytes, fork, layers_of
from core.faults import Fault
from core.lab.kv_contexts import long_ids
from core.lab.kv_packed import GROUP, Packed, packed
from core.lab.kv_passes import check_keys, new_cache, read, takes_positions
from core.lab.kv_records import KeySpan, Trick, TrickResult, Tricks
from core.lab.machine import machine
from core.lab.quality import divergence

PREFIX: Final = 256
REST: Final = GROUP - 1
"""Fewer than a group: as long as a group of tokens is not complete it stays as it is, so reading
the rest at once is what reading it token by token is."""
LADDER: Final = (
    Trick(bits=8, keys="token"),
    Trick(bits=8, keys="channel"),
    Trick(bits=4, keys="token"),
    Trick(bits=4, keys="channel"),
    Trick(bits=2, keys="token"),
    Trick(bits=2, keys="channel"),
    Trick(window=128),
    Trick(window=128, sinks=4),
    Trick(window=32),
    Trick(window=32, sinks=4),
)
"""What is measured side by side."""


def tried(
    engine: LocalEngine,
    tricks: Sequence[Trick] = LADDER,
    ids: Sequence[int] | None = None,
    prefix: int = PREFIX,
) -> Generator[Tricks, None, None]:
    """Each trick in turn on the text ``ids`` (default: the fixed texts); yields after each, the
    last record is done. Raises Fault for a text of fewer than ``prefix`` + 2 tokens."""
    check_keys(engine)
    text = long_ids(engine, min(prefix + REST, engine.info.context)) if ids is None else tuple(ids)
    rest = text[prefix : prefix + REST]
    if len(rest) < 2:
        raise Fault("kv_text_short", tokens=len(text), least=prefix + 2)
    with engine.borrowed() as model:
        cache, on = new_cache(model), machine(str(model.device))
        read(model, text[:prefix], cache)
    found = Tricks(engine.info.name, prefix, len(rest), (), not tricks, 0.0, on)
    yield found
    with engine.borrowed() as model:
        full = torch.log_softmax(read(model, rest, fork(cache), keep=len(rest)), dim=-1)
    for place, trick in enumerate(tricks):
        result = _tried(engine, trick, cache, rest, full)
        found = replace(
            found,
            results=(*found.results, result),
            done=place + 1 == len(tricks),
            progress=(place + 1) / len(tricks),
        )
        yield found


def _tried(
    engine: LocalEngine, trick: Trick, cache: DynamicCache, rest: Sequence[int], full: Tensor
) -> TrickResult:
    smaller = shrink(cache, trick)
    with engine.borrowed() as model:
        extra = visible(model, smaller, len(rest), trick)
        logits = read(model, rest, fork(smaller.cache), keep=len(rest), extra=extra)
    found = torch.log_softmax(logits, dim=-1)
    return TrickResult(
        trick=trick,
        nbytes=smaller.nbytes,
        full_bytes=cache_bytes(cache),
        kl=max(0.0, float(divergence(full, found).mean())),
        top1=float((full.argmax(-1) == found.argmax(-1)).float().mean()),
        key_error=smaller.key_error,
        value_error=smaller.value_error,
    )


@dataclass(frozen=True, eq=False)
class Smaller:
    """A cache as a trick leaves it: in numbers that a model can go on with, and its real size."""

    cache: DynamicCache
    nbytes: int
    length: int
    """Positions of the text so far, dropped ones included."""
    places: tuple[np.ndarray, ...]
    """Of each layer, the positions that are left."""
    key_error: float
    value_error: float


def shrink(cache: DynamicCache, trick: Trick) -> Smaller:
    """A smaller copy; ``cache`` stays as it is."""
    twin, length = fork(cache), int(cache.get_seq_length())
    size, places = 0, []
    errors, sizes = np.zeros(2), np.zeros(2)
    for layer in layers_of(twin):
        left = _left(length, layer.keys.shape[-2], trick)
        first = length - layer.keys.shape[-2]
        index = torch.as_tensor(left - first, device=layer.keys.device)
        layer.keys, layer.values = (t.index_select(2, index) for t in (layer.keys, layer.values))
        places.append(left)
        if trick.bits is None:
            size += layer.keys.nbytes + layer.values.nbytes
            continue
        spans: tuple[KeySpan, KeySpan] = (trick.keys, "token")
        for place, (name, span) in enumerate(zip(("keys", "values"), spans, strict=True)):
            before = getattr(layer, name)
            stored, after = rounded(before, trick.bits, span)
            setattr(layer, name, after)
            size += stored.nbytes
            errors[place] += float((after.float() - before.float()).square().sum())
            sizes[place] += float(before.float().square().sum())
    ratio = np.sqrt(errors / np.maximum(sizes, 1e-30))
    return Smaller(twin, size, length, tuple(places), float(ratio[0]), float(ratio[1]))


def rounded(tensor: Tensor, bits: int, span: KeySpan) -> tuple[Packed, Tensor]:
    """(packed, the numbers it stands for) of keys or values [1, KV head, position, head_dim]."""
    stored = packed(tensor[0].float().cpu().numpy(), bits, span)
    back = torch.from_numpy(stored.values).to(device=tensor.device, dtype=tensor.dtype)
    return stored, back[None]


def _left(length: int, held: int, trick: Trick) -> np.ndarray:
    """The positions, of the last ``held`` before ``length``, that the next token may still see."""
    places = np.arange(length - held, length)
    if trick.window is None:
        return places
    return places[(places > length - trick.window) | (places < trick.sinks)]


def visible(model: Any, smaller: Smaller, new: int, trick: Trick) -> dict[str, Any]:
    """Arguments of the model that let each of ``new`` tokens see what the trick leaves it.

    Nothing where no position is dropped. Raises Fault for a model that cannot be told positions.
    """
    if trick.window is None:
        return {}
    if not takes_positions(model):
        raise Fault("kv_no_positions", architecture=type(model).__name__)
    rows = np.arange(smaller.length, smaller.length + new)
    kinds = list(getattr(model.config.get_text_config(), "layer_types", None) or ())
    masks: dict[str, Tensor] = {}
    for place, (layer, left) in enumerate(
        zip(layers_of(smaller.cache), smaller.places, strict=True)
    ):
        kind = kinds[place] if kinds else ""
        if kind not in masks:
            window = getattr(layer, "sliding_window", None)
            seen = _seen(rows, np.concatenate([left, rows]), trick, window)
            masks[kind] = _additive(seen, model)
    mask: Any = masks if len(masks) > 1 else next(iter(masks.values()))
    return {
        "attention_mask": mask,
        "position_ids": torch.as_tensor(rows[None], device=model.device),
    }


def _seen(rows: np.ndarray, columns: np.ndarray, trick: Trick, window: int | None) -> np.ndarray:
    """[row, column]: whether the position of that row may look at that column's."""
    at, key = rows[:, None], columns[None, :]
    assert trick.window is not None
    seen = (key <= at) & ((key > at - trick.window) | (key < trick.sinks))
    out: np.ndarray = seen if window is None else seen & (key > at - window)
    return out


def _additive(seen: np.ndarray, model: Any) -> Tensor:
    """[1, 1, row, column]: 0 where it may look, the lowest number where it may not."""
    mask = torch.zeros(seen.shape, dtype=model.dtype, device=model.device)
    hidden = torch.as_tensor(~seen, device=model.device)
    return mask.masked_fill(hidden, torch.finfo(model.dtype).min)[None, None]
