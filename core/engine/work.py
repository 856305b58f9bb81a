"""How much of a time was work: a model reads for one asker at a time, and the others wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Final


@dataclass
class Work:
    """What was done in this thread between two moments."""

    seconds: float = 0.0
    """From the first to the last, once it is over."""
    waited: float = 0.0
    """Seconds of them in which somebody else had the model."""
    passes: int = 0
    """Passes that were computed; what is remembered needs none."""

    @property
    def ms(self) -> float:
        """Milliseconds of work, without the waiting."""
        return (self.seconds - self.waited) * 1000


_WATCHED: Final[ContextVar[tuple[Work, ...]]] = ContextVar("watched", default=())


@contextmanager
def working() -> Iterator[Work]:
    """Watch what this thread does until the end of the block."""
    found, before, began = Work(), _WATCHED.get(), time.perf_counter()
    token = _WATCHED.set((*before, found))
    try:
        yield found
    finally:
        _WATCHED.reset(token)
        found.seconds = time.perf_counter() - began


def passed() -> None:
    """Whoever computes a pass says so."""
    for each in _WATCHED.get():
        each.passes += 1


class ModelLock:
    """One pass at a time; the wait for it is no work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        began = time.perf_counter()
        self._lock.acquire()
        waited = time.perf_counter() - began
        for each in _WATCHED.get():
            each.waited += waited

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._lock.release()

    def locked(self) -> bool:
        return self._lock.locked()
