"""The third stage of the journey: candidates, filters and the draw, as plain values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from core.decode.candidates import Candidate, candidates
from core.trace import Choice, Stage, StepTrace
from ui.figures.drawbar import Bar
from ui.figures.stage_names import stage_value

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
        {"name": s.name, "parameter": _parameter(s), "survivors": s.survivors}
        for s in choice.stages
    ]


def _parameter(stage: Stage) -> float | int | str | None:
    texts = isinstance(stage.parameter, str)
    return stage_value(stage.parameter, "") if texts else stage.parameter


def dice(step: StepTrace, label: Label) -> dict[str, Any]:
    """The cumulative bar, likely tokens first: visible segments, the rest, and where u falls.

    ``would`` is the token that the dice would have taken, where a forced one overruled them.
    """
    choice = step.choice
    bar = Bar.of(choice)
    wide = np.diff(bar.edges[: SEGMENTS + 1]) >= NARROWEST
    drawn = range(int(np.count_nonzero(wide)))
    segments = [
        {"id": token, "label": label(token), "from": low, "to": high}
        for token, (low, high) in ((int(bar.order[i]), bar.stretch(i)) for i in drawn)
    ]
    chosen = bar.place(choice.id)
    would = None
    if choice.rule == "forced" and choice.u is not None:
        would = label(int(bar.order[bar.at(choice.u)]))
    return {
        "rule": choice.rule,
        "u": choice.u,
        "segments": segments,
        "rest": {
            "count": choice.stages[-1].survivors - len(segments),
            "from": segments[-1]["to"] if segments else 0.0,
        },
        "chosen": None if chosen is None else bar.stretch(chosen),
        "would": would,
    }
