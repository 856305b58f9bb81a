"""Keys and values of many texts side by side, so that one pass reads a token of each.

What all of them begin with is held once. Where lengths differ, the shorter ones are padded on
the left, layer by layer, and a mask hides the padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from core.engine.memory import layers_of

PLAIN_LAYERS = (DynamicLayer, DynamicSlidingWindowLayer)
"""Layers with a key for each position, all or those of a window: what can be stacked."""


@dataclass(frozen=True)
class Rows:
    """One layer. Keys and values: [1 or row, KV head, position, width]."""

    shared: tuple[Tensor, Tensor]
    """Of the beginning that all rows share; no positions where they share none."""
    own: tuple[Tensor, Tensor]
    window: int | None


class StackedLayer(DynamicLayer):
    """A layer of a cache for one pass over several rows."""

    def __init__(self, rows: Rows, index: Tensor, length: int) -> None:
        super().__init__()
        self.shared, self.window, self.length = rows.shared, rows.window, length
        self.is_sliding = rows.window is not None
        self.keys: Tensor = rows.own[0].index_select(0, index)
        self.values: Tensor = rows.own[1].index_select(0, index)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Add the new positions; return all that they may see, the shared ones for each row."""
        new = key_states.shape[-2]
        self.length += new
        past = self.length if self.window is None else self.window - 1
        self.keys, keys = self._added(self.shared[0], self.keys, key_states, past)
        self.values, values = self._added(self.shared[1], self.values, value_states, past)
        return keys, values

    @staticmethod
    def _added(shared: Tensor, own: Tensor, new: Tensor, past: int) -> tuple[Tensor, Tensor]:
        """(what is kept, what the new positions see): a window drops its oldest positions."""
        own = torch.cat([own, new], dim=-2)
        room = past + new.shape[-2] - own.shape[-2]
        seen = shared[:, :, -room:] if room > 0 else shared[:, :, :0]
        every = torch.cat([seen.expand(new.shape[0], -1, -1, -1), own], dim=-2)
        return own[:, :, -past:], every[:, :, -(past + new.shape[-2]) :]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        if self.window is None:
            return self.length + query_length, 0
        offset = max(self.length - self.window + 1, 0)
        return self.length - offset + query_length, offset

    def get_seq_length(self) -> int:
        return self.length


@dataclass(frozen=True)
class Stack:
    """The keys and values of the first ``kept`` rows of a batch."""

    layers: tuple[Rows, ...]
    length: int
    """Positions of the longest row."""
    start: int
    """How many of them all rows share."""
    kept: int
    pads: Tensor | None
    """[row] positions that each lacks; ``None``: all rows are of one length."""

    @property
    def nbytes(self) -> int:
        return sum(t.nbytes for rows in self.layers for t in (*rows.shared, *rows.own))

    def cache(self, model: Any, index: Tensor) -> DynamicCache:
        """A cache that continues the rows at ``index``, each as often as it is named."""
        cache = DynamicCache(config=model.config)
        cache.layers = [StackedLayer(rows, index, self.length) for rows in self.layers]
        return cache

    def places(self, index: Tensor, new: int) -> dict[str, Tensor]:
        """The mask and the positions of ``new`` tokens after those rows; nothing if unpadded."""
        if self.pads is None:
            return {}
        pads = self.pads.index_select(0, index)[:, None]
        columns = torch.arange(self.length + new, device=pads.device)
        return {
            "attention_mask": (columns >= pads).long(),
            "position_ids": columns[self.length :] - pads,
        }

    def bare(self) -> Stack:
        """One row that holds nothing beyond what is shared."""
        layers = tuple(
            Rows(rows.shared, (rows.own[0][:1, :, :0], rows.own[1][:1, :, :0]), rows.window)
            for rows in self.layers
        )
        return Stack(layers, self.start, self.start, 1, None)

    def grown(self, caches: Sequence[DynamicCache], index: Tensor, kept: int) -> Stack:
        """The stack after a pass that read these caches, one behind the other."""
        layers = []
        every = [layers_of(cache) for cache in caches]
        for place, rows in enumerate(self.layers):
            read = [cache[place] for cache in every]
            keys = torch.cat([layer.keys for layer in read])[:kept]
            values = torch.cat([layer.values for layer in read])[:kept]
            layers.append(Rows(rows.shared, (keys, values), rows.window))
        length = every[0][0].get_seq_length()
        pads = None if self.pads is None else self.pads.index_select(0, index)
        return Stack(tuple(layers), length, self.start, min(kept, len(index)), pads)


def can_stack(config: Any, cache: DynamicCache) -> bool:
    """Whether every layer keeps keys, all or the latest, and neither states nor anything else."""
    kinds = getattr(config.get_text_config(), "layer_types", None) or ()
    return "chunked_attention" not in kinds and all(type(x) in PLAIN_LAYERS for x in cache.layers)


def fan(cache: DynamicCache) -> Stack:
    """One text, from which several may go on."""
    layers = tuple(
        Rows(
            (layer.keys, layer.values),
            (layer.keys[:, :, :0], layer.values[:, :, :0]),
            getattr(layer, "sliding_window", None),
        )
        for layer in layers_of(cache)
    )
    length = cache.get_seq_length()
    return Stack(layers, length, length, 1, None)


def gather(caches: Sequence[DynamicCache]) -> Stack:
    """Several texts of any lengths; at least one of them is not empty."""
    lengths = [cache.get_seq_length() for cache in caches]
    layers = []
    for place, like in enumerate(caches[lengths.index(max(lengths))].layers):
        own = tuple(
            _padded([getattr(cache.layers[place], name) for cache in caches], getattr(like, name))
            for name in ("keys", "values")
        )
        none = (own[0][:1, :, :0], own[1][:1, :, :0])
        layers.append(Rows(none, (own[0], own[1]), getattr(like, "sliding_window", None)))
    longest = max(lengths)
    pads = torch.tensor([longest - n for n in lengths], device=layers[0].own[0].device)
    return Stack(tuple(layers), longest, 0, len(caches), pads)


def _padded(tensors: Sequence[Tensor | None], like: Tensor) -> Tensor:
    """The rows under each other, their last positions aligned, zeros before them."""
    made = like.new_zeros(len(tensors), *like.shape[1:])
    for row, tensor in zip(made, tensors, strict=True):
        if tensor is not None and tensor.shape[-2]:
            row[:, -tensor.shape[-2] :] = tensor[0]
    return made
