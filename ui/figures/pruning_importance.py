"""Which heads and layers matter, and that their effects do not add up. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.lab.prune_records import Importance, Together
from ui.figures.charts import BELOW, BLUE, ORANGE
from ui.i18n import Catalog

NUMBERS: Final = 28
"""Pixels for the numbers of an axis, above its title."""
TICKS: Final = (-1.0, -0.1, -0.01, 0.0, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0)


def bent(values: Any) -> Any:
    """A scale on which small and large effects, and both signs, can be told apart: ±√|x|."""
    found = np.asarray(values, dtype=float)
    return np.sign(found) * np.sqrt(np.abs(found))


def nats(x: float) -> str:
    """An effect with its sign; … where it is not measured."""
    if math.isnan(x):
        return "…"
    return f"{'+' if x > 0 else '−' if x < 0 else ''}{abs(x):.3g}"


def importance_map(found: Importance, t: Catalog) -> go.Figure:
    """Left a bar for each whole layer, right a cell for each head; layers run down, from 1."""
    layers, heads = len(found.layers), len(found.heads[0]) if found.heads else 0
    rows = list(range(1, layers + 1))
    figure = make_subplots(
        cols=2, shared_yaxes=True, horizontal_spacing=0.03, column_widths=[0.3, 0.7]
    )
    figure.add_bar(
        row=1,
        col=1,
        y=rows,
        x=bent(found.layers),
        orientation="h",
        marker={"color": [ORANGE if value > 0 else BLUE for value in found.layers]},
        customdata=[nats(value) for value in found.layers],
        hovertemplate=t("pruning.map_layer", layer="%{y}", nats="%{customdata}")
        + "<extra></extra>",
        showlegend=False,
    )
    _cells(figure, found, rows, heads, t)
    across = [x for x in (0.0, 1.0, 5.0) if x <= max(1.0, np.nanmax([0.0, *found.layers]))]
    figure.update_xaxes(
        col=1, fixedrange=True,
        tickvals=bent(across).tolist(), ticktext=[f"{x:g}" for x in across],
    )  # fmt: skip
    figure.update_xaxes(col=2, fixedrange=True, dtick=1 if heads < 16 else 4)
    for axis, key in (("x", "axis_layer_bent"), ("x2", "axis_head")):
        # Beside a colour bar on top Plotly draws titles of axes into the plot.
        figure.add_annotation(
            xref=f"{axis} domain", x=0.5, yref="paper", y=0, yshift=-NUMBERS, yanchor="top",
            text=t(f"pruning.{key}"), showarrow=False, font={"size": 14},
        )  # fmt: skip
    figure.update_yaxes(fixedrange=True, range=[layers + 0.5, 0.5], dtick=5 if layers > 12 else 1,
                        tick0=5 if layers > 12 else 1)  # fmt: skip
    figure.update_yaxes(col=1, title=t("pruning.axis_layer"))
    return figure.update_layout(
        height=150 + 15 * max(layers, 8),
        margin={"l": 10, "r": 10, "t": 10, "b": NUMBERS + 24},
        dragmode=False,
        bargap=0.2,
    )


def _cells(figure: go.Figure, found: Importance, rows: list[int], heads: int, t: Catalog) -> None:
    """A coloured cell for each head of each layer."""
    table = bent(found.heads)
    known = table[np.isfinite(table)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    inside = _inside(low, high)
    figure.add_heatmap(
        row=1,
        col=2,
        x=list(range(1, heads + 1)),
        y=rows,
        z=table,
        xgap=1,
        ygap=1,
        zmin=low,
        zmax=high,
        colorscale="Cividis",
        customdata=[[nats(value) for value in row] for row in found.heads],
        hovertemplate=t("pruning.map_head", layer="%{y}", head="%{x}", nats="%{customdata}")
        + "<extra></extra>",
        colorbar={
            "orientation": "h", "y": 1.0, "yanchor": "bottom", "thickness": 12, "len": 0.7,
            "x": 1.0, "xanchor": "right",
            "tickvals": bent(inside).tolist(), "ticktext": [nats(x) for x in inside],
            "title": {"text": t("pruning.axis_nats_bent"), "side": "top"},
        },
    )  # fmt: skip


def _inside(low: float, high: float) -> list[float]:
    """The ticks of a bent scale from ``low`` to ``high``; not too close to each other."""
    found: list[float] = []
    for tick in TICKS:
        at = float(bent(tick))
        near = found and at - float(bent(found[-1])) < (high - low) / 5
        if low - 1e-9 <= at <= high + 1e-9 and not near:
            found.append(tick)
    return found or [0.0]


def importance_table(found: Importance, t: Catalog) -> pd.DataFrame:
    """A row a layer: the whole layer, then each head."""
    rows = []
    for layer, (whole, heads) in enumerate(zip(found.layers, found.heads, strict=True), 1):
        named = {t("pruning.col_head", n=n): value for n, value in enumerate(heads, 1)}
        rows.append({t("pruning.axis_layer"): layer, t("pruning.axis_layer_off"): whole, **named})
    return pd.DataFrame(rows)


def together_chart(found: Together, t: Catalog) -> go.Figure:
    """The sum of single effects beside what happens when they are off together."""
    figure = go.Figure()
    x = [each.count for each in found.sums]
    for values, key, colour, symbol, dash in (
        ([each.joint for each in found.sums], "joint", BLUE, "circle", "solid"),
        ([each.single for each in found.sums], "single", ORANGE, "square", "dash"),
    ):
        figure.add_scatter(
            x=x,
            y=values,
            name=t(f"pruning.{key}"),
            mode="lines+markers",
            line={"color": colour, "dash": dash, "width": 2},
            marker={"symbol": symbol, "size": 9},
            hovertemplate="%{x}: %{y:+.3f}<extra>%{fullData.name}</extra>",
        )
    figure.update_xaxes(
        title={"text": t(f"pruning.axis_{found.kind}_off"), "standoff": BELOW},
        fixedrange=True,
        tickvals=_apart(x),
        tickangle=0,
    )
    figure.update_yaxes(title=t("pruning.axis_nats"), fixedrange=True, zeroline=True)
    return figure.update_layout(
        height=300,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
        hovermode="closest",
    )


def _apart(counts: Sequence[int]) -> list[int]:
    """The counts that have room for their number, on a phone too; the last one always has."""
    room = max(counts, default=0) / 14
    found: list[int] = []
    for count in sorted(counts, reverse=True):
        if not found or found[-1] - count >= room:
            found.append(count)
    return found[::-1]


def together_table(found: Together, t: Catalog) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                t(f"pruning.axis_{found.kind}_off"): each.count,
                t("pruning.single"): each.single,
                t("pruning.joint"): each.joint,
            }
            for each in found.sums
        ]
    )
