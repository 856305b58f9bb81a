"""The fast half of a step: from logits to one token. Pure, so sliders may call it at will."""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike

from core.decode.draw import needle, uniform
from core.decode.measure import checked, entropy, probabilities, rank
from core.decode.stages import Funnel, apply_stages, funnel
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
    if _only_the_top(settings, step):
        choice = _top(logits)
        return replace(choice, stages=apply_stages(logits, settings)) if with_stages else choice
    flow = funnel(logits, settings)
    choice = _from_funnel(flow, step)
    return replace(choice, stages=flow.stages()) if with_stages else choice


def _only_the_top(settings: Settings, step: int) -> bool:
    """Greedy without any filter: nothing has to be sorted."""
    off = (settings.top_k, settings.top_p, settings.min_p) == (None, None, None)
    plain = settings.strategy == "greedy" and settings.temperature == 1
    return plain and off and settings.forced_at(step) is None


def _top(logits: ArrayLike) -> Choice:
    """The highest token of the model's own distribution."""
    row = checked(logits)
    token = int(row.argmax())
    p = probabilities(row)
    unsure = entropy(p)
    return Choice(
        id=token,
        rule="greedy",
        probability_model=float(p[token]),
        probability_filtered=float(p[token]),
        rank=1,
        u=None,
        entropy_model=unsure,
        entropy_filtered=unsure,
    )


def _from_funnel(flow: Funnel, step: int) -> Choice:
    token, rule, u = _decide(flow, step)
    position = rank(flow.logits, token) - 1
    return Choice(
        id=token,
        rule=rule,
        probability_model=flow.raw.probability(position),
        probability_filtered=flow.last.probability(position),
        rank=position + 1,
        u=u,
        entropy_model=flow.raw.entropy,
        entropy_filtered=flow.last.entropy,
    )


def _decide(flow: Funnel, step: int) -> tuple[int, Rule, float | None]:
    settings = flow.settings
    u = None if settings.is_greedy else uniform(settings.seed, step, settings.roll_at(step))
    forced = settings.forced_at(step)
    if forced is not None:
        if forced >= flow.logits.size:
            raise Fault("forced_unknown", id=forced, step=step, last=flow.logits.size - 1)
        return forced, "forced", u
    if u is None:
        return int(flow.order[0]), "greedy", None
    last = flow.last
    return int(flow.order[needle(last.cumulative[: last.length], u)]), "sample", u
