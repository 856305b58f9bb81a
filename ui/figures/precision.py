"""The sweep from 8 to 2 bits, and how grids are called. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.edits.grid import Grid
from core.edits.spec import Rounding, parse_edit
from core.lab.quantize_records import BITS, Point, Sweep, line
from ui.figures.charts import BLUE, ORANGE, percents
from ui.figures.words import in_bytes, percent
from ui.i18n import Catalog

GREEN, PINK, GREY = "#009E73", "#CC79A7", "#8A8F98"
LEAST: Final = 1e-5
"""Lowest KL of the logarithmic axis."""
CLIFF: Final = (3, 5)
"""Bits between which most models fall apart."""
LOOKS: Final[dict[str, tuple[str, str, str]]] = {
    "tensor": (PINK, "x", "dot"),
    "channel": (ORANGE, "square", "solid"),
    "128": (GREEN, "triangle-up", "dash"),
    "64": (BLUE, "circle", "solid"),
    "32": (GREY, "diamond", "dashdot"),
}
"""Colour, sign and line of each way to share a scale."""


def share_of(grid: Grid) -> str:
    """The name of a way to share a scale, as the page's buttons have it."""
    return str(grid.group) if grid.span == "group" else grid.span


def share_words(share: str, t: Catalog) -> str:
    if share in ("tensor", "channel"):
        return t(f"precision.share_{share}")
    return t("precision.share_group", n=share)


def grid_words(grid: Grid, t: Catalog) -> str:
    """“4 bits, one scale for 32 weights, asymmetric”."""
    kind = "sym" if grid.symmetric else "asym"
    return t(
        "precision.grid_words",
        bits=grid.bits,
        share=share_words(share_of(grid), t),
        kind=t(f"precision.grid_{kind}"),
    )


def rounding_words(setting: Rounding, t: Catalog) -> str:
    """The same, with the LM head where it is rounded, too."""
    return grid_words(setting.grid, t) + (t("precision.and_head") if setting.head else "")


def curve_points(sweep: Sweep, curve: Grid, *, head: bool) -> list[Point]:
    """The points of one curve that are known, from 8 to 2 bits."""
    found = (sweep.at(setting) for setting in line(curve, head=head))
    return [point for point in found if point is not None]


def _cliff(figure: go.Figure, t: Catalog) -> None:
    """The shade behind both parts, which hold nothing yet."""
    low, high = CLIFF
    figure.add_vrect(
        x0=low, x1=high, fillcolor=ORANGE, opacity=0.1, line_width=0, layer="below",
        exclude_empty_subplots=False,
    )  # fmt: skip
    figure.add_annotation(
        x=(low + high) / 2, y=1, yref="paper", yanchor="bottom", showarrow=False,
        text=t("precision.cliff"),
    )  # fmt: skip


def _ring(figure: go.Figure, mine: Point, bits: int, t: Catalog) -> None:
    """Around the reader's setting."""
    for row, value in ((1, max(mine.kl, LEAST)), (2, mine.top1)):
        figure.add_scatter(
            row=row,
            col=1,
            x=[bits],
            y=[value],
            mode="markers",
            marker={
                "symbol": "circle-open",
                "size": 20,
                "line": {"width": 3, "color": ORANGE},
                "color": ORANGE,
            },
            name=t("precision.yours"),
            showlegend=row == 1,
            hoverinfo="skip",
        )


def _top(figure: go.Figure) -> float:
    """The power of ten above the largest KL that is drawn: one scale for a whole matrix can make
    it larger than any other."""
    drawn = [kl for trace in figure.data if trace.yaxis in (None, "y") for kl in trace.y or ()]
    return max(1.45, math.log10(max(drawn, default=1.0)) + 0.15)


def sweep_chart(
    known: Sweep | None, measured: Sweep | None, curves: Sequence[Grid], here: Rounding, t: Catalog
) -> go.Figure:
    """Against bits: KL on a logarithmic axis, and the share of unchanged first choices below; the
    reader's setting is ringed. ``known`` is drawn thin where ``measured`` has the same curve.
    """
    figure = make_subplots(rows=2, shared_xaxes=True, vertical_spacing=0.06, row_heights=[3, 2])
    _cliff(figure, t)
    for curve in curves:
        for sweep, name, new in ((known, "recorded", False), (measured, "measured", True)):
            points = curve_points(sweep, curve, head=here.head) if sweep else []
            if points:
                both = measured is not None and known is not None
                _curve(figure, points, curve, f"lab.{name}" if both and new else "", t)
    mine = (measured and measured.at(here)) or (known and known.at(here))
    if mine:
        _ring(figure, mine, here.grid.bits, t)
    figure.update_xaxes(row=2, col=1, title=t("precision.axis_bits"))
    figure.update_xaxes(
        range=[8.3, 1.7],
        tickmode="array",
        tickvals=list(BITS),
        fixedrange=True,
    )
    figure.update_yaxes(
        row=2,
        col=1,
        title=t("precision.axis_top1"),
        range=[-0.06, 1.06],
        **percents(1.0),
        fixedrange=True,
    )
    figure.update_yaxes(
        row=1,
        col=1,
        title=t("precision.axis_kl"),
        type="log",
        range=[-5.15, _top(figure)],
        tickvals=[1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10],
        ticktext=["≈ 0", "0.0001", "0.001", "0.01", "0.1", "1", "10"],
        fixedrange=True,
    )
    figure.update_layout(
        height=560,
        margin={"l": 10, "r": 10, "t": 30, "b": 10},
        legend={"orientation": "h", "y": -0.14, "yanchor": "top", "x": 0},
        dragmode=False,
    )
    return figure


def _curve(figure: go.Figure, points: Sequence[Point], curve: Grid, mark: str, t: Catalog) -> None:
    share = share_of(curve)
    colour, symbol, dash = LOOKS[share]
    name = share_words(share, t)
    said = t(
        "precision.hover",
        bits="%{x}",
        kl="%{customdata[0]:.4g}",
        top1="%{customdata[1]}",
        perplexity="%{customdata[2]:.4g}",
    )
    values = [max(point.kl, LEAST) for point in points], [point.top1 for point in points]
    for row, y in enumerate(values, 1):
        figure.add_scatter(
            row=row,
            col=1,
            x=[_bits(point) for point in points],
            y=y,
            mode="lines+markers",
            name=f"{name} ({t(mark)})" if mark else name,
            legendgroup=f"{share}{mark}",
            showlegend=row == 1,
            line={"color": colour, "dash": dash, "width": 4 if mark else 2},
            marker={"symbol": symbol, "size": 11 if mark else 8},
            customdata=[[point.kl, percent(point.top1), point.perplexity] for point in points],
            hovertemplate=f"{name}<br>{said}<extra></extra>",
        )


def _bits(point: Point) -> int:
    rounding = parse_edit(point.edit).rounding
    assert rounding is not None
    return rounding.grid.bits


def sweep_table(sweep: Sweep, curves: Sequence[Grid], *, head: bool, t: Catalog) -> pd.DataFrame:
    """Every point of the curves in view."""
    return pd.DataFrame(
        [
            {
                t("precision.col_share"): share_words(share_of(curve), t),
                t("precision.col_bits"): _bits(point),
                t("precision.col_kl"): point.kl,
                t("precision.col_top1"): percent(point.top1),
                t("precision.col_perplexity"): point.perplexity,
                t("precision.col_error"): percent(point.error),
                t("precision.col_size"): in_bytes(point.nbytes),
            }
            for curve in curves
            for point in curve_points(sweep, curve, head=head)
        ]
    )
