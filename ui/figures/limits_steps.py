"""Measured passes beside their limits. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pandas as pd
import plotly.graph_objects as go

from core.lab.roofline import Roof
from core.lab.roofline_ops import Count, waiting_share
from core.lab.roofline_steps import ATTENTION, REST, StepTime
from ui.figures.charts import BLUE, INK, ORANGE, dressed, pattern_of
from ui.figures.limits import GREY
from ui.figures.words import whole_percent
from ui.i18n import Catalog

PARTS: Final = ("qkv", "output", "gate_up", "down", "head", ATTENTION, REST)
COLOURS: Final = dict(
    zip(
        PARTS,
        ("#0072B2", "#56B4E9", "#009E73", "#8BC34A", "#E69F00", "#CC79A7", GREY),
        strict=True,
    )
)
PATTERNS: Final = dict(zip(PARTS, ("", "/", "", "\\", "", "x", "."), strict=True))
"""Beside the colours, for whoever sees none."""


@dataclass(frozen=True)
class Timed:
    """One measured pass with what it is made of."""

    time: StepTime
    counts: tuple[Count, ...]
    each: tuple[float, ...]
    """Milliseconds at least, of each of the counts."""
    waiting: float
    """Share of the limit in which the arithmetic has nothing to do."""

    @property
    def limit(self) -> float:
        """Milliseconds at least, of the whole pass."""
        return sum(self.each)

    @property
    def share(self) -> float:
        """Of the limit that was reached: 1 is as fast as the machine allows."""
        return self.limit / self.time.time.median


def timed(time: StepTime, counts: tuple[Count, ...], roof: Roof, dtype: str) -> Timed:
    each = tuple(count.limit(roof, dtype) for count in counts)
    return Timed(time, counts, each, waiting_share(counts, roof, dtype))


def batches_chart(found: list[Timed], t: Catalog) -> go.Figure:
    """Decode steps by batch size: the limit, the median with its spread, the share reached."""
    figure = go.Figure()
    steps = [each for each in found if each.time.case.phase == "decode"]
    x = list(range(len(steps)))
    spread = [each.time.time for each in steps]
    figure.add_bar(
        x=x,
        y=[each.limit for each in steps],
        name=t("limits.limit"),
        marker={"color": "rgba(0,0,0,0)", "line": {"color": ORANGE, "width": 2.5}},
        hovertemplate="%{y:.1f} ms<extra>" + t("limits.limit") + "</extra>",
    )
    figure.add_bar(
        x=x,
        y=[s.median for s in spread],
        name=t("limits.measured_median"),
        marker={"color": BLUE},
        text=[whole_percent(each.share) for each in steps],
        textposition="inside",
        insidetextanchor="start",
        insidetextfont={"color": INK, "size": 11},
        constraintext="none",  # else Plotly shrinks it to the width of the bar
        textangle=0,
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [s.high - s.median for s in spread],
            "arrayminus": [s.median - s.low for s in spread],
            "color": GREY,
        },
        customdata=[[each.time.tokens_per_second, whole_percent(each.share)] for each in steps],
        hovertemplate="%{y:.1f} ms · %{customdata[0]:,.0f} "
        + t("limits.tokens_a_second")
        + "<extra>%{customdata[1]}</extra>",
    )
    figure.update_xaxes(
        title=t("limits.axis_batch"),
        tickvals=x,
        ticktext=[
            f"{each.time.case.batch}<br>{each.time.tokens_per_second:,.0f}<br>{t('limits.per_s')}"
            for each in steps
        ],
        tickangle=0,
        fixedrange=True,
    )
    figure.update_yaxes(title=t("limits.axis_ms"), fixedrange=True, rangemode="tozero")
    dressed(figure, 380, legend_traceorder="normal")
    return figure


def parts_chart(found: Timed, t: Catalog) -> go.Figure:
    """One pass as it was timed, part by part, over the same pass at the limit."""
    figure = go.Figure()
    rows = [t("limits.limit"), t("limits.measured_median")]
    measured = dict(found.time.parts)
    limit = _limits(found)
    for name in PARTS:
        values = [limit.get(name, 0.0), measured.get(name, 0.0)]
        if not any(values):
            continue
        label = t(f"limits.op_{name}")
        figure.add_bar(
            y=[0, 1],
            x=values,
            orientation="h",
            name=label,
            marker={
                "color": COLOURS[name],
                "pattern": pattern_of(PATTERNS[name]),
            },
            hovertemplate=f"{label}: %{{x:.2f}} ms<extra></extra>",
        )
    figure.update_layout(barmode="stack", bargap=0.35)
    figure.update_xaxes(title=t("limits.axis_ms"), fixedrange=True)
    figure.update_yaxes(tickvals=[0, 1], ticktext=rows, fixedrange=True)
    dressed(figure, 350, legend_traceorder="normal")
    figure.update_layout(legend={"y": -0.42, "yanchor": "top"})
    return figure


def _limits(found: Timed) -> dict[str, float]:
    """Milliseconds at the limit, of the parts that were timed."""
    out: dict[str, float] = {}
    for count, value in zip(found.counts, found.each, strict=True):
        name = ATTENTION if count.kind in ("scores", "values") else str(count.kind)
        out[name] = out.get(name, 0.0) + value
    return out


def steps_table(found: list[Timed], t: Catalog) -> pd.DataFrame:
    """One row a pass."""
    return pd.DataFrame(
        [
            {
                t("limits.col_pass"): t(f"limits.{each.time.case.phase}"),
                t("limits.col_batch"): each.time.case.batch,
                t("limits.col_positions"): each.time.case.tokens,
                t("limits.col_measured_ms"): each.time.time.median,
                t("limits.col_low_ms"): each.time.time.low,
                t("limits.col_high_ms"): each.time.time.high,
                t("limits.col_limit_ms"): each.limit,
                t("limits.col_ratio"): 1 / each.share,
                t("limits.col_waiting"): each.waiting,
                t("limits.col_tokens_s"): each.time.tokens_per_second,
            }
            for each in found
        ]
    )
