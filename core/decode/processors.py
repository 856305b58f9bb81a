"""What changes the scores of single tokens by looking at the text so far, before any filter.

Each processor gives a new row of scores in the number format that it was given, so that the
results are transformers' own to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Int
from numpy.typing import ArrayLike

from core.decode.measure import checked, probabilities
from core.decode.past import Past
from core.decode.rules import Rules
from core.faults import Fault
from core.settings import ProcessorName, Settings
from core.trace import Stage

Row = np.ndarray[Any, np.dtype[np.floating[Any]]]
"""Scores [V], float32 as models give them or float64."""


@dataclass(frozen=True)
class Processed:
    """The scores after each processor that is on, in the order applied."""

    before: Row
    """As the model gave them."""
    names: tuple[ProcessorName, ...]
    rows: tuple[Row, ...]
    settings: Settings

    @property
    def last(self) -> Row:
        """What enters the first filter."""
        return self.rows[-1] if self.rows else self.before

    def stages(self) -> tuple[Stage, ...]:
        """The records. Tokens whose probability is 0.0 count as removed."""
        if not self.rows:
            return ()
        out: list[Stage] = []
        before = probabilities(self.before)
        for name, row in zip(self.names, self.rows, strict=True):
            after = probabilities(row)
            keeps = after > 0
            survivors, mass = int(np.count_nonzero(keeps)), min(1.0, float(before[keeps].sum()))
            logits = np.where(keeps, row, -np.inf).astype(np.float64)
            out.append(Stage(name, self.settings.parameter(name), logits, survivors, mass))
            before = after
        return tuple(out)


def processed(
    logits: ArrayLike, settings: Settings, past: Past | None, rules: Rules | None
) -> Processed:
    """The processors of ``settings`` on one row of scores.

    Without a ``past`` (numbers typed by hand) there is no text that they could look at, and
    none is applied. Raises Fault when one of them leaves no token possible, ValueError when
    banned texts or a pattern come without their ``rules``.
    """
    given = np.asarray(logits)
    row: Row = given if given.dtype == np.float32 else checked(logits)
    if past is None or not settings.processors:
        return Processed(row, (), (), settings)
    if rules is None and (settings.banned or settings.pattern):
        raise ValueError("banned texts and a pattern need rules: see core.decode.rules_for")
    checked(row)
    rows: list[Row] = []
    now = row
    for name in settings.processors:
        now = _STEPS[name](now, settings, past, rules or Rules())
        if not now.max() > -np.inf:
            raise Fault("no_token_left", rule=name.replace("_", "-"))
        rows.append(now)
    return Processed(row, settings.processors, tuple(rows), settings)


def _changed(row: Row, ids: Int[np.ndarray, " some"], values: Row | float) -> Row:
    if ids.size == 0:
        return row
    out = row.copy()
    # A score that grows without bounds would be no number any more.
    out[ids] = np.minimum(values, np.finfo(row.dtype).max)
    return out


def _known(ids: Sequence[int], size: int) -> Int[np.ndarray, " some"]:
    """The different ids that have a score, in ascending order (a prompt may have others)."""
    found = np.unique(np.array(ids, dtype=np.int64))
    return found[found < size]


def _repetition(row: Row, settings: Settings, past: Past, _: Rules) -> Row:
    ids = _known(past.ids, row.size)
    penalty = row.dtype.type(settings.repetition_penalty or 1.0)
    here = row[ids]
    with np.errstate(over="ignore"):
        return _changed(row, ids, np.where(here < 0, here * penalty, here / penalty))


def _presence(row: Row, settings: Settings, past: Past, _: Rules) -> Row:
    ids = _known(past.generated, row.size)
    return _changed(row, ids, row[ids] - row.dtype.type(settings.presence_penalty or 0.0))


def _frequency(row: Row, settings: Settings, past: Past, _: Rules) -> Row:
    ids, counts = np.unique(np.array(past.generated, dtype=np.int64), return_counts=True)
    ids, counts = ids[ids < row.size], counts[ids < row.size]
    paid = counts.astype(row.dtype) * row.dtype.type(settings.frequency_penalty or 0.0)
    return _changed(row, ids, row[ids] - paid)


def _no_repeat(row: Row, settings: Settings, past: Past, _: Rules) -> Row:
    """Impossible: what followed, anywhere in the text, the tokens that it now ends with."""
    n = settings.no_repeat_ngram or 1
    ids = np.array(past.ids, dtype=np.int64)
    starts = ids.size - n + 1
    if starts <= 0:
        return row
    same = np.ones(starts, dtype=bool)
    for offset in range(n - 1):
        same &= ids[offset : offset + starts] == ids[starts + offset]
    return _changed(row, _known(ids[n - 1 :][same].tolist(), row.size), -np.inf)


def _banned(row: Row, settings: Settings, past: Past, rules: Rules) -> Row:
    ends = [
        ids[-1]
        for ids in rules.banned
        if len(ids) == 1 or past.ids[max(0, len(past.ids) - len(ids) + 1) :] == ids[:-1]
    ]
    return _changed(row, _known(ends, row.size), -np.inf)


def _pattern(row: Row, settings: Settings, past: Past, rules: Rules) -> Row:
    if rules.pattern is None:
        return row
    keeps = rules.pattern.allowed(past.generated)
    return np.where(keeps, row, row.dtype.type(-np.inf))


_STEPS: Final[dict[ProcessorName, Callable[[Row, Settings, Past, Rules], Row]]] = {
    "repetition_penalty": _repetition,
    "presence_penalty": _presence,
    "frequency_penalty": _frequency,
    "no_repeat_ngram": _no_repeat,
    "banned": _banned,
    "pattern": _pattern,
}
