"""The roofline as a chart and a table: where each operation stands, and what was measured. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go

from core.lab.roofline import Roof
from core.lab.roofline_ops import Case, Count, Phase
from core.lab.roofline_steps import ATTENTION, StepTime
from ui.figures.charts import BLUE, ORANGE
from ui.figures.limits_words import Point, Word, write
from ui.i18n import Catalog

GREY: Final = "#808080"
LOOKS: Final[dict[Phase, tuple[str, str]]] = {
    "decode": (BLUE, "circle"),
    "prefill": (ORANGE, "square"),
}
"""Colour and marker."""
NEAR: Final = 1.5
"""Points whose intensities differ by less than this factor share their words."""
WEIGHTS: Final = frozenset({"qkv", "output", "gate_up", "down", "head"})


@dataclass(frozen=True)
class Placed:
    """One pass under the roof."""

    case: Case
    counts: tuple[Count, ...]
    measured: StepTime | None
    """The same pass, timed; ``None`` where it was not."""


def limits_of(placed: Placed, roof: Roof, dtype: str, t: Catalog) -> list[Point]:
    """Each kind of operation, as fast as the machine allows."""
    return [
        Point(
            t(f"limits.op_{count.kind}"),
            count.intensity,
            roof.attainable(count.intensity, dtype),
            count.limit(roof, dtype),
        )
        for count in placed.counts
    ]


def measured_of(placed: Placed, t: Catalog) -> list[Point]:
    """The same as they were timed; scores and values are timed together."""
    if placed.measured is None:
        return []
    times = dict(placed.measured.parts)
    out = []
    for name, counts in _timed(placed.counts):
        took = times.get(name, 0.0)
        if took > 0 and counts:
            flops, moved = sum(c.flops for c in counts), sum(c.bytes for c in counts)
            out.append(Point(t(f"limits.op_{name}"), flops / moved, flops / took / 1e6, took))
    return out


def _timed(counts: Sequence[Count]) -> list[tuple[str, list[Count]]]:
    inside = [count for count in counts if count.kind in ("scores", "values")]
    others = [(str(c.kind), [c]) for c in counts if c not in inside]
    return [*others, (ATTENTION, inside)]


def roofline_chart(roof: Roof, passes: Iterable[Placed], dtype: str, t: Catalog) -> go.Figure:
    """Both roofs; what each operation could reach (hollow), and what it reached (filled)."""
    figure = go.Figure()
    passes = list(passes)
    marks = [limits_of(each, roof, dtype, t) for each in passes]
    done = [measured_of(each, t) for each in passes]
    every = [point for points in (*marks, *done) for point in points]
    low = min([p.intensity for p in every], default=0.5) / 2.5
    high = max([*(p.intensity for p in every), roof.ridge("bf16"), roof.ridge(dtype)]) * 4
    _roofs(figure, roof, dtype, (low, high), t)
    for placed, limit, timed in zip(passes, marks, done, strict=True):
        colour, symbol = LOOKS[placed.case.phase]
        phase = t(f"limits.{placed.case.phase}")
        _points(
            figure, limit, t("limits.at_most", phase=phase), t,
            marker={"symbol": f"{symbol}-open", "size": 12, "color": colour,
                    "line": {"width": 2.5, "color": colour}},
        )  # fmt: skip
        if timed:
            _points(
                figure, timed, t("limits.timed", phase=phase), t,
                marker={"symbol": symbol, "size": 10, "color": colour},
            )  # fmt: skip
    bottom = min([p.rate for p in every], default=1.0) / 2.5
    top = roof.rate("bf16" if roof.rate("bf16") > roof.rate("fp32") else "fp32") * 2.2
    words = [
        Word(text, point, LOOKS[placed.case.phase][0])
        for placed, limit in zip(passes, marks, strict=True)
        for text, point in zip(_words(placed, limit, t), limit, strict=True)
        if text
    ]
    end = write(figure, words, (low, high), (bottom, top))
    _dress(figure, (roof.ridge(dtype), roof.rate(dtype)), (low, high), (bottom, end), t)
    # Where only words stand there is nothing to be read off.
    powers = range(math.ceil(math.log10(bottom)), math.floor(math.log10(top)) + 1)
    figure.update_yaxes(dtick=None, tickvals=[10.0**power for power in powers])
    figure.update_layout(height=450 + 18 * len(words))
    return figure


def _roofs(
    figure: go.Figure, roof: Roof, dtype: str, ends: tuple[float, float], t: Catalog
) -> None:
    for kind, dash in (("fp32", "solid"), ("bf16", "dash")):
        edge = roof.ridge(kind)
        x = [ends[0], edge, ends[1]]
        figure.add_scatter(
            x=x,
            y=[roof.attainable(value, kind) for value in x],
            mode="lines",
            name=t("limits.roof_of", dtype=kind),
            line={"color": GREY, "dash": dash, "width": 3 if kind == dtype else 1.5},
            hoverinfo="skip",
        )


def _points(
    figure: go.Figure, points: Sequence[Point], name: str, t: Catalog, *,
    marker: dict[str, Any],
) -> None:  # fmt: skip
    unit = t("limits.hover_unit")
    figure.add_scatter(
        x=[p.intensity for p in points],
        y=[p.rate for p in points],
        mode="markers",
        name=name,
        marker=marker,
        cliponaxis=False,
        customdata=[[p.name, p.milliseconds] for p in points],
        hovertemplate=f"%{{customdata[0]}}: %{{x:.3~g}} {unit}<br>%{{y:.3~s}} GFLOP/s · "
        f"%{{customdata[1]:.3~g}} ms<extra>{name}</extra>",
    )


def _words(placed: Placed, points: Sequence[Point], t: Catalog) -> list[str]:
    """Three texts at most: for the weight matrices, for the LM head where it stands apart, and
    for attention."""
    out = [""] * len(points)
    kinds = [count.kind for count in placed.counts]
    weights = [i for i, kind in enumerate(kinds) if kind in WEIGHTS]
    layers = [i for i in weights if kinds[i] != "head"] or weights
    at = points[layers[len(layers) // 2]].intensity if layers else 1.0
    heads = [i for i in weights if kinds[i] == "head"]
    apart = [i for i in heads if not 1 / NEAR < points[i].intensity / at < NEAR]
    inside = [i for i, kind in enumerate(kinds) if kind in ("scores", "values")]
    for group, key in ((layers, "op_weights"), (apart, "op_head"), (inside, "op_attention_short")):
        if group:
            out[group[len(group) // 2]] = t(f"limits.{key}")
    return out


def _dress(
    figure: go.Figure,
    ridge: tuple[float, float],
    x: tuple[float, float],
    y: tuple[float, float],
    t: Catalog,
) -> None:
    edge = math.log10(ridge[0])
    # No higher than the roof: above it stand words.
    figure.add_shape(
        type="line", x0=ridge[0], x1=ridge[0], y0=y[0], y1=ridge[1],
        line={"color": GREY, "dash": "dot", "width": 1},
    )  # fmt: skip
    for key, anchor, shift in (("left_of", "right", -6), ("right_of", "left", 6)):
        figure.add_annotation(
            x=edge, y=0.0, yref="paper", yanchor="bottom", xanchor=anchor, xshift=shift,
            text=t(f"limits.{key}"), showarrow=False, font={"size": 13},
        )  # fmt: skip
    logs = {"type": "log", "fixedrange": True, "dtick": 1, "exponentformat": "none"}
    figure.update_xaxes(
        title=t("lab.log_axis", axis=t("limits.axis_intensity")),
        range=[math.log10(v) for v in x],
        tickformat="~g",
        **logs,
    )
    figure.update_yaxes(
        title=t("lab.log_axis", axis=t("limits.axis_rate")),
        range=[math.log10(v) for v in y],
        tickformat=",~g",
        **logs,
    )
    figure.update_layout(
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
    )


def operations_table(placed: Placed, roof: Roof, dtype: str, t: Catalog) -> pd.DataFrame:
    """One row an operation: counted, at the limit, and as it was timed."""
    times = dict(placed.measured.parts) if placed.measured else {}
    rows = []
    for count in placed.counts:
        kind = count.kind
        rows.append(
            {
                t("limits.col_operation"): t(f"limits.op_{kind}"),
                "MFLOP": count.flops / 1e6,
                t("limits.col_weights_mb"): count.weights / 1e6,
                t("limits.col_kv_mb"): count.kv / 1e6,
                t("limits.col_activations_mb"): count.activations / 1e6,
                t("limits.col_intensity"): count.intensity,
                t("limits.col_limit_ms"): count.limit(roof, dtype),
                t("limits.col_measured_ms"): times.get(str(kind)),
            }
        )
    return pd.DataFrame(rows)
