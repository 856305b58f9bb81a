"""A model that reads a text a few tokens at a time, and can take the last ones back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Float
from transformers import DynamicCache

from core.engine.arrays import numpy_of
from core.engine.local import LocalEngine
from core.engine.stack import can_stack
from core.faults import Fault
from core.lab.kv_passes import new_cache, read


class Reader(Protocol):
    """One text, read by one model."""

    @property
    def length(self) -> int:
        """Tokens read so far."""

    @property
    def ms(self) -> float:
        """Of the last pass; waiting for the model is not counted."""

    def read(self, new: Sequence[int]) -> Float[np.ndarray, "new vocabulary"]:
        """Read on, in one pass: the scores of what may follow each of the new tokens."""

    def back(self, count: int) -> None:
        """Forget the last ``count`` tokens of the latest pass or passes."""


class CachedReader:
    """A model of this process with a KV cache of its own.

    Raises Fault for a model whose layers keep a state, from which there is no way back.
    """

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self.ms = 0.0
        with engine.borrowed() as model:
            self._cache: DynamicCache = new_cache(model)
            if not can_stack(model.config, self._cache):
                raise Fault("kv_needs_keys", architecture=engine.info.architecture)
        # A sliding window then keeps what it drops until it is known that nobody goes back.
        self._cache.activate_past_recording()
        self._newest = 0

    @property
    def length(self) -> int:
        return int(self._cache.get_seq_length())

    @property
    def cache(self) -> DynamicCache:
        """Never to be written to."""
        return self._cache

    def read(self, new: Sequence[int]) -> Float[np.ndarray, "new vocabulary"]:
        with self._engine.borrowed() as model:
            began = time.perf_counter()
            logits = numpy_of(read(model, new, self._cache, keep=len(new)))
            self.ms = (time.perf_counter() - began) * 1000
        return logits

    def prefill(self, ids: Sequence[int]) -> None:
        """Read the beginning of the text, which is never taken back."""
        if ids:
            with self._engine.borrowed() as model:
                read(model, ids, self._cache, keep=1)
                self._cache.crop(0)

    def back(self, count: int) -> None:
        with self._engine.borrowed():
            self._cache.crop(-count)
