"""With the cache and without it, as charts and tables. Pure: records in, a figure out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.lab.kv_records import ContextPoint, Contexts, KvRun, KvStep, Work
from core.lab.timing import Spread
from ui.figures.charts import BLUE, LEANING, ORANGE, dressed, short
from ui.figures.words import tiny
from ui.i18n import Catalog

Label = Callable[[int], str]
Way = tuple[str, str, str, str]
WAYS: tuple[Way, ...] = (("cached", BLUE, "circle", "solid"), ("whole", ORANGE, "square", "dot"))
"""With the cache, and without: name, colour, marker, line."""
MOST_TICKS = 12


def steps_chart(run: KvRun, label: Label, t: Catalog) -> go.Figure:
    """Milliseconds of each step with their spread, and the positions that it computes."""
    figure = make_subplots(rows=2, shared_xaxes=True, vertical_spacing=0.1)
    x = list(range(1, len(run.steps) + 1))
    for way in WAYS:
        name, colour, symbol, dash = way
        _timed(figure, x, [_spread(step, name) for step in run.steps], way, t)
        figure.add_scatter(
            row=2,
            col=1,
            x=x,
            y=[getattr(step, name).positions for step in run.steps],
            mode="lines+markers",
            line={"color": colour, "dash": dash, "width": 2},
            marker={"symbol": symbol, "size": 8},
            showlegend=False,
            hovertemplate="%{x}: %{y:,d}<extra></extra>",
        )
    every = max(1, -(-len(x) // MOST_TICKS))
    figure.update_xaxes(fixedrange=True, range=[0.5, max(len(x), 4) + 0.5])
    figure.update_xaxes(
        row=2,
        col=1,
        tickmode="array",
        tickvals=x[::every],
        ticktext=[short(label(step.chosen)) for step in run.steps][::every],
        autotickangles=LEANING,
        title=t("kv_cache.axis_token"),
    )
    figure.update_yaxes(row=2, col=1, title=t("kv_cache.axis_positions"))
    # One repeat that something else held up must not flatten all others: its bar may end at
    # the edge. The table has its number.
    top = max(max(s.cached_ms.median, s.whole_ms.median) for s in run.steps)
    figure.update_yaxes(row=1, col=1, range=[0, 1.3 * top])
    return _dressed(figure, 420, t)


def lengths_chart(found: Contexts, t: Catalog) -> go.Figure:
    """One step at the end of longer and longer texts; how many times longer stands above."""
    figure = make_subplots(rows=1, cols=1)
    x = [point.length for point in found.points]
    for way in WAYS:
        name = way[0]
        spreads = [_spread(point, name) for point in found.points]
        words = [f"× {point.ratio:.1f}" if name == "whole" else "" for point in found.points]
        # Where the points crowd, their ratios stand in the table alone.
        words = [w if n >= 128 else "" for w, n in zip(words, x, strict=True)]
        _timed(figure, x, spreads, way, t, words=words)
    top = max((point.whole_ms.median for point in found.points), default=1.0)
    figure.update_xaxes(
        fixedrange=True,
        title=t("kv_cache.axis_length"),
        tickformat=",",
        range=[0, max(x, default=1) * 1.06],
    )
    figure.update_yaxes(range=[0, top * 1.2])
    return _dressed(figure, 320, t)


def _spread(of: KvStep | ContextPoint, way: str) -> Spread:
    found: Spread = getattr(of, f"{way}_ms")
    return found


def _timed(
    figure: go.Figure,
    x: Sequence[int],
    spreads: Sequence[Spread],
    way: Way,
    t: Catalog,
    *,
    words: Sequence[str] | None = None,
) -> None:
    """Medians, with bars from the quickest repeat to the slowest."""
    key, colour, symbol, dash = way
    name = t(f"kv_cache.way_{key}")
    figure.add_scatter(
        row=1,
        col=1,
        x=list(x),
        y=[s.median for s in spreads],
        name=name,
        mode="lines+markers+text" if words else "lines+markers",
        text=words,
        textposition="top left",
        textfont={"size": 14},
        line={"color": colour, "dash": dash, "width": 2},
        marker={"symbol": symbol, "size": 8},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [s.high - s.median for s in spreads],
            "arrayminus": [s.median - s.low for s in spreads],
            "thickness": 1.5,
            "width": 4,
        },
        customdata=[[s.low, s.high] for s in spreads],
        hovertemplate="%{x:,}: %{y:.1f} ms (%{customdata[0]:.1f} … %{customdata[1]:.1f})"
        f"<extra>{name}</extra>",
    )


def _dressed(figure: go.Figure, height: int, t: Catalog) -> go.Figure:
    figure.update_yaxes(fixedrange=True, rangemode="tozero", tickformat=",~g")
    figure.update_yaxes(row=1, col=1, title=t("kv_cache.axis_ms"))
    return dressed(figure, height)


# ---------------------------------------------------------------- tables


def _times(name: str, spread: Spread, t: Catalog) -> dict[str, Any]:
    way = t(f"kv_cache.way_{name}")
    return {
        t("kv_cache.col_ms", way=way): spread.median,
        t("kv_cache.col_low", way=way): spread.low,
        t("kv_cache.col_high", way=way): spread.high,
    }


def _works(cached: Work, whole: Work, t: Catalog) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, work in (("cached", cached), ("whole", whole)):
        way = t(f"kv_cache.way_{name}")
        out[t("kv_cache.col_flops", way=way)] = work.flops
        out[t("kv_cache.col_bytes", way=way)] = work.bytes
    return out


def steps_table(run: KvRun, label: Label, t: Catalog) -> pd.DataFrame:
    """All that was measured and counted of each step."""
    rows = []
    for step in run.steps:
        rows.append(
            {
                t("kv_cache.col_step"): step.index + 1,
                t("kv_cache.col_token"): label(step.chosen),
                t("kv_cache.col_positions", way=t("kv_cache.way_cached")): step.cached.positions,
                t("kv_cache.col_positions", way=t("kv_cache.way_whole")): step.whole.positions,
                **_times("cached", step.cached_ms, t),
                **_times("whole", step.whole_ms, t),
                t("kv_cache.col_ratio"): step.whole_ms.median / step.cached_ms.median,
                **_works(step.cached, step.whole, t),
                t("kv_cache.col_difference"): step.difference,
                t("kv_cache.col_cache"): step.cache_bytes,
            }
        )
    return pd.DataFrame(rows)


def lengths_table(found: Contexts, t: Catalog) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                t("kv_cache.axis_length"): point.length,
                **_times("cached", point.cached_ms, t),
                **_times("whole", point.whole_ms, t),
                t("kv_cache.col_ratio"): point.ratio,
                **_works(point.cached, point.whole, t),
                t("kv_cache.col_difference"): point.difference,
                t("kv_cache.col_cache"): point.cache_bytes,
            }
            for point in found.points
        ]
    )


def phases_table(run: KvRun, t: Catalog) -> pd.DataFrame:
    """Prefill beside decode; the middle decode step stands for all of them."""
    rows = []
    middle = sorted(run.decode, key=lambda step: step.cached_ms.median)[len(run.decode) // 2 :][:1]
    for name, steps in (("prefill", run.steps[:1]), ("decode", middle)):
        for step in steps:
            work, ms = step.cached, step.cached_ms.median
            rows.append(
                {
                    t("kv_cache.col_phase"): t(f"kv_cache.phase_{name}"),
                    t("kv_cache.col_read"): work.positions,
                    t("kv_cache.col_pass_ms"): ms,
                    t("kv_cache.col_position_ms"): ms / work.positions,
                    t("kv_cache.col_pass_flops"): work.flops,
                    t("kv_cache.col_pass_bytes"): work.bytes,
                    t("kv_cache.col_intensity"): work.flops / work.bytes,
                }
            )
    return pd.DataFrame(rows)


def scores_table(step: KvStep, label: Label, t: Catalog) -> pd.DataFrame:
    """The logits of both ways side by side."""
    return pd.DataFrame(
        [
            {
                t("kv_cache.col_token"): label(score.id),
                t("kv_cache.way_cached"): f"{score.cached:.7f}",
                t("kv_cache.way_whole"): f"{score.whole:.7f}",
                t("kv_cache.col_gap"): tiny(abs(score.cached - score.whole)),
            }
            for score in step.scores
        ]
    )
