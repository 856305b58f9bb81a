"""One matrix and its grid: histogram, a row by hand, outliers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.edits.grid import Grid
from core.lab.quantize_records import Hand, Look, Outlier, SpanScale
from ui.figures.charts import BLUE, ORANGE
from ui.figures.precision import share_of, share_words
from ui.figures.words import percent
from ui.i18n import Catalog

MOST_LINES: Final = 64
"""Grid points that are drawn as lines; more of them would be one grey area."""


def histogram(found: Look, t: Catalog) -> go.Figure:
    """How often each size of weight occurs (logarithmic), with the grid's points as lines."""
    middles = (found.edges[:-1] + found.edges[1:]) / 2
    figure = go.Figure()
    figure.add_bar(
        x=middles,
        y=found.counts,
        width=np.diff(found.edges),
        marker={"color": BLUE, "line": {"width": 0}},
        name=t("precision.weights"),
        hovertemplate="w = %{x:.4g}<br>%{y:,}<extra></extra>",
    )
    top = float(max(found.counts.max(initial=1), 1))
    points = found.points
    lined = points.size <= MOST_LINES
    xs = np.repeat(points, 3)
    ys = np.tile(np.array([0.5, top * 2, np.nan]), points.size)
    figure.add_scatter(
        x=xs if lined else points,
        y=ys if lined else np.full(points.size, top * 2),
        mode="lines" if lined else "markers",
        line={"color": ORANGE, "width": 1.5, "dash": "solid"},
        marker={"symbol": "line-ns", "size": 10, "line": {"width": 1, "color": ORANGE}},
        name=t("precision.grid_points", n=points.size),
        hovertemplate="%{x:.4g}<extra></extra>",
    )
    figure.update_xaxes(title=t("precision.axis_weight"), fixedrange=True, nticks=7)
    figure.update_yaxes(
        title=t("precision.axis_count"),
        type="log",
        range=[np.log10(0.5), np.log10(top * 3)],
        dtick=1,
        tickformat=",~g",
        fixedrange=True,
    )
    figure.update_layout(
        height=340,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
        bargap=0,
    )
    return figure


def histogram_table(found: Look, t: Catalog) -> pd.DataFrame:
    """The bins that hold a weight."""
    return pd.DataFrame(
        [
            {
                t("precision.col_from"): float(low),
                t("precision.col_to"): float(high),
                t("precision.col_count"): int(count),
                t("precision.col_rounded"): int(rounded),
            }
            for low, high, count, rounded in zip(
                found.edges[:-1], found.edges[1:], found.counts, found.rounded, strict=True
            )
            if count or rounded
        ]
    )


def scale_latex(hand: Hand, grid: Grid) -> list[str]:
    """How the scale comes about, and how a weight becomes a code, in numbers."""
    first, code = float(hand.weights[0]), int(hand.codes[0])
    times = f"({code})" if code < 0 else str(code)
    if grid.symmetric:
        top = 2 ** (grid.bits - 1) - 1
        reach = max(-hand.low, hand.high)
        formula = rf"s = \frac{{\max|w|}}{{2^{{{grid.bits}-1}}-1}}"
        scale = rf"s = \frac{{{reach:.6f}}}{{{top}}}"
        steps = rf"\frac{{{first:.6f}}}{{{hand.scale:.6f}}}"
        back = rf"\hat w = s \cdot {times} = {float(hand.values[0]):.6f}"
    else:
        top = 2**grid.bits - 1
        ends = rf"{hand.high:.6f} - ({hand.low:.6f})"
        formula = rf"s = \frac{{\max w - \min w}}{{2^{{{grid.bits}}}-1}}"
        scale = rf"s = \frac{{{ends}}}{{{top}}}"
        steps = rf"\frac{{{first:.6f} - ({hand.offset:.6f})}}{{{hand.scale:.6f}}}"
        back = rf"\hat w = \min w + s \cdot {times} = {float(hand.values[0]):.6f}"
    # In short lines, for the width of a phone.
    lines = [formula, rf"{scale} = {hand.scale:.6f}"]
    if hand.scale > 0:
        lines.append(rf"q = \mathrm{{round}}\left({steps}\right) = {code}")
    return [*lines, back]


def hand_table(hand: Hand, grid: Grid, t: Catalog) -> pd.DataFrame:
    """Weight by weight: divided by the scale, rounded, put back, the error."""
    safe = hand.scale if hand.scale > 0 else 1.0
    steps = (hand.weights - hand.offset) / safe
    limit = hand.scale / 2 * (1 + 1e-9) + 1e-12
    return pd.DataFrame(
        {
            t("precision.col_column"): hand.start + np.arange(hand.weights.size),
            t("precision.col_weight"): hand.weights,
            t("precision.col_steps" if grid.symmetric else "precision.col_steps_asym"): steps,
            t("precision.col_code"): hand.codes,
            t("precision.col_value"): hand.values,
            t("precision.col_off"): hand.error,
            t("precision.col_half"): ["✓" if off <= limit else "✗" for off in hand.error],
        }
    )


def outliers_table(outliers: Sequence[Outlier], t: Catalog) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                t("precision.col_row"): one.row,
                t("precision.col_column"): one.column,
                t("precision.col_weight"): one.value,
                t("precision.col_deviations"): one.deviations,
            }
            for one in outliers
        ]
    )


def scales_table(scales: Sequence[SpanScale], t: Catalog) -> pd.DataFrame:
    """What each way to share a scale makes of the same matrix."""
    return pd.DataFrame(
        [
            {
                t("precision.col_share"): share_words(share_of(one.grid), t),
                t("precision.col_scales"): f"{one.smallest:.2g} … {one.largest:.2g}"
                if one.smallest != one.largest
                else f"{one.largest:.2g}",
                t("precision.col_error"): percent(one.error),
                t("precision.col_zeroed"): percent(one.zeroed),
            }
            for one in scales
        ]
    )
