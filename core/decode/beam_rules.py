"""The rules of beam search (DESIGN §4), without a model: from candidates to a decision.

They are those of transformers 5: one step of a search here and there keeps the same beams,
holds the same hypotheses and stops at the same moment. "best" is its
``early_stopping="never"``, the only one of its rules that never stops while a live beam could
still win; ``early_stopping=False``, its default, takes the present length for the final one
when α > 0, and so may miss better texts. For α ≤ 0 the two are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.beam_records import (
    BeamCandidate,
    BeamStep,
    BeamStop,
    Fate,
    Hypothesis,
    HypothesisEnd,
    Loss,
)
from core.decode.candidates import top_ids
from core.decode.measure import log_softmax
from core.settings import BeamSettings

Ids = tuple[int, ...]


class Beam(NamedTuple):
    """A live text."""

    tokens: Ids = ()
    token_logprobs: tuple[float, ...] = ()
    path: tuple[int, ...] = ()
    logprob: float = 0.0
    ranked: float | None = None
    drawn: float = 0.0
    """Σ ln p of what the dice saw: at the temperature of the draws."""
    group: int | None = None


class Option(NamedTuple):
    """A token that a beam could take."""

    parent: int
    token: int
    token_logprob: float
    logprob: float
    ranked: float | None = None
    drawn: float = 0.0
    group: int | None = None


@dataclass(frozen=True)
class Question:
    settings: BeamSettings
    end_ids: Ids
    limit: int
    """Most tokens generated."""
    limit_end: Literal["output_limit", "context_limit"]
    """Which of the two limits that is."""


@dataclass(frozen=True)
class State:
    """Where a search stands between two steps."""

    index: int = 0
    beams: tuple[Beam, ...] = (Beam(),)
    held: tuple[Hypothesis, ...] = ()
    """The best ``width`` hypotheses so far, the best first."""
    displaced: tuple[Hypothesis, ...] = ()
    stop: BeamStop | None = None


def score(logprob: float, length: int, penalty: float) -> float:
    """Σ ln p ÷ length^α."""
    return float(logprob / length**penalty)


def looked_at(width: int, ends: int) -> int:
    """Candidates of a step: enough that ``width`` beams go on whatever ends."""
    return max(2, 1 + ends) * width


def options(rows: Sequence[ArrayLike], beams: Sequence[Beam], count: int) -> list[Option]:
    """The ``count`` likeliest continuations of all beams; impossible ones never count.

    ``rows`` [beam, V] are raw logits. Ties go to the earlier beam, then to the lower id.
    """
    found = []
    for parent, (row, beam) in enumerate(zip(rows, beams, strict=True)):
        logp = log_softmax(row)
        for token in top_ids(logp, count):
            step = float(logp[token])
            if step > -np.inf:
                found.append(Option(parent, token, step, beam.logprob + step))
    found.sort(key=lambda option: -option.logprob)
    return found[:count]


def needed(looked: Sequence[Option], width: int, end_ids: Ids) -> list[Option]:
    """Of what :func:`options` found, as many as ``width`` beams need to go on; 4·width at least.

    With many end tokens ``looked_at`` finds far more, which decide nothing.
    """
    going = (place for place, option in enumerate(looked) if option.token not in end_ids)
    last = next(islice(going, width - 1, None), len(looked))
    return list(looked[: max(4 * width, last + 1)])


def settle(looked: Sequence[Option], state: State, question: Question) -> tuple[State, BeamStep]:
    """One step: who goes on, who is complete, who lost, and whether the search ends.

    ``looked`` comes from :func:`options`. An end token completes a text only among the
    ``width`` best; at the limit, all of those are complete.
    """
    settings, width = question.settings, question.settings.width
    last = state.index + 1 == question.limit
    ends = [option.token in question.end_ids for option in looked]
    complete = [i for i in range(min(width, len(looked))) if ends[i] or last]
    going = [] if last else [i for i, end in enumerate(ends) if not end][:width]
    made = [completed(looked, i, state, question) for i in complete]
    merged = sorted([*state.held, *made], key=lambda hypothesis: -hypothesis.score)
    held, dropped = tuple(merged[:width]), merged[width:]
    kept = {h.path[-1] for h in held if len(h.path) == state.index + 1}
    gone = [h for h in dropped if len(h.path) <= state.index]

    places = _Places(going, kept, held, width, settings.length_penalty)
    candidates = places.judged(looked, ends, state.index)
    beams = tuple(grown(looked[i], i, state.beams) for i in going)
    hope, bar = _outlook(beams, held, state.index + 1, question)
    step = BeamStep(
        index=state.index,
        beams=len(state.beams),
        candidates=candidates,
        live=tuple(i for i, c in enumerate(candidates) if c.fate == "live"),
        finished=tuple(sorted(kept)),
        displaced=tuple(h.node for h in gone),
        hypotheses=len(held),
        hope=hope,
        bar=bar,
    )
    lost = tuple(replace(h, loss=worse(h.score, held[-1])) for h in gone)
    stop = _stop(held, hope, bar, last and not all(ends), question)
    return State(state.index + 1, beams, held, (*lost, *state.displaced), stop), step


def grown(option: Option, place: int, beams: Sequence[Beam]) -> Beam:
    """The beam that takes an option, which stands at ``place`` of its step."""
    parent = beams[option.parent]
    return Beam(
        (*parent.tokens, option.token),
        (*parent.token_logprobs, option.token_logprob),
        (*parent.path, place),
        option.logprob,
        option.ranked,
        option.drawn,
        option.group,
    )


def completed(looked: Sequence[Option], place: int, state: State, question: Question) -> Hypothesis:
    """The hypothesis that an option makes: by its end token, or by the limit."""
    beam = grown(looked[place], place, state.beams)
    ended = beam.tokens[-1] in question.end_ids
    end: HypothesisEnd = "end_token" if ended else question.limit_end
    return hypothesis_of(beam, end, question.settings.length_penalty)


def hypothesis_of(beam: Beam, end: HypothesisEnd, penalty: float) -> Hypothesis:
    """A beam of at least one token as a hypothesis."""
    return Hypothesis(
        tokens=beam.tokens,
        token_logprobs=beam.token_logprobs,
        logprob=beam.logprob,
        score=score(beam.logprob, len(beam.tokens), penalty),
        end=end,
        path=beam.path,
        ranked=beam.ranked,
        group=beam.group,
    )


@dataclass(frozen=True)
class _Places:
    """Who holds the places of a step, and what that means for each candidate."""

    going: list[int]
    kept: set[int]
    held: tuple[Hypothesis, ...]
    width: int
    penalty: float

    def judged(
        self, looked: Sequence[Option], ends: Sequence[bool], index: int
    ) -> tuple[BeamCandidate, ...]:
        scores = [score(option.logprob, index + 1, self.penalty) for option in looked]
        losses = [self._loss(i, end, scores, index) for i, end in enumerate(ends)]
        return tuple(
            candidate_of(
                option, value, end, "lost" if loss else "finished" if end else "live", loss
            )
            for option, value, end, loss in zip(looked, scores, ends, losses, strict=True)
        )

    def _loss(self, place: int, end: bool, scores: Sequence[float], index: int) -> Loss | None:
        if place in self.kept or place in self.going:
            return None
        if place < self.width and (end or not self.going):
            return worse(scores[place], self.held[-1])
        winner = self.width - 1 if end or not self.going else self.going[-1]
        reason: Literal["outside_beam", "end_outside_beam"]
        reason = "end_outside_beam" if end else "outside_beam"
        return Loss(reason, (index, winner), scores[winner] - scores[place])


def candidate_of(
    option: Option, value: float, is_end: bool, fate: Fate, loss: Loss | None
) -> BeamCandidate:
    """The record of an option, with its score and what became of it."""
    return BeamCandidate(
        parent=option.parent,
        token=option.token,
        token_logprob=option.token_logprob,
        logprob=option.logprob,
        score=value,
        is_end=is_end,
        fate=fate,
        loss=loss,
        ranked=option.ranked,
        group=option.group,
    )


def worse(value: float, than: Hypothesis) -> Loss:
    """What a complete text loses that is worse than the worst one held."""
    return Loss("worse_hypothesis", than.node, than.score - value)


def _outlook(
    beams: Sequence[Beam], held: Sequence[Hypothesis], length: int, question: Question
) -> tuple[float | None, float | None]:
    """(best score that a live beam can still reach, score to beat).

    A sum of logarithms only falls. With α > 0 a longer text divides it by more, so the longest
    possible one is the best case; otherwise it is the shortest.
    """
    penalty = question.settings.length_penalty
    best = question.limit if penalty > 0 else length
    hope = score(beams[0].logprob, best, penalty) if beams else None
    return hope, held[-1].score if len(held) == question.settings.width else None


def _stop(
    held: Sequence[Hypothesis],
    hope: float | None,
    bar: float | None,
    cut: bool,
    question: Question,
) -> BeamStop | None:
    settings = question.settings
    ended = all(hypothesis.finished for hypothesis in held)
    # A beam of one that went on after its end token would no longer be greedy.
    if bar is not None and ended and (settings.stop == "full" or settings.width == 1):
        return "full"
    if cut:
        return question.limit_end
    if hope is None:
        return "no_beam_left"
    return "no_beam_can_win" if bar is not None and hope <= bar else None
