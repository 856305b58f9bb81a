"""The third stage of the journey: candidates, filters and the draw, as plain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from core.decode.draw import draw
from core.decode.measure import descending, probabilities
from core.trace import Choice, Stage, StepTrace

SHOWN: Final = 10
"""Candidates listed by name; all others share one bar."""
NARROWEST: Final = 0.004
"""Segments of the draw bar below this share are joined: nobody could see them."""
SEGMENTS: Final = 16

Label = Callable[[int], str]


def removed_by(stages: tuple[Stage, ...], token: int) -> str | None:
    """The name of the first stage that dropped ``token``."""
    return next((s.name for s in stages if s.logits[token] == -np.inf), None)


def distributions(step: StepTrace) -> tuple[np.ndarray, np.ndarray]:
    """The model's probabilities and those after the filters, both [V]."""
    model = probabilities(step.forward.logits)
    stages = step.choice.stages
    return model, probabilities(stages[-1].logits) if stages else model


def candidates(step: StepTrace, label: Label, shown: int = SHOWN) -> dict[str, Any]:
    """The ``shown`` highest tokens, the chosen one in any case, and all others as one sum."""
    logits, choice = step.forward.logits, step.choice
    model, filtered = distributions(step)
    top = [int(i) for i in descending(logits)[:shown]]
    listed = top if choice.id in top else [*top, choice.id]
    rows = [
        {
            "id": token,
            "label": label(token),
            "rank": rank if token in top else choice.rank,
            "logit": _finite(logits[token]),
            "model": float(model[token]),
            "filtered": float(filtered[token]),
            "removed": removed_by(choice.stages, token) if np.isfinite(logits[token]) else None,
            "chosen": token == choice.id,
        }
        for rank, token in enumerate(listed, start=1)
    ]
    left_out = np.ones(logits.size, dtype=bool)
    left_out[listed] = False
    others = {
        "count": int(left_out.sum()),
        "model": float(model[left_out].sum()),
        "filtered": float(filtered[left_out].sum()),
    }
    return {"candidates": rows, "others": others}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def filters(choice: Choice) -> list[dict[str, Any]]:
    """One card a stage, in the order applied."""
    return [
        {"name": s.name, "parameter": s.parameter, "survivors": s.survivors, "mass": s.mass}
        for s in choice.stages
    ]


def dice(step: StepTrace, label: Label) -> dict[str, Any]:
    """The cumulative bar, likely tokens first: visible segments, the rest, and where u falls."""
    choice = step.choice
    _, filtered = distributions(step)
    order = np.argsort(-filtered, kind="stable")
    order = order[filtered[order] > 0]
    ends = np.cumsum(filtered[order])
    visible = min(SEGMENTS, int(np.count_nonzero(filtered[order] >= NARROWEST)))
    starts = np.concatenate([[0.0], ends[:-1]])
    at = np.flatnonzero(order == choice.id)
    return {
        "rule": choice.rule,
        "u": choice.u,
        "segments": [
            {"id": int(t), "label": label(int(t)), "from": float(a), "to": float(b)}
            for t, a, b in zip(order[:visible], starts, ends, strict=False)
        ],
        "rest": {
            "count": int(order.size - visible),
            "from": float(ends[visible - 1]) if visible else 0.0,
        },
        "chosen": [float(starts[at[0]]), float(ends[at[0]])] if at.size else None,
        "under_needle": None if choice.u is None else label(draw(filtered, choice.u)),
    }
