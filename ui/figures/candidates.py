"""The candidates of one step as data for their component. Pure."""

from __future__ import annotations

import math
from typing import Any, Final

from core.decode.candidates import Candidate, candidates
from core.settings import Settings
from core.tokens import Vocabulary
from core.trace import Stage, StepTrace
from ui.figures.dice import dice_data
from ui.figures.drawbar import bar_data, question, why
from ui.figures.stage_names import stage_value
from ui.i18n import HTML_LANG, Catalog

SIZES: Final = (10, 20, 50, 100)


def candidates_data(
    step: StepTrace, settings: Settings, vocabulary: Vocabulary, t: Catalog
) -> dict[str, Any]:
    """What the component draws for a step with a full choice: table, bar and sentence."""
    choice = step.choice
    rows = candidates(step.forward.logits, choice, SIZES[-1])
    named = [row for row in rows if row.id is not None]
    size = step.forward.logits.size
    return {
        "lang": HTML_LANG[t.lang],
        "strings": t.area("generate"),
        "step": step.index,
        "rule": choice.rule,
        "stages": [_stage(stage, t) for stage in choice.stages],
        "rows": [_row(row, vocabulary) for row in named],
        "sizes": [n for n in SIZES if n < size] or [size],
        "others": {str(n): _others(rows, n, size) for n in SIZES},
        "vocabulary": size,
        "why": why(step, vocabulary.label, t, greedy=settings.strategy == "greedy"),
        "question": question(step, vocabulary.label, t),
        "bar": bar_data(choice, vocabulary.label),
        "dice": dice_data(choice, settings, step.index),
    }


def is_on(stage: Stage) -> bool:
    """Whether the stage can change anything: temperature 1 divides by one."""
    return stage.parameter is not None and (stage.name, stage.parameter) != ("temperature", 1)


def _stage(stage: Stage, t: Catalog) -> dict[str, Any]:
    return {
        "name": stage.name,
        "label": t(f"generate.stage_{stage.name}"),
        "value": stage_value(stage.parameter, t("generate.off")),
        "on": is_on(stage),
        "survivors": stage.survivors,
        "mass": stage.mass,
    }


def _row(row: Candidate, vocabulary: Vocabulary) -> dict[str, Any]:
    assert row.id is not None
    assert row.logit is not None
    return {
        "id": row.id,
        "label": vocabulary.label(row.id),
        "special": vocabulary.is_special(row.id),
        "rank": row.rank,
        # JSON has no infinity
        "logit": row.logit if math.isfinite(row.logit) else None,
        "model": row.probability_model,
        "after": list(row.after),
        "removed": row.removed_by,
        "chosen": row.chosen,
    }


def _others(rows: tuple[Candidate, ...], n: int, size: int) -> dict[str, Any] | None:
    """The row for all tokens that a table of the ``n`` likeliest and the chosen one leaves out."""
    out = [row for row in rows if row.id is None or ((row.rank or 0) > n and not row.chosen)]
    if not out:
        return None
    columns = zip(*(row.after for row in out), strict=True)
    return {
        "count": sum(row.count for row in out),
        "model": math.fsum(row.probability_model for row in out),
        "after": [math.fsum(column) for column in columns],
    }
