"""Diverse beams (Vijayakumar et al. 2018): groups that keep out of each other's way.

The groups take their step one after the other. Each is a beam search of width ÷ groups with
hypotheses of its own, but a token costs it ``diversity`` nats for each beam of an earlier group
that has just taken the same token (the Hamming distance of the paper). The price counts in the
ranking of that step alone; sums and scores stay those of the model. The search ends when every
group's own rule would end it. One group, or one that never pays, is the plain search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from core.beam_records import BeamCandidate, BeamStep, BeamStop, Hypothesis, Loss
from core.decode.beam_rules import Beam, Option, Question, State, looked_at, needed, score, settle
from core.decode.candidates import top_ids
from core.decode.measure import log_softmax

_ENDS: Final[tuple[BeamStop, ...]] = (
    "context_limit",
    "output_limit",
    "full",
    "no_beam_can_win",
    "no_beam_left",
)
"""Of the reasons of several groups, the one that is told."""


def _group_question(question: Question) -> Question:
    settings = question.settings
    narrow = replace(settings, width=settings.width // settings.groups, groups=1, nbest=None)
    return replace(question, settings=narrow)


def diverse_options(rows: Sequence[ArrayLike], state: State, question: Question) -> list[Option]:
    """What every group looks at, group by group, each the best ranked first."""
    settings, ends = question.settings, question.end_ids
    logps = [log_softmax(row) for row in rows]
    width = settings.width // settings.groups
    count = looked_at(width, len(ends))
    taken: Counter[int] = Counter()
    found: list[Option] = []
    for group in range(settings.groups):
        price = {token: settings.diversity * n for token, n in taken.items()}
        looked = [
            option._replace(parent=parent, group=group)
            for parent, beam in enumerate(state.beams)
            if beam.group in (None, group)
            for option in _looked(logps[parent], beam, count, price)
        ]
        looked.sort(key=lambda option: -(option.ranked or 0.0))
        kept = needed(looked[:count], width, ends)
        found += kept
        taken.update([o.token for o in kept if o.token not in ends][:width])
    return found


def _looked(
    logp: Float[np.ndarray, " vocabulary"], beam: Beam, count: int, price: Mapping[int, float]
) -> list[Option]:
    paid = logp.copy()
    for token, cost in price.items():
        paid[token] -= cost
    found = []
    for token in top_ids(paid, count):
        step = float(logp[token])
        if step > -np.inf:
            ranked = beam.logprob + float(paid[token])
            found.append(Option(0, token, step, beam.logprob + step, ranked))
    return found


def settle_diverse(
    looked: Sequence[Option], state: State, question: Question
) -> tuple[State, BeamStep]:
    """One step of every group. ``looked`` comes from :func:`diverse_options`."""
    settings = question.settings
    narrow = _group_question(question)
    after: list[State] = []
    steps: list[BeamStep] = []
    base = 0
    for group in range(settings.groups):
        part = [option for option in looked if option.group == group]
        held = tuple(h for h in state.held if h.group == group)
        alone = State(state.index, state.beams, held)
        next_state, step = settle(part, alone, narrow)
        after.append(_shifted_state(next_state, state.index, base))
        steps.append(_shifted_step(step, base, settings.length_penalty))
        base += len(part)
    hopes = [step.hope for step in steps if step.hope is not None]
    bars = [step.bar for step in steps if step.bar is not None]
    held = tuple(sorted((h for s in after for h in s.held), key=lambda h: -h.score))
    record = BeamStep(
        index=state.index,
        beams=len(state.beams),
        candidates=tuple(c for step in steps for c in step.candidates),
        live=tuple(i for step in steps for i in step.live),
        finished=tuple(i for step in steps for i in step.finished),
        displaced=tuple(node for step in steps for node in step.displaced),
        hypotheses=len(held),
        hope=max(hopes, default=None),
        bar=min(bars) if len(bars) == settings.groups else None,
    )
    lost = tuple(h for s in after for h in s.displaced)
    beams = tuple(beam for s in after for beam in s.beams)
    stops = [s.stop for s in after]
    stop = next((end for end in _ENDS if end in stops), None) if all(stops) else None
    return State(state.index + 1, beams, held, (*lost, *state.displaced), stop), record


def _shifted(loss: Loss | None, index: int, base: int) -> Loss | None:
    """Places count through all groups of a step."""
    if loss is None or loss.to[0] != index:
        return loss
    return replace(loss, to=(index, loss.to[1] + base))


def _shifted_step(step: BeamStep, base: int, penalty: float) -> BeamStep:
    def worth(c: BeamCandidate) -> float:
        return score(c.ranked or 0.0, step.index + 1, penalty)

    def candidate(c: BeamCandidate) -> BeamCandidate:
        loss = c.loss
        if loss is not None and loss.reason != "worse_hypothesis":
            # Places of a step are given by what was paid for, too.
            loss = replace(loss, by=worth(step.candidates[loss.to[1]]) - worth(c))
        return replace(c, loss=_shifted(loss, step.index, base))

    return replace(
        step,
        candidates=tuple(map(candidate, step.candidates)),
        live=tuple(i + base for i in step.live),
        finished=tuple(i + base for i in step.finished),
    )


def _shifted_state(state: State, index: int, base: int) -> State:
    def path(places: tuple[int, ...]) -> tuple[int, ...]:
        return (*places[:-1], places[-1] + base) if len(places) == index + 1 else places

    def hypothesis(h: Hypothesis) -> Hypothesis:
        return replace(h, path=path(h.path), loss=_shifted(h.loss, index, base))

    return replace(
        state,
        beams=tuple(beam._replace(path=path(beam.path)) for beam in state.beams),
        held=tuple(map(hypothesis, state.held)),
        displaced=tuple(map(hypothesis, state.displaced)),
    )
