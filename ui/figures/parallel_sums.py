"""Pictures of partial sums and their all-reduce, of memory and of time by rank. Pure."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import plotly.graph_objects as go

from core.lab.parallel.records import TensorRun
from ui.figures.charts import INK
from ui.figures.parallel import COLOURS, GREY, PATTERNS, dress
from ui.figures.words import in_bytes
from ui.i18n import Catalog

COMPONENTS: Final = 8
"""Of an output, in the chart: those to which the ranks add most."""


def strongest(run: TensorRun, layer: int, part: int, position: int) -> list[int]:
    """The components to which the ranks add most."""
    assert run.partials is not None
    size = np.abs(run.partials[:, layer, part, position]).max(axis=0)
    return [int(i) for i in np.argsort(-size, kind="stable")[:COMPONENTS]]


def sums_chart(run: TensorRun, layer: int, part: int, position: int, t: Catalog) -> go.Figure:
    """What each rank computed, stacked; the all-reduced sum; the same in one process."""
    assert run.partials is not None
    assert run.sums is not None
    assert run.dense is not None
    shown = strongest(run, layer, part, position)
    x = list(range(len(shown)))
    figure = go.Figure()
    for rank in range(run.plan.ranks):
        figure.add_bar(
            x=x,
            y=run.partials[rank, layer, part, position, shown],
            name=t("parallel.rank", n=rank),
            marker={
                "color": COLOURS[rank],
                "pattern": {"shape": PATTERNS[rank], "fillmode": "overlay", "fgopacity": 0.4,
                            "fgcolor": "#ffffff", "size": 6},
            },
            hovertemplate="%{y:.5f}<extra>" + t("parallel.rank", n=rank) + "</extra>",
        )  # fmt: skip
    for values, key, symbol, wide, colour in (
        (run.sums, "sum", "diamond", 13, "#111111"),
        (run.dense, "single", "circle-open", 19, "#D55E00"),
    ):
        figure.add_scatter(
            x=x,
            y=values[layer, part, position, shown],
            mode="markers",
            name=t(f"parallel.{key}"),
            marker={
                "symbol": symbol,
                "size": wide,
                "color": colour,
                "line": {"width": 3 if symbol.endswith("open") else 1.5,
                         "color": colour if symbol.endswith("open") else "#ffffff"},
            },
            hovertemplate="%{y:.5f}<extra>" + t(f"parallel.{key}") + "</extra>",
        )  # fmt: skip
    figure.update_xaxes(
        tickvals=x,
        ticktext=[str(i) for i in shown],
        title=t("parallel.axis_component", width=run.plan.width),
        fixedrange=True,
    )
    figure.update_yaxes(fixedrange=True, title=t("parallel.axis_value"), zeroline=True)
    figure.update_layout(barmode="relative", bargap=0.35)
    return dress(figure, 380)


def step_chart(run: TensorRun, t: Catalog) -> go.Figure:
    """Where the time of one token goes on every rank, above one process."""
    ranks = [rank for rank in run.ranks if rank.step and rank.waiting]
    assert run.single_step is not None
    names = [t("parallel.rank", n=rank.rank) for rank in ranks] + [t("parallel.single")]
    work = [max(0.0, rank.step.median - rank.waiting.median) for rank in ranks]  # type: ignore[union-attr]
    wait = [rank.waiting.median for rank in ranks]  # type: ignore[union-attr]
    spreads = [rank.step for rank in ranks] + [run.single_step]
    figure = go.Figure()
    y = list(range(len(names)))
    ends = [spread.median for spread in spreads if spread]
    for values, key, colour, pattern in (
        ([*work, run.single_step.median], "computing", COLOURS[0], ""),
        ([*wait, 0.0], "waiting", COLOURS[1], "/"),
    ):
        last = key == "waiting"
        bars: dict[str, Any] = {
            "type": "data",
            "symmetric": False,
            "array": [s.high - e for s, e in zip(spreads, ends, strict=True) if s],
            "arrayminus": [e - s.low for s, e in zip(spreads, ends, strict=True) if s],
        }
        figure.add_bar(
            orientation="h",
            y=y,
            x=values,
            name=t(f"parallel.{key}"),
            marker={"color": colour, "pattern": {"shape": pattern, "fgopacity": 0.4,
                    "fillmode": "overlay", "fgcolor": "#ffffff"}},
            error_x=bars if last else None,
            hovertemplate="%{x:.1f} ms<extra>" + t(f"parallel.{key}") + "</extra>",
        )  # fmt: skip
    figure.update_yaxes(tickvals=y, ticktext=names, autorange="reversed", fixedrange=True)
    figure.update_xaxes(title=t("parallel.axis_ms"), fixedrange=True, rangemode="tozero")
    figure.update_layout(barmode="stack", bargap=0.3)
    return dress(figure, 130 + 42 * len(names))


def memory_chart(run: TensorRun, t: Catalog) -> go.Figure:
    """The weights that every rank holds, above one process."""
    names = [t("parallel.rank", n=rank.rank) for rank in run.ranks] + [t("parallel.single")]
    held = [rank.weights for rank in run.ranks] + [run.single_weights]
    y = list(range(len(names)))
    colours = [*COLOURS[: len(run.ranks)], GREY]
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=y,
            x=[count / 1e6 for count in held],
            marker={
                "color": colours,
                "pattern": {
                    "shape": [*PATTERNS[: len(run.ranks)], ""],
                    "fillmode": "overlay",
                    "fgopacity": 0.4,
                    "fgcolor": "#ffffff",
                },
            },
            text=[in_bytes(count) for count in held],
            textposition="auto",
            insidetextfont={"color": INK},
            hovertemplate="%{x:,.1f} MB<extra></extra>",
        )
    )
    figure.update_yaxes(tickvals=y, ticktext=names, autorange="reversed", fixedrange=True)
    figure.update_xaxes(title=t("parallel.axis_mb"), fixedrange=True, rangemode="tozero")
    figure.update_layout(bargap=0.3)
    dress(figure, 130 + 42 * len(names))
    return figure.update_layout(showlegend=False)
