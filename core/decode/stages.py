"""The decoding filters, one after the other, over the whole vocabulary.

Each of them keeps a *prefix* of the tokens in descending order: temperature never reorders,
and top-k, top-p and min-p drop from the bottom. So the vocabulary is sorted once, and a
filter is one number, the length of its prefix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from core.decode.measure import checked, descending, weights
from core.settings import Settings, StageName
from core.trace import Stage

TOLERANCE: Final = 1e-6
"""How far the mass may fall short of top-p (and, relatively, a ratio of min-p) and count as met.

Hand-typed numbers such as 0.5 + 0.3 and 32-bit logits don't add up to the last digit.
"""
MAX_FLOAT: Final = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Prefix:
    """The ``length`` highest tokens at one temperature: all that a filter can leave.

    ``cumulative[i]`` is the weight exp((logit - highest) ÷ T) of ranks 0 … i, not normalised.
    """

    sorted: Float[np.ndarray, " vocabulary"]
    """Raw logits, highest first."""
    temperature: float
    cumulative: Float[np.ndarray, " vocabulary"]
    length: int

    @classmethod
    def at(cls, ordered: Float[np.ndarray, " vocabulary"], t: float, length: int) -> Prefix:
        """The prefix under temperature ``t`` > 0; tokens whose probability is 0.0 fall off."""
        share = weights(ordered[:length], ordered[0], t)
        cumulative = np.cumsum(share)
        share /= cumulative[-1]
        # They descend, so the number of non-zero ones is the length of what can be drawn.
        alive = int(np.count_nonzero(share))
        return cls(ordered, t, cumulative, alive)

    @property
    def total(self) -> float:
        return float(self.cumulative[self.length - 1])

    @property
    def probabilities(self) -> Float[np.ndarray, " length"]:
        """Of the survivors, highest first."""
        share = weights(self.sorted[: self.length], self.sorted[0], self.temperature)
        share /= self.total
        return share

    def probability(self, position: int) -> float:
        """Of the token at a rank (from 0); 0 for those that fell off."""
        if position >= self.length:
            return 0.0
        return (
            float(
                weights(self.sorted[position : position + 1], self.sorted[0], self.temperature)[0]
            )
            / self.total
        )

    @property
    def entropy(self) -> float:
        """In nats: ln Z - Σ p · (logit - highest) ÷ T, that is -Σ p ln p without logarithms."""
        depth = (self.sorted[: self.length] - self.sorted[0]) / self.temperature
        mean = float(np.exp(depth) @ depth) / self.total
        return max(0.0, math.log(self.total) - mean)

    def cut(self, length: int) -> Prefix:
        return Prefix(self.sorted, self.temperature, self.cumulative, min(length, self.length))

    def mass(self, length: int) -> float:
        """Probability of the ``length`` highest tokens under this distribution."""
        return min(1.0, float(self.cumulative[length - 1]) / self.total)


def _top_p(before: Prefix, p: float) -> int:
    """Length of the shortest prefix whose mass reaches ``p``; for p = 1 that is everything."""
    if p >= 1:
        return before.length
    goal = (p - TOLERANCE) * before.total
    return int(np.searchsorted(before.cumulative[: before.length], goal)) + 1


def _min_p(before: Prefix, share: float) -> int:
    """How many tokens have at least ``share`` of the highest token's probability."""
    if share == 0:
        return before.length
    lowest = before.sorted[0] + before.temperature * math.log(share * (1 - TOLERANCE))
    ascending = before.sorted[: before.length][::-1]
    return before.length - int(np.searchsorted(ascending, lowest))


def filtered(before: Prefix, name: StageName, parameter: float | int | None) -> Prefix:
    """What stage ``name`` leaves of ``before``: never empty, and never reordered."""
    if parameter is None:
        return before
    if name == "temperature":
        if parameter == 0:
            return before.cut(1)
        same = parameter == before.temperature
        return before if same else Prefix.at(before.sorted, float(parameter), before.length)
    if name == "top_k":
        return before.cut(int(parameter))
    if name == "top_p":
        return before.cut(min(before.length, max(1, _top_p(before, parameter))))
    return before.cut(max(1, _min_p(before, parameter)))


@dataclass(frozen=True)
class Funnel:
    """All stages of one step, and the order of the vocabulary that they share."""

    logits: Float[np.ndarray, " vocabulary"]
    """Raw, float64."""
    order: Int[np.ndarray, " vocabulary"]
    """Token ids, highest first."""
    raw: Prefix
    """The model's own distribution."""
    prefixes: tuple[Prefix, ...]
    """After each stage, in the order of ``settings.filters``."""
    settings: Settings

    @property
    def last(self) -> Prefix:
        return self.prefixes[-1]

    def stages(self) -> tuple[Stage, ...]:
        """The records; a stage that changes nothing shares its array with the one before."""
        out: list[Stage] = []
        before, logits = self.raw, self._spread(self.raw)
        for name, after in zip(self.settings.filters, self.prefixes, strict=True):
            if (after.length, after.temperature) != (before.length, before.temperature):
                logits = self._spread(after)
            parameter = self.settings.parameter(name)
            out.append(Stage(name, parameter, logits, after.length, before.mass(after.length)))
            before = after
        return tuple(out)

    def _spread(self, prefix: Prefix) -> Float[np.ndarray, " vocabulary"]:
        """Logits by token id, -inf for what is not in the prefix."""
        t, size = prefix.temperature, self.logits.size
        ends = (prefix.sorted[0], prefix.sorted[prefix.length - 1])
        # Only at absurdly small T does logit ÷ T overflow; a softmax doesn't notice a shift.
        shift = ends[0] if t < 1 and max(map(abs, ends)) > MAX_FLOAT * t else 0.0
        with np.errstate(over="ignore"):
            if prefix.length == size:
                return np.asarray((self.logits - shift) / t)
            logits = np.full(size, -np.inf)
            logits[self.order[: prefix.length]] = (prefix.sorted[: prefix.length] - shift) / t
        return logits


def funnel(logits: ArrayLike, settings: Settings) -> Funnel:
    """Send ``logits`` through the filters of ``settings``. Raises Fault for NaN and +inf."""
    row = checked(logits)
    given = np.asarray(logits)
    order = descending(given if given.dtype == np.float32 else row)
    ordered = row[order]
    raw = Prefix.at(ordered, 1.0, row.size)
    prefixes: list[Prefix] = []
    now = raw
    for name in settings.filters:
        now = filtered(now, name, settings.filter(name))
        prefixes.append(now)
    return Funnel(row, order, raw, tuple(prefixes), settings)


def apply_stages(logits: ArrayLike, settings: Settings) -> tuple[Stage, ...]:
    """The stages in ``settings.order``; those that are off pass the same array through.

    ``logits`` [V] may contain -inf. Raises Fault for NaN, +inf, or no possible token at all.
    """
    return funnel(logits, settings).stages()
