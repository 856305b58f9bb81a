"""The decoding filters, one after the other, over the whole vocabulary.

Each of them keeps an *interval* of the tokens in descending order: temperature never reorders,
top-k, top-p and min-p drop from the bottom, and typical-p, which keeps what is about as
surprising as expected, drops from both ends. So the vocabulary is sorted once, and a filter is
two numbers, the ends of its interval.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from core.decode.measure import checked, descending, weights
from core.settings import FilterName, Settings
from core.trace import Stage

TOLERANCE: Final = 1e-6
"""How far the mass may fall short of top-p (and, relatively, a ratio of min-p) and count as met.

Hand-typed numbers such as 0.5 + 0.3 and 32-bit logits don't add up to the last digit.
"""
TIE: Final = 1e-9
"""Surprises (in nats) that differ by less count as the same."""
MAX_FLOAT: Final = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Interval:
    """``length`` neighbours in the descending order at one temperature: all a filter can leave.

    ``cumulative[i]`` is the weight exp((logit - highest) ÷ T) of the first ``i`` + 1 of them,
    not normalised. It may run on below the interval, so that dropping from the bottom is free.
    """

    start: int
    """Its first rank, from 0."""
    sorted: Float[np.ndarray, " below"]
    """Scores from there on, highest first, down to the lowest of the vocabulary."""
    temperature: float
    cumulative: Float[np.ndarray, " computed"]
    length: int

    @classmethod
    def at(cls, start: int, below: Float[np.ndarray, " below"], t: float, length: int) -> Interval:
        """The interval at temperature ``t`` > 0; tokens whose probability is 0.0 fall off."""
        share = weights(below[:length], below[0], t)
        cumulative = np.cumsum(share)
        share /= cumulative[-1]
        # They descend, so the number of non-zero ones is the length of what can be drawn.
        alive = int(np.count_nonzero(share))
        return cls(start, below, t, cumulative, alive)

    @property
    def total(self) -> float:
        return float(self.cumulative[self.length - 1])

    @property
    def stop(self) -> int:
        """The rank behind its last one."""
        return self.start + self.length

    @property
    def depth(self) -> Float[np.ndarray, " length"]:
        """(score - highest) ÷ T: ln p but for a constant."""
        return np.asarray((self.sorted[: self.length] - self.sorted[0]) / self.temperature)

    def probability(self, position: int) -> float:
        """Of the token at a rank (from 0); 0 for those outside."""
        if not self.start <= position < self.stop:
            return 0.0
        here = self.sorted[position - self.start : position - self.start + 1]
        return float(weights(here, self.sorted[0], self.temperature)[0]) / self.total

    @property
    def entropy(self) -> float:
        """In nats: ln Z - Σ p · (score - highest) ÷ T, that is -Σ p ln p without logarithms."""
        depth = self.depth
        mean = float(np.exp(depth) @ depth) / self.total
        return max(0.0, math.log(self.total) - mean)

    def cut(self, first: int, length: int) -> Interval:
        """``length`` of its tokens, without the ``first`` ones."""
        if first:
            return Interval.at(self.start + first, self.sorted[first:], self.temperature, length)
        return Interval(self.start, self.sorted, self.temperature, self.cumulative, length)

    def mass(self, inner: Interval) -> float:
        """Probability, under this distribution, of the tokens of an interval within it."""
        first = inner.start - self.start
        above = float(self.cumulative[first - 1]) if first else 0.0
        held = float(self.cumulative[first + inner.length - 1]) - above
        return min(1.0, held / self.total)


def _top_k(before: Interval, k: float) -> tuple[int, int]:
    return 0, min(before.length, int(k))


def _top_p(before: Interval, p: float) -> tuple[int, int]:
    """The fewest of the highest whose mass reaches ``p``; for p = 1 that is everything."""
    if p >= 1:
        return 0, before.length
    goal = (p - TOLERANCE) * before.total
    held = int(np.searchsorted(before.cumulative[: before.length], goal)) + 1
    return 0, min(before.length, held)


def _min_p(before: Interval, share: float) -> tuple[int, int]:
    """Those that have at least ``share`` of the highest token's probability."""
    if share == 0:
        return 0, before.length
    lowest = before.sorted[0] + before.temperature * math.log(share * (1 - TOLERANCE))
    ascending = before.sorted[: before.length][::-1]
    return 0, max(1, before.length - int(np.searchsorted(ascending, lowest)))


def _typical_p(before: Interval, p: float) -> tuple[int, int]:
    """Those whose surprise -ln p is closest to the entropy, until their mass reaches ``p``.

    Tokens at the same distance stand or fall together, as in transformers. The distance first
    falls and then rises along the order, so what lies within one is an interval.
    """
    if p >= 1:
        return 0, before.length
    surprise = math.log(before.total) - before.depth
    middle = before.entropy
    sums = np.concatenate([[0.0], before.cumulative[: before.length]])
    goal = (p - TOLERANCE) * before.total

    def within(distance: float) -> tuple[int, int]:
        reach = distance + TIE
        ends = np.searchsorted(surprise, [middle - reach, middle + reach])
        return int(ends[0]), int(ends[1])

    def reached(distance: float) -> bool:
        low, high = within(distance)
        return bool(sums[high] - sums[low] >= goal)

    turn = int(np.searchsorted(surprise, middle))
    sides = (middle - surprise[:turn][::-1], surprise[turn:] - middle)
    firsts = [bisect_left(side, True, key=reached) for side in sides]
    enough = [float(side[i]) for side, i in zip(sides, firsts, strict=True) if i < side.size]
    low, high = within(min(enough)) if enough else (0, before.length)
    return low, high - low


_CUTS: Final[dict[FilterName, Callable[[Interval, float], tuple[int, int]]]] = {
    "top_k": _top_k,
    "top_p": _top_p,
    "min_p": _min_p,
    "typical_p": _typical_p,
}
"""How many tokens a filter drops from the top, and how many it keeps after them."""


def filtered(before: Interval, name: FilterName, parameter: float | int | None) -> Interval:
    """What filter ``name`` leaves of ``before``: never empty, and never reordered."""
    if parameter is None:
        return before
    if name == "temperature":
        if parameter == 0:
            return before.cut(0, 1)
        if parameter == before.temperature:
            return before
        return Interval.at(before.start, before.sorted, float(parameter), before.length)
    return before.cut(*_CUTS[name](before, parameter))


@dataclass(frozen=True)
class Funnel:
    """All stages of one step, and the order of the vocabulary that they share."""

    logits: Float[np.ndarray, " vocabulary"]
    """As they enter the first filter, float64."""
    order: Int[np.ndarray, " vocabulary"]
    """Token ids, highest first."""
    entered: Interval
    """The distribution that enters the first filter."""
    intervals: tuple[Interval, ...]
    """After each stage, in the order of ``settings.filters``."""
    settings: Settings

    @property
    def last(self) -> Interval:
        return self.intervals[-1]

    def stages(self) -> tuple[Stage, ...]:
        """The records; a stage that changes nothing shares its array with the one before."""
        out: list[Stage] = []
        before, logits = self.entered, self._spread(self.entered)
        for name, after in zip(self.settings.filters, self.intervals, strict=True):
            same = (after.start, after.length) == (before.start, before.length)
            if not same or after.temperature != before.temperature:
                logits = self._spread(after)
            parameter = self.settings.parameter(name)
            out.append(Stage(name, parameter, logits, after.length, before.mass(after)))
            before = after
        return tuple(out)

    def _spread(self, kept: Interval) -> Float[np.ndarray, " vocabulary"]:
        """Logits by token id, -inf for what is not kept."""
        t, size = kept.temperature, self.logits.size
        ends = (kept.sorted[0], kept.sorted[kept.length - 1])
        # Only at absurdly small T does logit ÷ T overflow; a softmax doesn't notice a shift.
        shift = ends[0] if t < 1 and max(map(abs, ends)) > MAX_FLOAT * t else 0.0
        with np.errstate(over="ignore"):
            if kept.length == size:
                return np.asarray((self.logits - shift) / t)
            logits = np.full(size, -np.inf)
            logits[self.order[kept.start : kept.stop]] = (kept.sorted[: kept.length] - shift) / t
        return logits


def funnel(logits: ArrayLike, settings: Settings) -> Funnel:
    """Send ``logits`` through the filters of ``settings``. Raises Fault for NaN and +inf."""
    row = checked(logits)
    given = np.asarray(logits)
    order = descending(given if given.dtype == np.float32 else row)
    ordered = row[order]
    entered = Interval.at(0, ordered, 1.0, row.size)
    intervals: list[Interval] = []
    now = entered
    for name in settings.filters:
        now = filtered(now, name, settings.filter(name))
        intervals.append(now)
    return Funnel(row, order, entered, tuple(intervals), settings)


def apply_stages(logits: ArrayLike, settings: Settings) -> tuple[Stage, ...]:
    """The filters in ``settings.order``; those that are off pass the same array through.

    ``logits`` [V] may contain -inf. Raises Fault for NaN, +inf, or no possible token at all.
    """
    return funnel(logits, settings).stages()
