"""The draw as a bar: the surviving tokens from likely to unlikely, end to end from 0 to 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from core.decode.draw import needle
from core.decode.draws import bar as survivors
from core.decode.measure import probabilities
from core.settings import PROCESSOR_NAMES
from core.trace import Choice, StepTrace
from ui.figures.words import digits_for, percent, signed
from ui.i18n import Catalog

Label = Callable[[int], str]
HEAD, AROUND = 40, 6


@dataclass(frozen=True, eq=False)
class Bar:
    """``order[i]`` owns the stretch from ``edges[i]`` to ``edges[i + 1]``."""

    order: Int[np.ndarray, " survivors"]
    edges: Float[np.ndarray, " edges"]

    @classmethod
    def of(cls, choice: Choice) -> Bar:
        """The bar on which the dice of a full choice fell."""
        order, after = survivors(choice)
        edges = np.concatenate([[0.0], np.cumsum(after)])
        edges[-1] = 1.0
        return cls(order, edges)

    def at(self, u: float) -> int:
        """The place on which ``u`` falls."""
        return needle(self.edges[1:], u)

    def place(self, token: int) -> int | None:
        """Where ``token`` lies; ``None`` when it was removed."""
        found = np.flatnonzero(self.order == token)
        return int(found[0]) if found.size else None

    def dice(self, choice: Choice) -> int | None:
        """Where the dice fell, or would have fallen under a forced token; ``None`` without dice."""
        if choice.u is None:
            return None
        drawn = self.place(choice.id) if choice.rule == "sample" else None
        return self.at(choice.u) if drawn is None else drawn

    def stretch(self, place: int) -> tuple[float, float]:
        return float(self.edges[place]), float(self.edges[place + 1])


def bar_data(choice: Choice, label: Label) -> dict[str, Any]:
    """Segments for the component: the largest, and those around the chosen one and the needle.

    Neighbouring tokens that are not drawn one by one form a segment with ``id`` None.
    """
    bar = Bar.of(choice)
    here = bar.place(choice.id)
    dice = bar.dice(choice)
    focus = here if dice is None else dice
    segments = [_segment(bar, a, b, label) for a, b in _pieces(bar.order.size, (focus, here))]
    return {
        "u": choice.u,
        "segments": segments,
        "chosen": choice.id,
        "dice": None if dice is None else int(bar.order[dice]),
        "count": int(bar.order.size),
    }


def _pieces(size: int, around: Iterable[int | None]) -> list[tuple[int, int]]:
    """``start, stop`` of each segment: single places, and the gaps between them."""
    alone = set(range(min(HEAD, size)))
    for place in around:
        if place is not None:
            alone |= set(range(max(0, place - AROUND), min(size, place + AROUND + 1)))
    cuts = sorted({0, size} | alone | {place + 1 for place in alone})
    return list(pairwise(cuts))


def _segment(bar: Bar, start: int, stop: int, label: Label) -> dict[str, Any]:
    token = int(bar.order[start])
    low, high = float(bar.edges[start]), float(bar.edges[stop])
    single = stop - start == 1
    return {
        "id": token if single else None,
        "label": label(token) if single else None,
        "count": stop - start,
        "low": low,
        "high": high,
    }


def why(step: StepTrace, label: Label, t: Catalog, *, greedy: bool) -> str:
    """Computed sentences: why this token, and why not the model's favourite.

    ``greedy`` tells the strategy from a temperature of 0, which amounts to the same.
    """
    choice = step.choice
    bar = Bar.of(choice)
    if choice.rule == "forced":
        return _why_forced(choice, bar, label, t)
    said = [] if choice.id == favourite(step) else _why_not(step, label, t)
    if choice.rule == "greedy":
        said.append(_why_greedy(step, label, t, "why_greedy" if greedy else "why_greedy_zero"))
    elif bar.order.size == 1:
        u = f"{choice.u or 0.0:.3f}"
        said.append(t("generate.why_only", token=label(choice.id), u=u))
    else:
        said.append(_why_drawn(step, bar, label, t))
    return t("generate.sentence_join").join(said)


def question(step: StepTrace, label: Label, t: Catalog) -> str:
    """What :func:`why` answers first: why this token, or why not the favourite."""
    top = favourite(step)
    if step.choice.rule == "forced" or step.choice.id == top:
        return t("generate.why")
    return _why_not(step, label, t)[0]


def favourite(step: StepTrace) -> int:
    """The token that the model itself finds likeliest."""
    return int(np.argmax(step.forward.logits))


def _why_not(step: StepTrace, label: Label, t: Catalog) -> list[str]:
    """The question that a token behind the favourite asks, and what the stages did to that."""
    top = favourite(step)
    before = float(probabilities(step.forward.logits)[top])
    said = [t("generate.why_not", top=label(top), p=percent(before))]
    led = True
    for stage in step.choice.stages:
        name = t(f"generate.stage_{stage.name}")
        if stage.logits[top] == -np.inf:
            return [*said, t("generate.why_not_removed", stage=name)]
        if led and int(np.argmax(stage.logits)) != top:
            after = float(probabilities(stage.logits)[top])
            lowered = t(
                "generate.why_not_lowered", stage=name, before=percent(before), after=percent(after)
            )
            said.append(lowered)
            led = False
    return said


def _why_drawn(step: StepTrace, bar: Bar, label: Label, t: Catalog) -> str:
    """The stretch on which u fell, and the one before it that tells most: the favourite's."""
    choice = step.choice
    u, place = choice.u or 0.0, bar.dice(choice) or 0
    low, high = bar.stretch(place)
    digits = digits_for(u, low, high)

    def covers(i: int) -> str:
        ends = (f"{edge:.{digits}f}" for edge in bar.stretch(i))
        token = label(int(bar.order[i]))
        return t("generate.covers", token=token, **dict(zip(("low", "high"), ends, strict=True)))

    top = bar.place(favourite(step))
    other = place - 1 if place else 1
    if top is not None and top < place:
        other = top
    first, second = (covers(i) for i in sorted((place, other)))
    values = {"u": f"{u:.{digits}f}", "first": first, "second": second, "token": label(choice.id)}
    between = place - other - 1
    if between > 0:
        return t("generate.why_draw_far", n=f"{between:,}", **values)
    return t("generate.why_draw", **values)


def _why_greedy(step: StepTrace, label: Label, t: Catalog, key: str) -> str:
    logits, token = entering(step), step.choice.id
    others = np.delete(logits, token)
    if others.size == 0:
        return t("generate.why_single", token=label(token))
    second = int(np.argmax(others))
    second += second >= token
    return t(
        f"generate.{key}",
        token=label(token),
        logit=signed(float(logits[token]), 2),
        second=label(second),
        behind=signed(float(logits[second]), 2),
    )


def entering(step: StepTrace) -> Float[np.ndarray, " vocabulary"]:
    """The scores that enter the first filter: the model's, as the penalties left them."""
    penalties = [s for s in step.choice.stages if s.name in PROCESSOR_NAMES]
    return penalties[-1].logits if penalties else step.forward.logits


def _why_forced(choice: Choice, bar: Bar, label: Label, t: Catalog) -> str:
    sentences = [t("generate.why_forced", token=label(choice.id))]
    if choice.probability_filtered == 0:
        sentences.append(t("generate.why_forced_removed"))
    dice = bar.dice(choice)
    if dice is None:
        sentences.append(t("generate.why_forced_greedy", token=label(int(bar.order[0]))))
    else:
        other = label(int(bar.order[dice]))
        sentences.append(t("generate.why_forced_dice", u=f"{choice.u:.3f}", token=other))
    return t("generate.sentence_join").join(sentences)
