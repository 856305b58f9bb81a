"""Charts of zeros: what they cost, where the cut lies, and whether they save time. Pure."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.edits.masks import Method
from core.edits.spec import Zeros
from core.lab.prune_records import Crossing, Crossings, Cut, Point, Sweep
from ui.figures.charts import BLUE, ORANGE, dressed, pattern_of, percents
from ui.figures.pruning_words import number
from ui.figures.words import in_bytes, percent, whole_percent
from ui.i18n import Catalog

PINK, GREEN = "#CC79A7", "#009E73"
LOOKS: Final[dict[Method, tuple[str, str, str]]] = {
    "wanda": (BLUE, "circle", "solid"),
    "magnitude_row": (GREEN, "triangle-up", "dash"),
    "magnitude": (ORANGE, "square", "dot"),
    "random": (PINK, "x", "dashdot"),
}
"""Colour, symbol and dash of each way to choose; the order of the legend."""
CEILING: Final = 1e5
"""Perplexities above it are drawn there: worse than guessing among all words."""
GREY: Final = "#8a8a8a"


def sweep_chart(found: Sweep, at: Zeros | None, t: Catalog) -> go.Figure:
    """Perplexity by share of zeros, a line for each way to choose; two of four as open marks."""
    figure = go.Figure()
    for method, (colour, symbol, dash) in LOOKS.items():
        line = sorted(
            (p for p in found.points if p.method == method and not p.two_of_four),
            key=lambda p: p.share,
        )
        if line:
            figure.add_scatter(
                x=[0.0, *(p.share for p in line)],
                y=[found.perplexity, *(_drawn(p) for p in line)],
                customdata=[
                    [whole_percent(0.0), number(found.perplexity)],
                    *([whole_percent(p.share), _said(p)] for p in line),
                ],
                name=t(f"pruning.short_{method}"),
                mode="lines+markers",
                line={"color": colour, "dash": dash, "width": 2},
                marker={"symbol": symbol, "size": 8},
                hovertemplate="%{customdata[0]}: %{customdata[1]}<extra>%{fullData.name}</extra>",
            )
        fours = [p for p in found.points if p.method == method and p.two_of_four]
        if fours:
            figure.add_scatter(
                x=[0.5] * len(fours),
                y=[_drawn(p) for p in fours],
                customdata=[_said(p) for p in fours],
                showlegend=False,
                mode="markers",
                marker={
                    "symbol": f"{symbol}-open", "size": 15, "color": colour,
                    "line": {"width": 2.5},
                },
                hovertemplate=f"2:4, {t(f'pruning.short_{method}')}: %{{customdata}}"
                "<extra></extra>",
            )  # fmt: skip
    if any(p.two_of_four for p in found.points):
        # One entry for all of them: what is open is 2:4, its shape and colour say by which rule.
        figure.add_scatter(
            x=[None], y=[None], name=t("pruning.short_2of4"), mode="markers",
            marker={"symbol": "circle-open", "size": 13, "color": GREY, "line": {"width": 2.5}},
        )  # fmt: skip
    if at is not None:
        figure.add_vline(x=at.share, line={"color": GREY, "dash": "dot", "width": 2})
    low = math.log10(max(found.perplexity, 1.0)) if found.perplexity else 0.5
    figure.update_yaxes(
        type="log", title=t("pruning.axis_perplexity"), fixedrange=True, dtick=1, tickformat=",~g",
        range=[low - 0.25, math.log10(CEILING) + 0.12],
    )  # fmt: skip
    figure.update_xaxes(
        title=t("pruning.axis_zeros"), fixedrange=True, range=[-0.02, 0.93], **percents(0.93)
    )
    return dressed(figure, 380, hovermode="closest")


def _drawn(point: Point) -> float:
    return min(point.judged.perplexity, CEILING)


def _said(point: Point) -> str:
    return number(point.judged.perplexity)


def sweep_table(found: Sweep, t: Catalog) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                t("pruning.col_zeros_share"): "2:4" if p.two_of_four else whole_percent(p.share),
                t("pruning.col_method"): t(f"pruning.short_{p.method}"),
                t("pruning.perplexity"): number(p.judged.perplexity),
                t("pruning.kl"): p.judged.kl,
                t("pruning.col_top1"): percent(p.judged.top1),
            }
            for p in found.points
        ]
    )


# ---------------------------------------------------------------- the cut


def cut_chart(found: Cut, t: Catalog) -> go.Figure:
    """How many weights of a matrix have each size: those that stay, and those that go."""
    middles = (found.edges[:-1] + found.edges[1:]) / 2
    figure = go.Figure()
    for counts, key, colour, shape in (
        (found.kept, "stay", BLUE, ""),
        (found.dropped, "go", ORANGE, "/"),
    ):
        figure.add_bar(
            x=middles,
            y=counts,
            name=t(f"pruning.{key}"),
            marker={"color": colour, "pattern": pattern_of(shape), "line": {"width": 0}},
            hovertemplate=f"%{{x:.3g}}: %{{y:,d}}<extra>{t(f'pruning.{key}')}</extra>",
        )
    if found.limit:
        for side in (-1, 1):
            figure.add_vline(x=side * found.limit, line={"color": GREY, "dash": "dot"})
    figure.update_xaxes(title=t("pruning.axis_weight"), fixedrange=True)
    figure.update_yaxes(title=t("pruning.axis_count"), fixedrange=True, tickformat=",")
    figure.update_layout(barmode="stack")
    figure = dressed(figure, 300, hovermode="closest")
    return figure.update_layout(bargap=0.05)


def cut_table(found: Cut, t: Catalog) -> pd.DataFrame:
    return pd.DataFrame(
        {
            t("pruning.col_from"): found.edges[:-1],
            t("pruning.col_to"): found.edges[1:],
            t("pruning.stay"): found.kept,
            t("pruning.go"): found.dropped,
        }
    )


# ---------------------------------------------------------------- time


def crossing_chart(found: Crossings, t: Catalog) -> go.Figure:
    """Time and memory of the list, divided by those of the table: above 1 the table wins."""
    figure = go.Figure()
    counts = sorted({point.tokens for point in found.points})
    looks = zip(counts, ((BLUE, "circle", "solid"), (ORANGE, "square", "dash")), strict=False)
    for count, (colour, symbol, dash) in looks:
        points = [point for point in found.points if point.tokens == count]
        figure.add_scatter(
            x=[p.zeros for p in points],
            y=[_ratio(p) for p in points],
            name=t("pruning.time_one" if count == 1 else "pruning.time_many", n=count),
            customdata=[
                [whole_percent(p.zeros), _micro(p.dense.median), _micro(p.sparse.median)]
                for p in points
            ],
            hovertemplate="%{customdata[0]}: %{customdata[1]} → %{customdata[2]} (× %{y:.2f})"
            "<extra>%{fullData.name}</extra>",
            mode="lines+markers",
            line={"color": colour, "dash": dash, "width": 2},
            marker={"symbol": symbol, "size": 8},
        )
    figure.add_scatter(
        x=[share for share, _ in found.sparse_bytes],
        y=[size / found.dense_bytes for _, size in found.sparse_bytes],
        name=t("pruning.memory_line"),
        customdata=[whole_percent(share) for share, _ in found.sparse_bytes],
        hovertemplate="%{customdata}: × %{y:.2f}<extra>%{fullData.name}</extra>",
        mode="lines+markers",
        line={"color": GREEN, "dash": "dot", "width": 2},
        marker={"symbol": "triangle-up", "size": 8},
    )
    figure.add_hline(y=1, line={"color": GREY, "width": 2})
    figure.update_xaxes(title=t("pruning.axis_zeros_matrix"), fixedrange=True)
    shares = [share for share, _ in found.sparse_bytes] or [0.0, 1.0]
    figure.update_xaxes(percents(max(shares), min(shares)))
    figure.update_yaxes(
        title=t("pruning.axis_list"), type="log", fixedrange=True, tickprefix="× ",
        tickvals=[0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20],
    )  # fmt: skip
    return dressed(figure, 340, hovermode="closest")


def _ratio(point: Crossing) -> float:
    return point.sparse.median / point.dense.median


def _micro(ms: float) -> str:
    return f"{1000 * ms:,.0f} µs"


def crossing_table(found: Crossings, t: Catalog) -> pd.DataFrame:
    sizes = dict(found.sparse_bytes)
    return pd.DataFrame(
        [
            {
                t("pruning.col_zeros_share"): whole_percent(p.zeros),
                t("pruning.col_tokens"): p.tokens,
                t("pruning.col_dense"): _spread(p.dense),
                t("pruning.col_list"): _spread(p.sparse),
                t("pruning.col_ratio"): f"× {_ratio(p):.2f}",
                t("pruning.col_dense_bytes"): in_bytes(found.dense_bytes),
                t("pruning.col_list_bytes"): in_bytes(sizes[p.zeros]),
                t("pruning.col_off"): p.difference,
            }
            for p in found.points
        ]
    )


def _spread(times: Any) -> str:
    return f"{_micro(times.median)} ({1000 * times.low:,.0f} – {1000 * times.high:,.0f})"


def least_memory(found: Crossings) -> float:
    """The share of zeros at which the list takes as many bytes as the table, by interpolation."""
    shares = np.array([share for share, _ in found.sparse_bytes])
    ratios = np.array([size / found.dense_bytes for _, size in found.sparse_bytes])
    slope, start = np.polyfit(shares, ratios, 1)
    return float((1 - start) / slope)
