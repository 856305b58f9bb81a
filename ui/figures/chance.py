"""Many draws of a step as a chart, a table and a sentence. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd
import plotly.graph_objects as go

from core.decode.draws import ChiSquare, Draws
from ui.figures.charts import BLUE, ORANGE, plain, short
from ui.figures.words import percent
from ui.i18n import Catalog

Label = Callable[[int], str]
BARS: Final = 12
"""Tokens with a bar of their own; all others share one."""
ROWS: Final = 100


@dataclass(frozen=True)
class Row:
    """One token of the histogram, or all that have no bar of their own."""

    id: int | None
    """``None``: the others."""
    label: str
    tokens: int
    p: float
    count: int
    expected: float
    spread: float


def rows(made: Draws, label: Label, t: Catalog, most: int = BARS) -> list[Row]:
    """The likeliest tokens, then all others together; the columns sum to 1 and to the draws."""
    size = made.ids.size
    shown = size if size <= most + 1 else most
    expected, spread = made.expected, made.spread
    out = [
        Row(
            int(made.ids[i]),
            label(int(made.ids[i])),
            1,
            float(made.probabilities[i]),
            int(made.counts[i]),
            float(expected[i]),
            float(spread[i]),
        )
        for i in range(shown)
    ]
    if shown < size:
        p = float(made.probabilities[shown:].sum())
        out.append(
            Row(
                None,
                t("generate.others", n=f"{size - shown:,}"),
                size - shown,
                p,
                int(made.counts[shown:].sum()),
                p * made.count,
                (made.count * p * max(0.0, 1 - p)) ** 0.5,
            )
        )
    return out


def draws_chart(made: Draws, label: Label, t: Catalog) -> go.Figure:
    """Bars: how often each token was drawn. Marks: how often the distribution expects it, ± 2σ."""
    found = rows(made, label, t)
    y = list(range(len(found)))
    names = [plain(row.label) for row in found]
    figure = go.Figure()
    figure.add_bar(
        orientation="h",
        y=y,
        x=[row.count for row in found],
        name=t("generate.drawn"),
        marker={"color": ORANGE},
        customdata=[
            [name, percent(row.count / made.count)] for name, row in zip(names, found, strict=True)
        ],
        hovertemplate="%{customdata[0]}: %{x:,} (%{customdata[1]})<extra></extra>",
    )
    figure.add_scatter(
        y=y,
        x=[row.expected for row in found],
        name=t("generate.expected"),
        mode="markers",
        marker={
            "symbol": "diamond",
            "color": BLUE,
            "size": 10,
            "line": {"width": 1, "color": "white"},
        },
        error_x={
            "array": [2 * row.spread for row in found],
            "color": BLUE,
            "thickness": 2,
            "width": 5,
        },
        customdata=[[name, percent(row.p)] for name, row in zip(names, found, strict=True)],
        hovertemplate="%{customdata[0]}: %{x:,.1f} (%{customdata[1]})<extra></extra>",
    )
    ends = [max(row.count, row.expected + 2 * row.spread) for row in found]
    figure.add_scatter(
        y=y,
        x=ends,
        mode="text",
        text=[f"\u00a0\u00a0\u00a0{row.count:,}" for row in found],
        textfont={"size": 13},
        textposition="middle right",
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )
    _dress(figure, found, max(ends), t)
    return figure


def _dress(figure: go.Figure, found: Sequence[Row], most: float, t: Catalog) -> None:
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(found))),
        ticktext=[short(row.label) for row in found],
        range=[len(found) - 0.4, -0.6],
        fixedrange=True,
        tickfont={"size": 14},
    )
    figure.update_xaxes(range=[0, 1.16 * most], fixedrange=True, title=t("generate.axis_draws"))
    figure.update_layout(
        height=110 + 30 * len(found),
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
        bargap=0.3,
    )


def draws_table(made: Draws, label: Label, t: Catalog) -> pd.DataFrame:
    """The numbers behind the chart; up to ROWS tokens, then all others."""
    found = rows(made, label, t, ROWS)
    return pd.DataFrame(
        {
            t("generate.col_token"): [row.label for row in found],
            t("generate.col_filtered"): [row.p for row in found],
            t("generate.drawn"): [row.count for row in found],
            t("generate.expected"): [round(row.expected, 2) for row in found],
            t("generate.col_share"): [row.count / made.count for row in found],
            t("generate.col_sigmas"): [
                round((row.count - row.expected) / row.spread, 2) if row.spread else 0.0
                for row in found
            ],
        }
    )


def draws_alt(made: Draws, label: Label, t: Catalog) -> str:
    """The chart in a sentence."""
    first = rows(made, label, t)[:3]
    each = [
        t(
            "generate.draws_alt_one",
            token=row.label,
            count=f"{row.count:,}",
            expected=f"{row.expected:,.1f}",
        )
        for row in first
    ]
    join = t("generate.list_join")
    return t("generate.draws_alt", n=f"{made.count:,}", first=join.join(each))


def verdict(made: Draws, test: ChiSquare, t: Catalog) -> str:
    """What the test says, in words that do not overrate it."""
    values = {"n": f"{made.count:,}", "pooled": f"{test.pooled:,}"}
    if test.p is None:
        return t("generate.chi_single")
    said = [t("generate.chi_rare" if test.p < 0.05 else "generate.chi_fair", p=p_text(test.p))]
    if test.pooled > 1:
        said.append(t("generate.chi_pooled", **values))
    unseen = int((made.counts == 0).sum())
    if unseen:
        key = "generate.draws_unseen_one" if unseen == 1 else "generate.draws_unseen"
        said.append(t(key, n=f"{unseen:,}"))
    return t("generate.sentence_join").join(said)


def p_text(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}" if p < 0.01 else f"{p:.3f}"
