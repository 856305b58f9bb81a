"""Sampled beams: stochastic beam search (Kool, van Hoof and Welling 2019).

A beam search that draws its texts instead of taking the likeliest: the ``width`` texts that
remain are a sample *without putting back* from everything the model could write, at the
temperature of the draws. Each text has a perturbed score (Gumbel noise on its ln p); the
``width`` highest of all, finished or not, keep their places. Scores stay Σ ln p of the model.

The noise is made from the top down. The best child of a beam inherits its perturbed score; its
token is drawn as any token is, where ``u`` falls on the bar. The next best is drawn from what is
left of the bar, and its perturbed score is the highest of as many Gumbel variables as are left,
all below the one before: with μ their ln Σ p and m the score before, μ - ln(e^(μ-m) - ln u').
Both numbers are ``uniform(seed, step, roll)``, so the search is a pure function of its settings,
and a beam of one is the sampling run with the same seed and temperature.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from core.beam_records import BeamStep, Fate, Loss, Node
from core.decode.beam_rules import (
    Beam,
    Option,
    Question,
    State,
    candidate_of,
    completed,
    grown,
    score,
)
from core.decode.draw import needle, uniform
from core.decode.measure import checked, descending, log_softmax, weights
from core.settings import BeamSettings


def drawn_options(
    rows: Sequence[ArrayLike], beams: Sequence[Beam], step: int, settings: BeamSettings
) -> list[Option]:
    """The 2·width continuations with the highest perturbed scores, the highest first.

    ``rows`` [beam, V] are raw logits.
    """
    found, count = [], 2 * settings.width
    for parent, (row, beam) in enumerate(zip(rows, beams, strict=True)):
        logp = log_softmax(row)
        dice = partial(_dice, settings.seed, step, 2 * count * parent)
        draws = _draws(checked(row), beam, count, settings.temperature, dice)
        for token, ranked, drawn in draws:
            one = float(logp[token])
            found.append(Option(parent, token, one, beam.logprob + one, ranked, drawn))
    found.sort(key=lambda option: -(option.ranked or 0.0))
    return found[:count]


def _dice(seed: int, step: int, first: int, number: int) -> float:
    return uniform(seed, step, first + number)


def _draws(
    logits: Float[np.ndarray, " vocabulary"],
    beam: Beam,
    count: int,
    temperature: float,
    dice: Callable[[int], float],
) -> Iterator[tuple[int, float, float]]:
    """(token, perturbed score, Σ ln p at the temperature): one after another, none twice."""
    order = descending(logits)
    line = weights(logits[order], float(logits[order[0]]), temperature)
    line = line[line > 0]
    cumulative = np.cumsum(line)
    total, top = float(cumulative[-1]), beam.ranked or 0.0
    left, gone = total, list[tuple[float, float, int]]()
    for number in range(min(count, line.size)):
        place = _needle(cumulative, dice(2 * number), left, gone)
        if number:
            noise = -math.log1p(-dice(2 * number + 1))
            middle = beam.drawn + math.log(left / total)
            top = middle - float(np.logaddexp(middle - top, math.log(noise or 1e-300)))
        weight = float(line[place])
        yield int(order[place]), top, beam.drawn + math.log(weight / total)
        insort(gone, (float(cumulative[place]) - weight, weight, place))
        left = total - math.fsum(weight for _, weight, _ in gone)
        if left <= 0:
            return


def _needle(
    cumulative: Float[np.ndarray, " survivors"],
    u: float,
    left: float,
    gone: Sequence[tuple[float, float, int]],
) -> int:
    """Where ``u`` falls on the bar without the stretches that are gone."""
    if not gone:
        return needle(cumulative, u)
    at = u * left
    for start, weight, _ in gone:
        if at < start:
            break
        at += weight
    place = min(int(np.searchsorted(cumulative, at, side="right")), cumulative.size - 1)
    taken = {index for _, _, index in gone}
    # Rounding can put it on the edge of a stretch that is gone.
    beside = chain(range(place, cumulative.size), range(place - 1, -1, -1))
    return int(next(index for index in beside if index not in taken))


def settle_sampled(
    looked: Sequence[Option], state: State, question: Question
) -> tuple[State, BeamStep]:
    """One step: the ``width`` highest perturbed scores stay, whether live or complete.

    ``looked`` comes from :func:`drawn_options`.
    """
    settings, index = question.settings, state.index
    last = index + 1 == question.limit
    ends = [option.token in question.end_ids for option in looked]
    pool = [(option.ranked or 0.0, (index, i)) for i, option in enumerate(looked)]
    pool += [(h.ranked or 0.0, h.node) for h in state.held]
    pool.sort(key=lambda entry: -entry[0])
    stay, (bar, worst) = {node for _, node in pool[: settings.width]}, _last(pool, settings.width)

    def loss(value: float | None, reason: Literal["outside_beam", "end_outside_beam"]) -> Loss:
        return Loss(reason, worst, bar - (value or 0.0))

    candidates = []
    for i, (option, end) in enumerate(zip(looked, ends, strict=True)):
        lost = None
        if (index, i) not in stay:
            lost = loss(option.ranked, "end_outside_beam" if end else "outside_beam")
        fate: Fate = "lost" if lost else "finished" if end else "live"
        value = score(option.logprob, index + 1, settings.length_penalty)
        candidates.append(candidate_of(option, value, end, fate, lost))
    kept = [i for i in range(len(looked)) if (index, i) in stay]
    made = [completed(looked, i, state, question) for i in kept if ends[i] or last]
    gone = [h for h in state.held if h.node not in stay]
    held = sorted(
        [*(h for h in state.held if h.node in stay), *made],
        key=lambda hypothesis: -hypothesis.score,
    )
    beams = tuple(grown(looked[i], i, state.beams) for i in kept if not ends[i] and not last)
    record = BeamStep(
        index=index,
        beams=len(state.beams),
        candidates=tuple(candidates),
        live=tuple(i for i in kept if not ends[i]),
        finished=tuple(i for i in kept if ends[i] or last),
        displaced=tuple(h.node for h in gone),
        hypotheses=len(held),
        hope=None,
        bar=None,
    )
    lost_now = tuple(
        replace(h, loss=Loss("worse_hypothesis", worst, bar - (h.ranked or 0.0))) for h in gone
    )
    stop = None if beams else question.limit_end if record.live else "no_beam_left"
    after = State(index + 1, beams, tuple(held), (*lost_now, *state.displaced), stop)
    return after, record


def _last(pool: Sequence[tuple[float, Node]], width: int) -> tuple[float, Node]:
    """The lowest that stays."""
    return pool[min(width, len(pool)) - 1]
