"""The figures of each column as a table, and everything as rows for a file. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import pandas as pd

from core.compare_records import Figures, Text
from core.decode.measure import bits
from ui.figures.compare_rows import Scene, plain_text
from ui.figures.compare_rows import why as why_parts
from ui.figures.compare_words import LETTERS, fault_text, said
from ui.figures.stages import guarded
from ui.figures.words import signed
from ui.i18n import HTML_LANG, Catalog

ALWAYS: Final = (
    "tokens", "logprob", "perplexity", "entropy", "rank",
    "distinct_1", "distinct_2", "distinct_3", "longest_repeat", "repeated_4grams", "zipf",
    "self_bleu", "bits_per_byte", "forwards", "speed",
)  # fmt: skip
GROUPS: Final = {"tokens": "likely", "distinct_1": "varied", "forwards": "cost"}
"""The rows before which a heading stands."""
SEVERAL: Final = ("self_bleu",)
"""Rows that need several texts."""


def value_of(found: Figures, row: str) -> float | None:
    """The number of one row, in the unit in which it is shown."""
    if row.startswith("distinct_"):
        return found.distinct[int(row[-1]) - 1]
    if row == "entropy":
        return None if found.entropy is None else bits(found.entropy)
    if row == "speed":
        return found.tokens_per_second
    number: float | None = getattr(found, row)
    return number


def shown(value: float | None, row: str) -> str:
    """A number for people; – where nothing can be said."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "−∞" if value < 0 else "∞"
    if row in ("tokens", "longest_repeat", "forwards"):
        return f"{value:,.0f}"
    if row in ("repeated_4grams", "distinct_1", "distinct_2", "distinct_3"):
        return f"{100 * value:.1f} %"
    if row == "logprob":
        return signed(value, 2)
    if row == "speed":
        return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"
    return f"{value:,.2f}" if value < 1000 else f"{value:,.0f}"


def figures_data(scene: Scene, found: Sequence[Figures | None], t: Catalog) -> dict[str, Any]:
    """What the component of the figures draws."""
    several = any(figures is not None and figures.self_bleu is not None for figures in found)
    rows = [row for row in ALWAYS if several or row not in SEVERAL]
    return {
        "lang": HTML_LANG[t.lang],
        "strings": {
            "table": t("compare.figures"),
            "figure": t("compare.figure"),
            "what": t("compare.figure_what"),
        },
        "columns": [
            {"letter": LETTERS[i], "colour": i, "name": name} for i, name in enumerate(scene.names)
        ],
        "rows": [
            {
                "id": row,
                "group": t(f"compare.group_{GROUPS[row]}") if row in GROUPS else None,
                "name": t(f"compare.fig_{row}"),
                "help": t(f"compare.fig_{row}_help"),
                "values": [shown(value_of(f, row) if f else None, row) for f in found],
            }
            for row in rows
        ],
    }


def steps_table(scene: Scene, t: Catalog) -> pd.DataFrame:
    """The numbers behind the charts: one row a step, two columns a strategy."""
    most = max((len(_choices(scene, i)) for i in range(len(scene.written))), default=0)
    columns: dict[str, list[object]] = {t("compare.step"): list(range(1, most + 1))}
    for index in range(len(scene.written)):
        vocabulary, choices = scene.vocabularies[index], _choices(scene, index)
        pad = [None] * (most - len(choices))
        letter = LETTERS[index]
        labels = [vocabulary.label(c.id) for c in choices] if vocabulary else []
        columns[f"{letter} · {t('compare.token')}"] = [*labels, *pad]
        columns[f"{letter} · p"] = [*(c.probability_model for c in choices), *pad]
        columns[f"{letter} · {t('compare.entropy_bits')}"] = [
            *(bits(c.entropy_model) for c in choices),
            *pad,
        ]
    return pd.DataFrame(columns)


def _choices(scene: Scene, index: int) -> tuple[Any, ...]:
    text = scene.text(index)
    return text.choices if text else ()


# ---------------------------------------------------------------- files


def record(
    scene: Scene, found: Sequence[Figures | None], question: dict[str, Any], t: Catalog
) -> dict[str, Any]:
    """Everything, for a JSON file."""
    return {
        **question,
        "reference": LETTERS[scene.reference],
        "columns": [
            {
                "column": LETTERS[index],
                "name": scene.names[index],
                "fault": fault_text(written.fault, t) if written.fault else None,
                "first_difference": _difference(scene, index, t),
                "figures": _numbers(found[index]),
                "texts": [_text(scene, index, text) for text in written.texts],
                "forwards": written.forwards,
                "ms": written.ms,
            }
            for index, written in enumerate(scene.written)
        ],
    }


def _difference(scene: Scene, index: int, t: Catalog) -> dict[str, Any] | None:
    found = scene.differences[index]
    if found is None or index == scene.reference:
        return None
    return {
        "step": found.step,
        "reason": found.reason,
        "here": found.here,
        "there": found.there,
        "stage": found.stage,
        "parameter": found.parameter,
        "sentence": said(why_parts(scene, index, t)),
    }


def _numbers(found: Figures | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    numbers = {row: value_of(found, row) for row in ALWAYS}
    # JSON knows no infinity.
    return {k: v if v is None or math.isfinite(v) else None for k, v in numbers.items()}


def _text(scene: Scene, index: int, text: Text) -> dict[str, Any]:
    vocabulary = scene.vocabularies[index]
    return {
        "sample": text.sample,
        "text": plain_text(scene, index, text),
        "stop": text.stop,
        "tokens": [
            {
                "id": choice.id,
                "label": vocabulary.label(choice.id) if vocabulary else str(choice.id),
                "probability_model": choice.probability_model,
                "probability_filtered": choice.probability_filtered,
                "rank": choice.rank,
                "u": choice.u,
                "rule": choice.rule,
                "entropy_model": choice.entropy_model,
                "entropy_filtered": choice.entropy_filtered,
            }
            for choice in text.choices
        ],
    }


def table(record: dict[str, Any]) -> pd.DataFrame:
    """The same as a table for a spreadsheet: one row a token."""
    rows = [
        {
            "column": column["column"],
            "strategy": guarded(column["name"]),
            "sample": text["sample"] + 1,
            "step": step + 1,
            **token,
            "label": guarded(token["label"]),
        }
        for column in record["columns"]
        for text in column["texts"]
        for step, token in enumerate(text["tokens"])
    ]
    return pd.DataFrame(rows)
