"""What the cache of a text holds: sizes and rows, read off the tensors themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.engine.arrays import numpy_of
from core.engine.local import LocalEngine
from core.engine.memory import layers_of
from core.faults import Fault
from core.lab.kv_records import Held, LayerHeld, Rows


def held(engine: LocalEngine, ids: Sequence[int], prompt_length: int | None = None) -> Held:
    """The cache that a run has after reading ``ids``. Layers that keep states are left out.

    Raises Fault for what cannot be read.
    """
    cache = engine.keys_values(ids, prompt_length=prompt_length)
    layers = [
        _layer(place, layer, len(ids))
        for place, layer in enumerate(layers_of(cache))
        if _keys(layer) is not None
    ]
    if not layers:
        raise Fault("kv_needs_keys", architecture=engine.info.architecture)
    size = next(_keys(layer) for layer in layers_of(cache) if _keys(layer) is not None)
    return Held(len(ids), tuple(layers), size.element_size())


def rows(
    engine: LocalEngine,
    ids: Sequence[int],
    layer: int,
    head: int,
    prompt_length: int | None = None,
) -> Rows:
    """Keys and values of one layer and KV head. Raises Fault for one that is not there."""
    cache = engine.keys_values(ids, prompt_length=prompt_length)
    every = layers_of(cache)
    if not 0 <= layer < len(every):
        raise Fault("no_such_layer", layer=layer, last=len(every) - 1)
    found = every[layer]
    if _keys(found) is None:
        raise Fault("kv_needs_keys", architecture=engine.info.architecture)
    heads = found.keys.shape[1]
    if not 0 <= head < heads:
        raise Fault("no_such_kv_head", head=head, last=heads - 1)
    first = len(ids) - found.keys.shape[-2]
    return Rows(layer, head, first, numpy_of(found.keys[0, head]), numpy_of(found.values[0, head]))


def _keys(layer: Any) -> Any:
    return getattr(layer, "keys", None)


def _layer(place: int, layer: Any, length: int) -> LayerHeld:
    _, heads, positions, width = layer.keys.shape
    return LayerHeld(
        layer=place,
        first=length - positions,
        positions=positions,
        kv_heads=heads,
        head_dim=width,
        nbytes=layer.keys.nbytes + layer.values.nbytes,
        window=getattr(layer, "sliding_window", None),
    )
