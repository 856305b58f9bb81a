"""One text through several tokenizers: side by side, and the price of a language. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go

from core.text.compare import Reading
from ui.figures.charts import LEANING, plain
from ui.figures.strip import groups, whole
from ui.i18n import HTML_LANG, Catalog

SENTENCES: Final = Path(__file__).resolve().parent.parent / "sentences.toml"
MOST_CHIPS: Final = 240
"""Chips drawn for each tokenizer."""
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
PATTERNS: Final = ("", "/", "x", ".", "-")


@dataclass(frozen=True)
class Row:
    """One tokenizer: its reading of the text, or a sentence why there is none."""

    name: str
    reading: Reading | None = None
    prices: tuple[int, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Sentence:
    """The same sentence in one language."""

    lang: str
    name: str
    """The language in itself."""
    text: str


@cache
def sentences() -> tuple[Sentence, ...]:
    """The first is the one that the others are compared with."""
    with SENTENCES.open("rb") as file:
        return tuple(Sentence(**row) for row in tomllib.load(file)["sentence"])


def compare_data(rows: Sequence[Row], t: Catalog) -> dict[str, Any]:
    """What the component draws: the tokens of each tokenizer in a row."""
    counts = [len(row.reading.tokens) for row in rows if row.reading]
    return {
        "lang": HTML_LANG[t.lang],
        "strings": t.area("tokens"),
        "most": max(counts, default=0),
        "rows": [_row(row) for row in rows],
    }


def _row(row: Row) -> dict[str, Any]:
    made = row.reading
    if made is None:
        return {"name": row.name, "why": row.why}
    chips = groups(made.tokens[:MOST_CHIPS])
    return {
        "name": row.name,
        "why": None,
        "count": len(made.tokens),
        "entries": made.entries,
        "changed": made.changed,
        "more": max(0, len(made.tokens) - MOST_CHIPS),
        "chips": [
            {
                "label": whole(group),
                "parts": [[token.id, token.label] for token in group],
                "special": any(token.special for token in group),
            }
            for group in chips
        ],
    }


def price_table(rows: Sequence[Row], t: Catalog) -> pd.DataFrame:
    """Languages down, tokenizers across: tokens, and how many times the first language's."""
    made = sentences()
    columns: dict[str, list[Any]] = {
        t("tokens.language"): [t(f"tokens.lang_{row.lang}") for row in made],
        t("tokens.sentence"): [row.text for row in made],
        t("tokens.bytes"): [len(row.text.encode()) for row in made],
    }
    for row in _priced(rows):
        columns[row.name] = list(row.prices)
        columns[f"{row.name} ×"] = [round(price / row.prices[0], 2) for price in row.prices]
    return pd.DataFrame(columns)


def price_chart(rows: Sequence[Row], t: Catalog) -> go.Figure:
    """A group of bars for each language, one bar a tokenizer; places are numbers."""
    made = sentences()
    places = list(range(len(made)))
    figure = go.Figure()
    for index, row in enumerate(_priced(rows)):
        figure.add_bar(
            x=places,
            y=list(row.prices),
            name=plain(row.name),
            marker={
                "color": COLOURS[index % len(COLOURS)],
                "pattern": {
                    "shape": PATTERNS[index % len(PATTERNS)],
                    "fillmode": "overlay",
                    "fgcolor": "#FFFFFF",
                    "solidity": 0.2,
                },
            },
            customdata=[[plain(s.name), price / row.prices[0]] for s, price in _pairs(row)],
            hovertemplate="%{customdata[0]}: %{y} (× %{customdata[1]:.2f})"
            "<extra>%{fullData.name}</extra>",
        )
    figure.update_xaxes(
        tickmode="array",
        tickvals=places,
        ticktext=[plain(s.name) for s in made],
        autotickangles=LEANING,
        fixedrange=True,
    )
    figure.update_yaxes(title=t("tokens.axis_tokens"), rangemode="tozero", fixedrange=True)
    figure.update_layout(
        barmode="group",
        height=360,
        bargap=0.25,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
    )
    return figure


def _priced(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.prices and row.prices[0]]


def _pairs(row: Row) -> list[tuple[Sentence, int]]:
    return list(zip(sentences(), row.prices, strict=True))


def summary(rows: Sequence[Row], t: Catalog) -> list[str]:
    """For each tokenizer: its dearest language, in a sentence."""
    said = []
    for row in _priced(rows):
        sentence, price = max(_pairs(row), key=lambda pair: pair[1])
        values: Mapping[str, object] = {
            "name": row.name,
            "language": t(f"tokens.lang_{sentence.lang}"),
            "n": price,
            "base": row.prices[0],
            "times": f"{price / row.prices[0]:.1f}",
        }
        said.append(t("tokens.dearest", **values))
    return said
