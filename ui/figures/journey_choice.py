"""The third stage of the journey: candidates, filters and the draw, as plain values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from core.decode.candidates import Candidate, candidates
from core.decode.draw import draw
from core.decode.measure import probabilities
from core.trace import Choice, StepTrace

SHOWN: Final = 10
"""Candidates listed by name; all others share one bar."""
SEGMENTS: Final = 16
NARROWEST: Final = 0.004
"""Segments of the draw bar below this share are joined: nobody could see them."""

Label = Callable[[int], str]


def candidate_list(step: StepTrace, label: Label) -> dict[str, Any]:
    """The highest tokens, the chosen one in any case, and all others as one sum."""
    rows = candidates(step.forward.logits, step.choice, SHOWN)
    named = [row for row in rows if row.id is not None]
    rest = next((row for row in rows if row.id is None), None)
    others = {
        "count": rest.count if rest else 0,
        "model": rest.probability_model if rest else 0.0,
        "filtered": rest.probability_filtered if rest else 0.0,
    }
    return {"candidates": [_named(row, label) for row in named], "others": others}


def _named(row: Candidate, label: Label) -> dict[str, Any]:
    assert row.id is not None
    assert row.logit is not None
    return {
        "id": row.id,
        "label": label(row.id),
        "rank": row.rank,
        "logit": row.logit if math.isfinite(row.logit) else None,
        "model": row.probability_model,
        "filtered": row.probability_filtered,
        "removed": row.removed_by,
        "chosen": row.chosen,
    }


def filters(choice: Choice) -> list[dict[str, Any]]:
    """One card a stage, in the order applied."""
    return [
        {"name": s.name, "parameter": s.parameter, "survivors": s.survivors} for s in choice.stages
    ]


def dice(step: StepTrace, label: Label) -> dict[str, Any]:
    """The cumulative bar, likely tokens first: visible segments, the rest, and where u falls.

    ``would`` is the token that the dice would have taken, where a forced one overruled them.
    """
    choice = step.choice
    rows = candidates(step.forward.logits, choice, SEGMENTS)
    # A chosen token from farther down has a row as well, behind the others and out of line.
    bars = [(row, *row.bar) for row in rows[:SEGMENTS] if row.id is not None and row.bar]
    drawn = [(row, low, high) for row, low, high in bars if high - low >= NARROWEST]
    segments = [
        {"id": row.id, "label": label(row.id or 0), "from": low, "to": high}
        for row, low, high in drawn
    ]
    would = None
    if choice.rule == "forced" and choice.u is not None:
        would = label(draw(probabilities(choice.stages[-1].logits), choice.u))
    return {
        "rule": choice.rule,
        "u": choice.u,
        "segments": segments,
        "rest": {
            "count": choice.stages[-1].survivors - len(drawn),
            "from": drawn[-1][2] if drawn else 0.0,
        },
        "chosen": next((row.bar for row in rows if row.chosen), None),
        "would": would,
    }
