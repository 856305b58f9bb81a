"""What an engine remembers, within a byte budget: forwards, and KV caches by prefix."""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:  # importing them takes seconds, and a page's first paint needs this module
    from torch import Tensor
    from transformers import DynamicCache

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

Ids = tuple[int, ...]
Route = tuple[int, Hashable]
"""(length of the prompt, edit): with the ids, how keys and values came about, to the bit."""
Path = tuple[Route, Ids]


class ByteLRU(Generic[K, T]):
    """A dictionary that forgets the least recently used entries beyond ``limit`` bytes.

    Thread-safe. An entry larger than the whole budget is not kept at all.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._items: OrderedDict[K, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> T | None:
        with self._lock:
            if key not in self._items:
                return None
            self._items.move_to_end(key)
            return self._items[key][0]

    def put(self, key: K, value: T, size: int) -> None:
        with self._lock:
            self._drop(key)
            if size > self.limit:
                return
            self._items[key] = (value, size)
            self.used += size
            while self.used > self.limit:
                self._drop(next(iter(self._items)))

    def drop(self, key: K) -> None:
        with self._lock:
            self._drop(key)

    def known(self) -> list[K]:
        """The keys held now, longest unused first."""
        with self._lock:
            return list(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def _drop(self, key: K) -> None:
        found = self._items.pop(key, None)
        if found is not None:
            self.used -= found[1]


def fork(cache: DynamicCache) -> DynamicCache:
    """A copy that may be extended without touching the original.

    Updates of keys and values make new tensors; the states of linear attention and of
    convolutions (LFM2, Qwen3-Next) are written in place, so they are copied.
    """
    twin = copy.copy(cache)
    twin.layers = [
        copy.deepcopy(layer) if _has_state(layer) else copy.copy(layer) for layer in cache.layers
    ]
    return twin


def _has_state(layer: Any) -> bool:
    """Whether the layer keeps a state instead of (or besides) one key for each position."""
    return hasattr(layer, "conv_states")


def layers_of(cache: DynamicCache) -> list[Any]:
    """Those of attention share the fields ``keys`` and ``values``, whatever their class."""
    return list(cache.layers)


def cut(cache: DynamicCache, length: int) -> DynamicCache | None:
    """The same cache as it was after ``length`` positions, without copying.

    ``None`` where that is gone: a sliding window has dropped its oldest positions, and a state
    has no way back.
    """
    if any(_has_state(layer) for layer in layers_of(cache)):
        return None
    twin = fork(cache)
    for layer in layers_of(twin):
        if layer.keys is None or layer.keys.shape[-2] != layer.get_seq_length():
            return None
        layer.keys = layer.keys[..., :length, :]
        layer.values = layer.values[..., :length, :]
        if hasattr(layer, "cumulative_length"):
            layer.cumulative_length = length
    return twin


def cache_bytes(cache: DynamicCache) -> int:
    """Bytes of the keys, values and states held."""
    return sum(tensor.nbytes for layer in layers_of(cache) for tensor in _tensors(layer))


def _tensors(layer: Any) -> list[Tensor]:
    held = [getattr(layer, "keys", None), getattr(layer, "values", None)]
    for name in ("conv_states", "recurrent_states"):
        held += getattr(layer, name, {}).values()
    return [tensor for tensor in held if tensor is not None]


class PrefixCache:
    """KV caches by path; the longest common prefix of any of them can be taken up again."""

    def __init__(self, limit: int) -> None:
        self._items: ByteLRU[Path, DynamicCache] = ByteLRU(limit)

    @property
    def used(self) -> int:
        return self._items.used

    def longest(self, route: Route, ids: Ids) -> tuple[int, DynamicCache | None]:
        """(positions covered, a cache of its own) for the best known prefix of ``ids``."""
        best: tuple[int, Path | None] = (0, None)
        for path in self._items.known():
            if path[0] != route:
                continue
            common = _common(path[1], ids)
            if common >= max(route[0], best[0] + 1):
                best = (common, path)
        length, found = best
        while found is not None:
            cache = self._items.get(found)
            if cache is None:
                break
            twin = fork(cache) if length == len(found[1]) else cut(cache, length)
            if twin is not None:
                return length, twin
            found = self._exact(route, ids)
            length = len(found[1]) if found else 0
        return 0, None

    def _exact(self, route: Route, ids: Ids) -> Path | None:
        """The longest path that is wholly a prefix of ``ids``: needs no cutting."""
        whole = [
            path
            for path in self._items.known()
            if path[0] == route and path[1] == ids[: len(path[1])]
        ]
        return max(whole, key=lambda path: len(path[1]), default=None)

    def store(self, route: Route, ids: Ids, cache: DynamicCache) -> None:
        """Remember ``cache``; shorter paths that can be cut out of it are forgotten."""
        self._items.put((route, ids), cache, cache_bytes(cache))
        if all(_whole(layer, len(ids)) for layer in layers_of(cache)):
            for path in self._items.known():
                shorter = path[0] == route and len(path[1]) < len(ids)
                if shorter and ids[: len(path[1])] == path[1]:
                    self._items.drop(path)


def _whole(layer: Any, length: int) -> bool:
    """Whether any shorter prefix can be cut out of the layer."""
    return not _has_state(layer) and layer.keys.shape[-2] == length


def _common(a: Ids, b: Ids) -> int:
    for index, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return index
    return min(len(a), len(b))
