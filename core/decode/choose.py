"""The fast half of a step: from logits to one token. Pure, so sliders may call it at will."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from core.decode.draw import needle, uniform
from core.decode.measure import rank
from core.decode.stages import Funnel, funnel
from core.faults import Fault
from core.settings import Settings
from core.trace import Choice, Rule


def choose(logits: ArrayLike, settings: Settings, *, step: int, with_stages: bool = True) -> Choice:
    """The token that ``settings`` choose at ``step``; equal inputs give an equal choice.

    ``logits`` [V] are raw. Greedy takes the lowest id among the highest logits; the filters
    are recorded but cannot change that. Sampling throws ``u = uniform(seed, step)`` on the
    filtered distribution. A forced id overrules both, and ``u`` still tells what the dice
    would have been. ``with_stages=False`` saves the stages' arrays (``Choice.slim``).

    Raises Fault for logits that are no distribution, and for a forced id that the vocabulary
    doesn't have.
    """
    flow = funnel(logits, settings)
    token, rule, u = _decide(flow, step)
    position = rank(flow.logits, token) - 1
    model = flow.raw.probabilities
    # Where no filter changes anything, neither does the distribution: don't compute it twice.
    changed = (flow.last.length, flow.last.temperature) != (flow.raw.length, flow.raw.temperature)
    after = flow.last.probabilities if changed else model
    return Choice(
        id=token,
        rule=rule,
        probability_model=_at(model, position),
        probability_filtered=_at(after, position),
        rank=position + 1,
        u=u,
        entropy_model=flow.raw.entropy,
        entropy_filtered=flow.last.entropy,
        stages=flow.stages() if with_stages else (),
    )


def _decide(flow: Funnel, step: int) -> tuple[int, Rule, float | None]:
    settings = flow.settings
    u = None if settings.is_greedy else uniform(settings.seed, step)
    forced = settings.forced_at(step)
    if forced is not None:
        if forced >= flow.logits.size:
            raise Fault("forced_unknown", id=forced, step=step, last=flow.logits.size - 1)
        return forced, "forced", u
    if u is None:
        return int(flow.order[0]), "greedy", None
    last = flow.last
    return int(flow.order[needle(last.cumulative[: last.length], u)]), "sample", u


def _at(distribution: Float[np.ndarray, " survivors"], position: int) -> float:
    """Probability at a rank (from 0); the tokens that fell off have none."""
    return float(distribution[position]) if position < distribution.size else 0.0
