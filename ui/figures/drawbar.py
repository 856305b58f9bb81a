"""The draw as a bar: the surviving tokens from likely to unlikely, end to end from 0 to 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from core.decode.draw import needle
from core.decode.measure import descending, probabilities
from core.trace import Choice, StepTrace
from ui.figures.words import digits_for, signed
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
        logits = choice.stages[-1].logits
        after = probabilities(logits)
        order = descending(logits)
        order = order[: int(np.count_nonzero(after))]
        edges = np.concatenate([[0.0], np.cumsum(after[order])])
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
    """One computed sentence: why this token, and what else could have come.

    ``greedy`` tells the strategy from a temperature of 0, which amounts to the same.
    """
    choice = step.choice
    bar = Bar.of(choice)
    if choice.rule == "forced":
        return _why_forced(choice, bar, label, t)
    if choice.rule == "greedy":
        return _why_greedy(step, label, t, "why_greedy" if greedy else "why_greedy_zero")
    u, place = choice.u or 0.0, bar.dice(choice) or 0
    if bar.order.size == 1:
        return t("generate.why_only", token=label(choice.id), u=f"{u:.3f}")
    low, high = bar.stretch(place)
    digits = digits_for(u, low, high)
    first, second = (
        t(
            "generate.covers",
            token=label(int(bar.order[i])),
            low=f"{bar.edges[i]:.{digits}f}",
            high=f"{bar.edges[i + 1]:.{digits}f}",
        )
        for i in sorted((place, place - 1 if place else 1))
    )
    token = label(choice.id)
    return t("generate.why_draw", u=f"{u:.{digits}f}", first=first, second=second, token=token)


def _why_greedy(step: StepTrace, label: Label, t: Catalog, key: str) -> str:
    logits, token = step.forward.logits, step.choice.id
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
