"""The table of candidates: what each token was worth before and after every filter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from core.decode.measure import checked, descending, rank
from core.decode.measure import probabilities as softmax
from core.settings import PROCESSOR_NAMES, StageName
from core.trace import Choice, Stage


@dataclass(frozen=True)
class Candidate:
    """One row. With ``id`` None it stands for all the tokens that have no row of their own."""

    id: int | None
    count: int
    """Tokens in this row: 1, or how many "all others" are."""
    chosen: bool
    rank: int | None
    """1 = the model's favourite; ``None`` for all others."""
    logit: float | None
    """Raw; -inf for an impossible token, ``None`` for all others."""
    probability_model: float
    after: tuple[float, ...]
    """Probability after each stage, in the order applied."""
    probability_filtered: float
    """The same as the last of ``after``: what the dice saw."""
    removed_by: StageName | None
    """The first stage that dropped it. ``None`` for survivors, for all others, and for tokens
    that the model itself rules out."""
    bar: tuple[float, float] | None
    """Stretch [low, high) of the draw bar; ``None`` if it has none. That of "all others" runs
    from the end of the top rows to 1, and a chosen token outside the top lies within it; where
    processors changed the order, the others stand between the rows and have none."""


def candidates(
    logits: ArrayLike, choice: Choice, n: int, *, also: Iterable[int] = ()
) -> tuple[Candidate, ...]:
    """The ``n`` tokens that the model finds likeliest, the chosen one, those in ``also`` (a
    search), and one row for all others, so that every column sums to 1.

    ``choice`` must hold its stages; ``logits`` [V] are the ones it was made from. Raises Fault
    for a token in ``also`` that the vocabulary doesn't have.
    """
    row = checked(logits)
    table = Table(row, choice)
    given = np.asarray(logits)
    top = top_ids(given if given.dtype == np.float32 else row, n)
    rows: list[Candidate] = []
    low: float | None = None if table.processed else 0.0
    for position, token in enumerate(top):
        rows.append(table.row(token, position + 1, low))
        low = None if low is None else low + rows[-1].probability_filtered
    extra = dict.fromkeys([choice.id, *also]).keys() - set(top)
    rows += sorted((table.row(token) for token in extra), key=lambda c: c.rank or 0)
    if len(rows) < row.size:
        rows.append(table.others([*top, *extra], low))
    return tuple(rows)


def top_ids(logits: Float[np.ndarray, " vocabulary"], n: int) -> list[int]:
    """The first ``n`` of the descending order, without sorting the rest."""
    n = min(n, logits.size)
    if n <= 0:
        return []
    nth = np.partition(logits, logits.size - n)[logits.size - n]
    pool = np.flatnonzero(logits >= nth)
    return [int(token) for token in pool[descending(logits[pool])[:n]]]


class Table:
    """The columns of the candidates' table, shared by its rows."""

    def __init__(self, logits: Float[np.ndarray, " vocabulary"], choice: Choice) -> None:
        if not choice.stages:
            raise ValueError("this choice has no stages: make a full one with choose()")
        self.logits = logits
        self.choice = choice
        self.model = softmax(logits)
        self.columns = columns(choice.stages)
        changed = [stage.logits for stage in choice.stages if stage.name in PROCESSOR_NAMES]
        self.processed = bool(changed)
        self.entering = changed[-1] if changed else logits
        """By which the survivors stand on the bar."""

    def row(self, token: int, place: int | None = None, low: float | None = None) -> Candidate:
        """The row of one token; its rank and the start of its stretch, if already known."""
        place = place or rank(self.logits, token)
        low = self._ahead(token) if low is None else low
        after = tuple(float(column[token]) for column in self.columns)
        return Candidate(
            id=token,
            count=1,
            chosen=token == self.choice.id,
            rank=place,
            logit=float(self.logits[token]),
            probability_model=float(self.model[token]),
            after=after,
            probability_filtered=after[-1],
            removed_by=self._removed_by(token),
            bar=(low, min(1.0, low + after[-1])) if after[-1] > 0 else None,
        )

    def others(self, shown: Sequence[int], low: float | None) -> Candidate:
        """The row for every token not in ``shown``; the top rows end at ``low`` on the bar."""
        after = tuple(_rest(column, shown) for column in self.columns)
        return Candidate(
            id=None,
            count=self.logits.size - len(shown),
            chosen=False,
            rank=None,
            logit=None,
            probability_model=_rest(self.model, shown),
            after=after,
            probability_filtered=after[-1],
            removed_by=None,
            bar=(min(1.0, low), 1.0) if low is not None and after[-1] > 0 else None,
        )

    def _removed_by(self, token: int) -> StageName | None:
        if self.model[token] == 0:
            return None
        for stage, column in zip(self.choice.stages, self.columns, strict=True):
            if column[token] == 0:
                return stage.name
        return None

    def _ahead(self, token: int) -> float:
        """Filtered probability of all the tokens before this one on the bar."""
        filtered, here = self.columns[-1], self.entering[token]
        ties = filtered[:token][self.entering[:token] == here]
        return float(filtered[self.entering > here].sum() + ties.sum())


def _rest(column: Float[np.ndarray, " vocabulary"], shown: Sequence[int]) -> float:
    """Sum of the column without the ``shown`` tokens: exactly 0 when nothing else is left."""
    rows = list(shown)
    kept = column[rows]
    column[rows] = 0
    total = float(column.sum())
    column[rows] = kept
    return total


def columns(stages: Sequence[Stage]) -> list[Float[np.ndarray, " vocabulary"]]:
    """Probabilities after each stage; stages that share an array share the column."""
    made: dict[int, Float[np.ndarray, " vocabulary"]] = {}
    for stage in stages:
        if id(stage.logits) not in made:
            made[id(stage.logits)] = softmax(stage.logits)
    return [made[id(stage.logits)] for stage in stages]


def locate(logits: ArrayLike, token: int) -> tuple[int, float]:
    """Rank (1 = the model's favourite) and model probability of one token.

    Raises Fault for a token that the vocabulary doesn't have.
    """
    row = checked(logits)
    position = rank(row, token)
    return position, float(softmax(row)[token])
