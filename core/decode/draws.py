"""Many draws of one step, and whether they look like its distribution.

The dice of draw number i are those of the i-th time that the step's dice are thrown again, so
a thousand draws are what a thousand re-rolls would bring, and equal questions get equal draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from core.decode.draw import uniform
from core.decode.gamma import chi_square_tail
from core.decode.measure import checked, descending, weights
from core.faults import Fault
from core.trace import Choice

MAX_DRAWS: Final = 1_000_000
LEAST_EXPECTED: Final = 5.0
"""A cell of the χ² test expects at least this many draws; rarer tokens share one."""


@dataclass(frozen=True, eq=False)
class Draws:
    """How often each surviving token was drawn."""

    ids: Int[np.ndarray, " survivors"]
    """Token ids as they lie on the draw bar: from likely to unlikely."""
    probabilities: Float[np.ndarray, " survivors"]
    """After the filters; they sum to 1."""
    counts: Int[np.ndarray, " survivors"]
    count: int
    """Draws in all: the sum of ``counts``."""

    def __post_init__(self) -> None:
        for array in (self.ids, self.probabilities, self.counts):
            array.setflags(write=False)

    @property
    def expected(self) -> Float[np.ndarray, " survivors"]:
        return self.probabilities * self.count

    @property
    def spread(self) -> Float[np.ndarray, " survivors"]:
        """One standard deviation of each count: √(n · p · (1 - p))."""
        p = self.probabilities
        return np.asarray(np.sqrt(self.count * p * (1 - p)))


@dataclass(frozen=True)
class ChiSquare:
    """Pearson's test of counts against exact probabilities."""

    statistic: float
    """Σ (observed - expected)² ÷ expected, over the cells."""
    cells: int
    pooled: int
    """Tokens that share a cell because fewer than LEAST_EXPECTED draws are expected of each."""
    p: float | None
    """How often true dice deviate at least this much; ``None`` with a single cell."""

    @property
    def freedom(self) -> int:
        """Degrees of freedom: cells - 1."""
        return self.cells - 1


def uniforms(seed: int, step: int, first: int, count: int) -> Float[np.ndarray, " draws"]:
    """``uniform(seed, step, roll)`` for ``count`` rolls from ``first`` on."""
    rolls = range(first, first + count)
    return np.fromiter((uniform(seed, step, roll) for roll in rolls), np.float64, count)


def bar(choice: Choice) -> tuple[Int[np.ndarray, " survivors"], Float[np.ndarray, " survivors"]]:
    """The tokens of the draw bar from likely to unlikely, and their probabilities.

    ``choice`` must hold its stages. Tokens that a stage removed are not among them.
    """
    logits = choice.stages[-1].logits
    row = checked(logits)
    share = weights(row, row.max())
    share /= share.sum()
    order = descending(row)
    order = order[: int(np.count_nonzero(share))]
    return order, share[order]


def draws(choice: Choice, *, seed: int, step: int, count: int, first: int = 1) -> Draws:
    """Draw ``count`` times from the distribution that the stages of ``choice`` left.

    Draw i takes ``u = uniform(seed, step, first + i)``. Raises Fault for a count outside
    1 … MAX_DRAWS.
    """
    if not 1 <= count <= MAX_DRAWS:
        raise Fault("setting_out_of_range", name="draws", value=count, low=1, high=MAX_DRAWS)
    ids, p = bar(choice)
    ends = np.cumsum(p)
    u = uniforms(seed, step, first, count)
    # As in draw.needle: rounding may put u on the very end of the bar, and never beyond it.
    places = np.minimum(np.searchsorted(ends, u * ends[-1], side="right"), ids.size - 1)
    counts = np.bincount(places, minlength=ids.size)
    return Draws(ids, p, counts, count)


def chi_square(counts: ArrayLike, probabilities: ArrayLike) -> ChiSquare:
    """Compare ``counts`` with what ``probabilities`` (they sum to 1) let expect.

    Tokens of which at least LEAST_EXPECTED draws are expected have a cell each. All others
    are pooled in one cell; where even that expects fewer, the rarest of the single cells
    joins it. A draw of an impossible token makes the statistic infinite.
    """
    observed = np.asarray(counts, dtype=np.float64)
    exact = np.asarray(probabilities, dtype=np.float64)
    expected = exact * observed.sum()
    alone = np.flatnonzero(expected >= LEAST_EXPECTED)
    alone = alone[np.argsort(-expected[alone], kind="stable")]
    rest = np.flatnonzero((expected < LEAST_EXPECTED) & ((exact > 0) | (observed > 0)))
    if rest.size and expected[rest].sum() < LEAST_EXPECTED and alone.size:
        rest, alone = np.append(rest, alone[-1]), alone[:-1]
    cells = [(observed[i], expected[i]) for i in alone]
    if rest.size:
        cells.append((observed[rest].sum(), expected[rest].sum()))
    statistic = _statistic(cells)
    if bool((observed[exact == 0] > 0).any()):
        statistic = float("inf")
    p = chi_square_tail(statistic, len(cells) - 1) if len(cells) > 1 else None
    return ChiSquare(statistic, len(cells), int(rest.size), p)


def _statistic(cells: Sequence[tuple[float, float]]) -> float:
    return float(sum((seen - due) ** 2 / due for seen, due in cells if due > 0))
