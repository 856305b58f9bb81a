"""A sweep as a chart and a table. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.compare_records import Figures
from core.decode.measure import bits
from ui.figures.charts import BLUE, ORANGE, percents, plain
from ui.i18n import Catalog

GREEN: Final = "#149A74"
HINT: Final = 60
"""Characters of a text that are shown beside the pointer."""


@dataclass(frozen=True)
class Row:
    """One value of the parameter, and what came of it."""

    value: float
    text: str
    figures: Figures | None


@dataclass(frozen=True)
class Shown:
    name: str
    rows: tuple[Row, ...]


def setting_title(name: str, t: Catalog) -> str:
    """How the setting is called in its field."""
    beams = {"beams": "compare.width", "length_penalty": "compare.length_penalty"}
    return t(beams.get(name, f"frame.{name}"))


def sweep_chart(shown: Shown, at: int, t: Catalog) -> go.Figure:
    """Perplexity above, repetition and variety below, by the value; ``at`` is in view."""
    figure = make_subplots(rows=2, shared_xaxes=True, vertical_spacing=0.08)
    x = [row.value for row in shown.rows]
    for place, name, symbol, colour, dash in (
        (1, "perplexity", "circle", BLUE, "solid"),
        (2, "repeated_4grams", "square", ORANGE, "dot"),
        (2, "distinct_2", "diamond", GREEN, "dash"),
    ):
        figure.add_scatter(
            row=place,
            col=1,
            x=x,
            y=[_value(row.figures, name) for row in shown.rows],
            mode="lines+markers",
            name=t(f"compare.fig_{name}"),
            line={"color": colour, "dash": dash},
            marker={
                "symbol": symbol,
                "color": colour,
                "size": [15 if i == at else 8 for i in range(len(x))],
            },
            customdata=[_hint(row.text) for row in shown.rows],
            hovertemplate="%{x:g}: %{y:.3~g}<br>%{customdata}<extra></extra>",
        )
    figure.add_vline(x=x[at], line={"color": "#808080", "dash": "dot", "width": 1})
    figure.update_xaxes(fixedrange=True)
    setting = setting_title(shown.name, t)
    if shown.name == "top_k" and min(x) > 0:
        figure.update_xaxes(type="log", dtick="D1")
        setting = t("lab.log_axis", axis=setting)
    figure.update_xaxes(row=2, col=1, title=setting)
    title = t("lab.log_axis", axis=t("compare.axis_perplexity_short"))
    figure.update_yaxes(row=1, col=1, title=title, type="log")
    figure.update_yaxes(fixedrange=True)
    figure.update_yaxes(row=2, col=1, range=[-0.04, 1.06], **percents(1))
    figure.update_layout(
        height=420,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
        clickmode="event+select",
    )
    return figure


def _value(found: Figures | None, name: str) -> float | None:
    if found is None:
        return None
    if name == "distinct_2":
        return found.distinct[1]
    return found.perplexity if name == "perplexity" else found.repeated_4grams


def _hint(text: str) -> str:
    one_line = " ".join(text.split())
    return plain(one_line if len(one_line) <= HINT else one_line[: HINT - 1] + "…")


def sweep_table(shown: Shown, t: Catalog) -> pd.DataFrame:
    """One row a value: the text and its figures."""
    rows = shown.rows
    numbers = [row.figures for row in rows]
    return pd.DataFrame(
        {
            setting_title(shown.name, t): [row.value for row in rows],
            t("compare.sweep_col_text"): [row.text for row in rows],
            t("compare.fig_perplexity"): [f.perplexity if f else None for f in numbers],
            t("compare.fig_entropy"): [
                bits(f.entropy) if f and f.entropy is not None else None for f in numbers
            ],
            t("compare.fig_rank"): [f.rank if f else None for f in numbers],
            t("compare.fig_repeated_4grams"): [f.repeated_4grams if f else None for f in numbers],
            t("compare.fig_distinct_2"): [f.distinct[1] if f else None for f in numbers],
            t("compare.fig_tokens"): [f.tokens if f else None for f in numbers],
        }
    )
