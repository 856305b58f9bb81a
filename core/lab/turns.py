"""Work in turns, put together: a generator that tells how far it is and returns what it found."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, TypeVar

R = TypeVar("R")
T = TypeVar("T")
D = TypeVar("D")


def through(turns: Generator[Any, None, R], tell: Callable[[Any], T]) -> Generator[T, None, R]:
    """The turns as a part of longer work, each told as ``tell`` makes it; returns their result."""
    while True:
        try:
            now = next(turns)
        except StopIteration as end:
            result: R = end.value
            return result
        yield tell(now)


def between(turns: Generator[float, None, R], low: float, high: float) -> Generator[float, None, R]:
    """Turns that tell the share done, as the part from ``low`` to ``high`` of a longer work."""
    return (yield from through(turns, lambda share: low + (high - low) * share))


def shares(record: D) -> Callable[[float], D]:
    """What turns a share done into the record at that share, for :func:`through`.

    ``record`` is a frozen dataclass with a field ``progress``.
    """
    return lambda share: replace(record, progress=share)  # type: ignore[type-var]


def ended(turns: Generator[Any, None, R]) -> R:
    """The result, without stopping in between."""
    while True:
        try:
            next(turns)
        except StopIteration as end:
            result: R = end.value
            return result
