"""The fast half of a step: from logits to one token. Pure, so sliders may call it at will."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from core.decode.draw import needle, uniform
from core.decode.measure import checked, entropy, probabilities, rank
from core.decode.past import Past
from core.decode.processors import Processed, processed
from core.decode.rules import Rules
from core.decode.stages import Funnel, apply_stages, funnel
from core.faults import Fault
from core.settings import Settings
from core.trace import Choice, Rule


def choose(
    logits: ArrayLike,
    settings: Settings,
    *,
    step: int,
    past: Past | None = None,
    rules: Rules | None = None,
    with_stages: bool = True,
) -> Choice:
    """The token that ``settings`` choose at ``step``; equal inputs give an equal choice.

    ``logits`` [V] are raw. The processors look at the ``past`` and change single scores; the
    filters thin out what that leaves. Greedy takes the lowest id among the highest scores after
    the processors; the filters are recorded but cannot change that. Sampling throws ``u =
    uniform(seed, step)`` on the filtered distribution. A forced id overrules everything, and
    ``u`` still tells what the dice would have been. ``with_stages=False`` saves the stages'
    arrays (``Choice.slim``).

    Without a ``past`` there is no text to look at, and the processors are left out; ``rules``
    (``rules_for``) are needed for banned texts and a pattern alone.

    Raises Fault for logits that are no distribution, for a forced id that the vocabulary
    doesn't have, and when the processors leave no token possible ("no_token_left"); a forced
    id is then judged without them.
    """
    try:
        flow = processed(logits, settings, past, rules)
    except Fault as fault:
        if fault.code != "no_token_left" or settings.forced_at(step) is None:
            raise
        flow = processed(logits, settings, None, None)
    if _only_the_top(settings, step):
        choice = _top(flow)
        stages = apply_stages(flow.last, settings) if with_stages else ()
    else:
        filtered = funnel(flow.last, settings)
        choice = _from_funnel(flow, filtered, step)
        stages = filtered.stages() if with_stages else ()
    return replace(choice, stages=(*flow.stages(), *stages)) if with_stages else choice


def _only_the_top(settings: Settings, step: int) -> bool:
    """Greedy without any filter: nothing has to be sorted."""
    filters = (settings.top_k, settings.top_p, settings.min_p, settings.typical_p)
    plain = settings.strategy == "greedy" and settings.temperature == 1
    return plain and not any(p is not None for p in filters) and settings.forced_at(step) is None


def _top(flow: Processed) -> Choice:
    """The highest token of the distribution that the processors leave."""
    row = checked(flow.last)
    token = int(row.argmax())
    p = probabilities(row)
    unsure = entropy(p)
    choice = Choice(
        id=token,
        rule="greedy",
        probability_model=float(p[token]),
        probability_filtered=float(p[token]),
        rank=1,
        u=None,
        entropy_model=unsure,
        entropy_filtered=unsure,
    )
    return _with_model(choice, flow) if flow.rows else choice


def _with_model(choice: Choice, flow: Processed) -> Choice:
    """The same choice, as the model's own distribution saw the token."""
    row: Float[np.ndarray, " vocabulary"] = checked(flow.before)
    p = probabilities(row)
    return replace(
        choice,
        probability_model=float(p[choice.id]),
        rank=rank(row, choice.id),
        entropy_model=entropy(p),
    )


def _from_funnel(flow: Processed, filtered: Funnel, step: int) -> Choice:
    token, rule, u = _decide(filtered, step)
    position = rank(filtered.logits, token) - 1
    choice = Choice(
        id=token,
        rule=rule,
        probability_model=filtered.entered.probability(position),
        probability_filtered=filtered.last.probability(position),
        rank=position + 1,
        u=u,
        entropy_model=filtered.entered.entropy,
        entropy_filtered=filtered.last.entropy,
    )
    return _with_model(choice, flow) if flow.rows else choice


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
    return int(flow.order[last.start + needle(last.cumulative[: last.length], u)]), "sample", u
