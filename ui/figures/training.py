"""Training beside inference, as charts and tables. Pure: records in, a figure out."""

from __future__ import annotations

from typing import Final

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.lab.timing import Spread
from core.lab.training_records import Kept, Kind, Prediction, Training
from core.lab.training_stored import Words
from ui.figures.charts import BELOW, BLUE, INK, ORANGE, dressed, pattern_of, percents, plain, short
from ui.figures.words import percent, two_digits
from ui.i18n import Catalog

GREEN, PINK, YELLOW, GREY = "#009E73", "#CC79A7", "#E69F00", "#8a8a8a"
PARTS: Final = (
    ("weights", GREY, ""),
    ("cache", GREEN, "x"),
    ("gradients", ORANGE, "/"),
    ("states", PINK, "."),
    ("activations", BLUE, "\\"),
)
"""What memory holds: name, colour, pattern."""
TIMES: Final = (
    ("inference", GREEN, "x"),
    ("forward", BLUE, "\\"),
    ("backward", ORANGE, "/"),
    ("update", PINK, "."),
)
KINDS: Final[tuple[tuple[Kind, str, str], ...]] = (
    ("attention", PINK, "square"),
    ("feed_forward", GREEN, "triangle-up"),
    ("norm", GREY, "circle"),
)
ROWS: Final = 5
"""Likeliest tokens of each time that a chart compares."""
TALLEST: Final = 520


def predictions_chart(found: Prediction, words: Words, t: Catalog) -> go.Figure:
    """The likeliest next tokens before and after, one above the other."""
    rows = found.rows(ROWS)[::-1]
    names = [plain(words.label(token)) for token, _, _ in rows]
    figure = go.Figure()
    y = list(range(len(rows)))
    # The last trace is drawn on top: "before" first, so that it stands above "after".
    for when, place, colour, pattern in (("after", 2, ORANGE, "/"), ("before", 1, BLUE, "")):
        values = [row[place] for row in rows]
        if all(value is None for value in values):
            continue
        figure.add_bar(
            x=values,
            y=y,
            orientation="h",
            name=t(f"training.{when}"),
            text=[_percent(value) for value in values],
            textposition="outside",
            cliponaxis=False,
            customdata=names,
            marker={"color": colour, "pattern": pattern_of(pattern)},
            hovertemplate="%{customdata}: %{text}<extra>" + t(f"training.{when}") + "</extra>",
        )
    figure.update_yaxes(
        tickmode="array",
        tickvals=y,
        ticktext=[short(words.label(token)) for token, _, _ in rows],
        fixedrange=True,
    )
    title = {"text": t("training.axis_p"), "standoff": BELOW}
    figure.update_xaxes(range=[0, 1.16], fixedrange=True, **percents(1.0))
    figure.update_xaxes(title=title)
    return _dressed(figure, 110 + 40 * len(rows), order="reversed")


def _percent(p: float | None) -> str:
    return "" if p is None else percent(p)


def loss_chart(found: Training, words: Words, t: Catalog) -> go.Figure:
    """The loss after each step; below, the probability of each token of the sentence."""
    ask = found.ask
    tokens = [words.label(token) for token in ask.sentence[1:]]
    figure = make_subplots(
        rows=2, shared_xaxes=True, vertical_spacing=0.06, row_heights=[0.42, 0.58]
    )
    x = list(range(len(found.losses)))
    figure.add_scatter(
        row=1,
        col=1,
        x=x,
        y=list(found.losses),
        mode="lines+markers",
        line={"color": BLUE, "width": 2},
        marker={"size": 7},
        showlegend=False,
        hovertemplate="%{x}: %{y:.3f}<extra></extra>",
    )
    table = found.token_p.T
    figure.add_heatmap(
        row=2,
        col=1,
        x=x,
        y=list(range(len(tokens))),
        z=table,
        zmin=0,
        zmax=1,
        colorscale="Cividis",
        customdata=[
            [[plain(name), percent(p)] for p in row]
            for name, row in zip(tokens, table, strict=True)
        ],
        hovertemplate="%{x} · %{customdata[0]}: %{customdata[1]}<extra></extra>",
        xgap=1,
        ygap=1,
        colorbar={"len": 0.58, "y": 0.27, "thickness": 12, "title": "p", **percents(1.0)},
    )
    every = max(1, len(tokens) // 18)
    figure.update_yaxes(row=1, col=1, title=t("training.axis_loss"), rangemode="tozero")
    figure.update_yaxes(
        row=2,
        col=1,
        autorange="reversed",
        tickmode="array",
        tickvals=list(range(len(tokens)))[::every],
        ticktext=[short(name) for name in tokens][::every],
    )
    figure.update_xaxes(range=[-0.6, ask.steps + 0.6], fixedrange=True)
    figure.update_xaxes(row=2, col=1, title=t("training.axis_step"))
    figure.update_yaxes(fixedrange=True)
    return _dressed(figure, min(TALLEST, 260 + 24 * min(len(tokens), 18)))


def memory_chart(kept: Kept, t: Catalog) -> go.Figure:
    """Two stacked bars: what inference holds, and what a training step holds."""
    values = memory_values(kept)
    figure = go.Figure()
    for name, colour, pattern in PARTS:
        mine = [values[way][name] / 1e6 for way in ("training", "inference")]
        figure.add_bar(
            x=mine,
            y=[0, 1],
            orientation="h",
            name=t(f"training.{name}"),
            text=[
                two_digits(value) if value > 0.04 * kept.training / 1e6 else "" for value in mine
            ],
            textposition="inside",
            insidetextanchor="middle",
            insidetextfont={"color": INK},
            marker={"color": colour, "pattern": pattern_of(pattern)},
            hovertemplate=f"{t(f'training.{name}')}: %{{x:,.2f}} MB<extra></extra>",
        )
    return _stacked(figure, "MB", t)


def memory_values(kept: Kept) -> dict[str, dict[str, int]]:
    """Bytes of each part for "inference" and "training"."""
    return {
        "inference": {"weights": kept.weights, "cache": kept.cache}
        | dict.fromkeys(("gradients", "states", "activations"), 0),
        "training": {
            "weights": kept.weights,
            "cache": 0,
            "gradients": kept.gradients or 0,
            "states": kept.states or 0,
            "activations": kept.activations,
        },
    }


def time_chart(found: Training, t: Catalog) -> go.Figure:
    """Two stacked bars: a pass of inference, and the three parts of a training step."""
    figure = go.Figure()
    whole = found.step_ms.median if found.step_ms else 0.0
    for name, colour, pattern in TIMES:
        spread: Spread | None = getattr(found, f"{name}_ms")
        if spread is None:
            continue
        value = [0.0, spread.median] if name == "inference" else [spread.median, 0.0]
        figure.add_bar(
            x=value,
            y=[0, 1],
            orientation="h",
            name=t(f"training.{name}"),
            text=[two_digits(v) if v > 0.06 * whole else "" for v in value],
            textposition="inside",
            insidetextanchor="middle",
            insidetextfont={"color": INK},
            marker={"color": colour, "pattern": pattern_of(pattern)},
            hovertemplate=f"{t(f'training.{name}')}: %{{x:,.1f}} ms "
            f"({spread.low:,.1f} … {spread.high:,.1f})<extra></extra>",
        )
    return _stacked(figure, t("training.axis_ms"), t)


def _stacked(figure: go.Figure, unit: str, t: Catalog) -> go.Figure:
    figure.update_layout(barmode="stack")
    figure.update_xaxes(title=unit, tickformat=",~g", fixedrange=True)
    figure.update_yaxes(
        tickmode="array",
        tickvals=[0, 1],
        ticktext=[t("training.way_training"), t("training.way_inference")],
        fixedrange=True,
    )
    return _dressed(figure, 230)


def moved_chart(found: Training, t: Catalog) -> go.Figure:
    """How far the weights of each layer moved, by their part."""
    figure = go.Figure()
    for kind, colour, symbol in KINDS:
        rows = [m for m in found.moved if m.kind == kind and m.layer is not None]
        if not rows:
            continue
        figure.add_scatter(
            x=[(m.layer or 0) + 1 for m in rows],
            y=[m.relative for m in rows],
            mode="lines+markers",
            name=t(f"training.kind_{kind}"),
            line={"color": colour, "width": 2},
            marker={"symbol": symbol, "size": 7},
            customdata=[f"{100 * m.relative:.3f} %" for m in rows],
            hovertemplate=f"%{{x}}: %{{customdata}}<extra>{t(f'training.kind_{kind}')}</extra>",
        )
    figure.update_xaxes(title=t("training.axis_layer"), fixedrange=True, tickformat="d")
    figure.update_yaxes(
        title={"text": t("training.axis_moved"), "standoff": 12},
        **percents(max([m.relative for m in found.moved if m.layer is not None], default=1.0)),
        rangemode="tozero",
        fixedrange=True,
    )
    return _dressed(figure, 300)


def _dressed(figure: go.Figure, height: int, order: str = "normal") -> go.Figure:
    return dressed(figure, height, bargap=0.3, legend_traceorder=order)


def learned(found: Training) -> int:
    """The token of the sentence, from its second on, whose probability rose most."""
    table = found.token_p
    return int(np.argmax(table[-1] - table[0])) if len(table) > 1 else 0
