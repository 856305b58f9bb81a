"""Times that mean something on a shared machine: medians of repeats taken in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from core.lab.turns import ended

RESTLESS: Final = 1.5
"""An unrest above which something else was running; a quiet machine stays below 1.4."""
FEW: Final = 9
"""Repeats of which the slowest tells whether something else was running."""


@dataclass(frozen=True)
class Spread:
    """Measured wall times of one thing, in milliseconds."""

    median: float
    low: float
    """The quickest repeat: what the machine can do when nobody disturbs it."""
    high: float
    repeats: int

    @classmethod
    def of(cls, times: list[float]) -> Spread:
        """Of at least one time."""
        return cls(float(np.median(times)), min(times), max(times), len(times))


def unrest(times: Iterable[Spread | None]) -> float:
    """How much longer than its quickest repeat others take, the median over several things; 1 is
    calm. Of few repeats the slowest counts; among many one always hiccups, so the median does.
    """
    known = [_unrest(t) for t in times if t is not None and t.repeats > 1 and t.low > 0]
    return float(np.median(known)) if known else 1.0


def _unrest(time: Spread) -> float:
    return (time.high if time.repeats <= FEW else time.median) / time.low


def milliseconds(call: Callable[[], object]) -> float:
    """How long one call takes."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def in_turns(
    calls: Mapping[str, Callable[[], object]], repeats: int, *, warm: bool = True
) -> Generator[float, None, dict[str, Spread]]:
    """Time each call ``repeats`` times, in turns, so that a busy moment meets all of them alike.

    A generator, for work that can be stopped between two calls: it yields the share done, and
    returns the spreads. With ``warm`` each is called once before, untimed. Raises ValueError
    for no repeats.
    """
    if repeats < 1:
        raise ValueError("at least one repeat")
    rounds = repeats + warm
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        for place, (name, call) in enumerate(calls.items()):
            took = milliseconds(call)
            if turn or not warm:
                times[name].append(took)
            yield (turn + (place + 1) / len(calls)) / rounds
    return {name: Spread.of(found) for name, found in times.items()}


def interleaved(
    calls: Mapping[str, Callable[[], object]], repeats: int, *, warm: bool = True
) -> dict[str, Spread]:
    """The spreads of ``in_turns``, without stopping."""
    return ended(in_turns(calls, repeats, warm=warm))
