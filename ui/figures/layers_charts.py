"""Plotly charts of the Layers page. Pure: records in, a figure out. Layers count from 1."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.lens import Column
from core.neurons import Activity
from core.residual import Stream
from ui.figures.charts import BLUE, ORANGE, percents, plain, short
from ui.figures.layers import Label
from ui.i18n import Catalog

PINK, GREEN = "#CC79A7", "#009E73"
"""What attention adds, and what the feed-forward part adds."""
LEAST: Final = 1e-6
"""Lowest probability of the logarithmic axis."""


def way(column: Column, following: int, label: Label, layer: int, t: Catalog) -> go.Figure:
    """Probability and rank, by layer, of the next token and of the model's favourite."""
    figure = make_subplots(rows=2, shared_xaxes=True, vertical_spacing=0.08)
    x = list(range(1, column.ids.shape[0] + 1))
    for i, token in enumerate(column.followed):
        is_next = token == following
        name = t("layers.way_next" if is_next else "layers.way_favourite")
        # A label that is written with markup or dollars must stay letters.
        legend = f"{name}{t('attention.colon')}{short(label(token))}"
        looks = {
            "line": {"color": ORANGE if is_next else BLUE, "dash": "solid" if is_next else "dot"},
            "marker": {"symbol": "circle" if is_next else "square", "size": 6},
            "mode": "lines+markers",
            "legendgroup": str(token),
            "name": legend,
        }
        p, rank = column.followed_probability[:, i], column.followed_rank[:, i]
        said = "%{x}: " + plain(label(token))
        figure.add_scatter(
            row=1, col=1, x=x, y=p, hovertemplate=f"{said}<br>%{{y:.2%}}<extra></extra>", **looks
        )
        figure.add_scatter(
            row=2,
            col=1,
            x=x,
            y=rank,
            showlegend=False,
            hovertemplate=f"{said}<br>#%{{y:,d}}<extra></extra>",
            **looks,
        )
    figure.update_yaxes(row=1, col=1, range=[-0.02, 1.02], title=t("layers.axis_p"), **percents(1))
    top = float(np.log10(max(int(column.followed_rank.max()), 10)))
    figure.update_yaxes(
        row=2,
        col=1,
        type="log",
        range=[top + 0.15, -0.15],
        title=t("layers.axis_rank"),
        dtick=1,
        tickformat=",",
    )
    return _dress(figure, x, layer, t, rows=2, height=420)


def stream_chart(found: Stream, layer: int, t: Catalog) -> go.Figure:
    """Lengths, shares along the final vector, and the angle to it."""
    rows = 3 if found.parts is not None else 2
    figure = make_subplots(rows=rows, shared_xaxes=True, vertical_spacing=0.07)
    x = list(range(1, found.change.size + 1))
    _line(figure, 1, [0, *x], found.size, t("layers.size"), BLUE, "circle")
    parts = found.parts
    if parts is None:
        _line(figure, 1, x, found.change, t("layers.change"), ORANGE, "diamond")
    else:
        _line(figure, 1, x, parts.attention, t("layers.attention"), PINK, "square")
        _line(figure, 1, x, parts.feed_forward, t("layers.feed_forward"), GREEN, "triangle-up")
        for values, name, colour in (
            (parts.attention_along, "attention", PINK),
            (parts.feed_forward_along, "feed_forward", GREEN),
        ):
            figure.add_bar(
                row=2,
                col=1,
                x=x,
                y=values,
                marker={"color": colour},
                showlegend=False,
                hovertemplate=f"%{{x}}: {t(f'layers.{name}')}<br>%{{y:.4g}}<extra></extra>",
            )
        figure.update_yaxes(row=2, col=1, title=t("layers.axis_along"))
    _line(figure, rows, [0, *x], found.cosine, t("layers.cosine"), BLUE, "circle", legend=False)
    figure.update_yaxes(
        row=1, col=1, type="log", title=t("layers.axis_size"), dtick=1, tickformat=",~g"
    )
    low = min(-0.02, float(found.cosine.min()) - 0.05)
    figure.update_yaxes(row=rows, col=1, range=[low, 1.05], title=t("layers.axis_cosine"))
    figure.update_layout(barmode="relative")
    return _dress(figure, [0, *x], layer, t, rows=rows, height=540 if rows == 3 else 420)


def sparsity(found: Activity, layer: int, t: Catalog) -> go.Figure:
    """The share of silent neurons in each layer."""
    x = list(range(1, found.near_zero.size + 1))
    figure = make_subplots(rows=1)
    busy = t("layers.busy")
    figure.add_bar(
        x=x,
        y=found.near_zero,
        customdata=found.busy.tolist(),
        marker={"color": [ORANGE if n == layer + 1 else GREEN for n in x]},
        hovertemplate=f"%{{x}}: %{{y:.1%}}<br>{busy}: %{{customdata:,d}}<extra></extra>",
        showlegend=False,
    )
    figure.update_yaxes(range=[0, 1.02], title=t("layers.axis_near_zero"), **percents(1))
    return _dress(figure, x, layer, t, rows=1, height=230)


def _line(  # noqa: PLR0917 - one line of a chart
    figure: go.Figure,
    row: int,
    x: list[int],
    y: Any,
    name: str,
    colour: str,
    symbol: str,
    *,
    legend: bool = True,
) -> None:
    figure.add_scatter(
        row=row,
        col=1,
        x=x,
        y=y,
        name=name,
        mode="lines+markers",
        line={"color": colour, "width": 2},
        marker={"symbol": symbol, "size": 6},
        showlegend=legend,
        hovertemplate=f"%{{x}}: {name}<br>%{{y:.4g}}<extra></extra>",
    )


def _dress(
    figure: go.Figure, x: list[int], layer: int, t: Catalog, *, rows: int, height: int
) -> go.Figure:
    """Numeric axes, the layer in view shaded, nothing to drag."""
    every = max(1, -(-len(x) // 12))
    figure.add_vrect(
        x0=layer + 0.5,
        x1=layer + 1.5,
        fillcolor=ORANGE,
        opacity=0.14,
        line_width=0,
        layer="below",
    )
    figure.update_xaxes(
        fixedrange=True, range=[x[0] - 0.6, x[-1] + 0.6], tickmode="linear", tick0=x[0], dtick=every
    )
    figure.update_xaxes(row=rows, col=1, title=t("layers.axis_layer"))
    figure.update_yaxes(fixedrange=True)
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
        bargap=0.25,
    )
    return figure
