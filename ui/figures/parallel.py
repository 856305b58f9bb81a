"""The picture of a model that is split lengthwise: who holds what. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import plotly.graph_objects as go

from core.lab.parallel.deal import Span, TensorPlan
from core.model_info import ModelInfo
from ui.figures.charts import INK
from ui.i18n import Catalog

COLOURS: Final = (
    "#2B87C2", "#E06A1B", "#149A74", "#B5659B", "#8B6FD0", "#8A7A1E", "#C4574F", "#3E8E9E"
)  # fmt: skip
"""One a rank, readable on both grounds; numbers and patterns say the same."""
PATTERNS: Final = ("", "/", "x", ".", "\\", "+", "-", "|")
GREY: Final = "#8A8A8A"
GAP: Final = 0.18
TALLEST: Final = 3.2
"""Of the drawn matrices, in widths of the stream; taller ones are cut, and say so."""


@dataclass(frozen=True)
class Band:
    """A piece of a matrix and the ranks that hold it; lengths in widths of the stream."""

    matrix: str
    ranks: tuple[int, ...]
    x: float
    y: float
    width: float
    height: float
    said: str
    """What the piece is: ``heads 0–2``."""


@dataclass(frozen=True)
class Matrix:
    """A whole matrix: rows are outputs, columns inputs."""

    name: str
    x: float
    y: float
    width: float
    height: float
    rows: int
    columns: int


def matrices(info: ModelInfo) -> tuple[Matrix, ...]:
    """Where each matrix of a layer is drawn, to scale; the origin is the upper left corner."""
    d = info.width
    q, kv = info.heads * info.head_dim, info.kv_heads * info.head_dim
    neurons = info.intermediate or 4 * d
    found, x = [], 0.0
    for name, rows, columns in (("q", q, d), ("k", kv, d), ("v", kv, d), ("o", d, q)):
        found.append(Matrix(name, x, 0.0, columns / d, rows / d, rows, columns))
        x += columns / d + GAP
    top = max(matrix.height for matrix in found) + 2.2 * GAP
    x = 0.0
    for name, rows, columns in (("gate", neurons, d), ("up", neurons, d), ("down", d, neurons)):
        if name == "gate" and not info.gated:
            continue
        tall, wide = min(rows / d, TALLEST), min(columns / d, TALLEST)
        found.append(Matrix(name, x, top, wide, tall, rows, columns))
        x += wide + GAP
    return tuple(found)


def bands(info: ModelInfo, plan: TensorPlan, t: Catalog) -> tuple[Band, ...]:
    """Every piece of one layer's matrices."""
    found: list[Band] = []
    for matrix in matrices(info):
        for ranks, span, of in _owners(matrix.name, plan):
            first, end = span[0] / of, span[1] / of
            across = matrix.name in ("o", "down")
            said = t(f"parallel.what_{_what(matrix.name)}", first=span[0], last=span[1] - 1)
            found.append(
                Band(
                    matrix.name,
                    ranks,
                    matrix.x + (first * matrix.width if across else 0),
                    matrix.y + (0 if across else first * matrix.height),
                    matrix.width * (end - first if across else 1),
                    matrix.height * (1 if across else end - first),
                    said,
                )
            )
    return tuple(found)


def _what(name: str) -> str:
    return {"q": "heads", "o": "heads", "k": "kv", "v": "kv"}.get(name, "neurons")


def _owners(name: str, plan: TensorPlan) -> list[tuple[tuple[int, ...], Span, int]]:
    """(ranks, what, of how many), for each different piece."""
    pieces: dict[Span, list[int]] = {}
    neurons = plan.neurons or 1
    for hand in plan.hands:
        if _what(name) == "neurons":
            pieces.setdefault(hand.neurons if plan.neurons else (0, 1), []).append(hand.rank)
        else:
            span = hand.kv_heads if _what(name) == "kv" else hand.heads
            pieces.setdefault(span, []).append(hand.rank)
    of = {"heads": plan.heads, "kv": plan.kv_heads, "neurons": neurons}[_what(name)]
    return [(tuple(ranks), span, of) for span, ranks in pieces.items()]


def split_chart(info: ModelInfo, plan: TensorPlan, t: Catalog) -> go.Figure:
    """The matrices of one layer with the pieces of each rank, to scale."""
    every = bands(info, plan, t)
    figure = go.Figure()
    for rank in range(plan.ranks):
        own = [band for band in every if band.ranks == (rank,)]
        name = t("parallel.rank", n=rank)
        figure.add_trace(_pieces(own, name, COLOURS[rank], PATTERNS[rank], t))
    shared = [band for band in every if len(band.ranks) > 1]
    if shared:
        figure.add_trace(_pieces(shared, t("parallel.copies"), GREY, "", t))
    drawn = matrices(info)
    for matrix in drawn:
        figure.add_annotation(
            x=matrix.x + matrix.width / 2,
            y=matrix.y - 0.03,
            text=f"<b>{t(f'parallel.matrix_{matrix.name}')}</b>",
            showarrow=False,
            yanchor="bottom",
            font={"size": 14},
        )
    right = max(matrix.x + matrix.width for matrix in drawn)
    bottom = max(matrix.y + matrix.height for matrix in drawn)
    figure.update_xaxes(visible=False, range=[-0.05, right + 0.05], fixedrange=True)
    figure.update_yaxes(
        visible=False,
        range=[bottom + 0.05, -0.4],
        fixedrange=True,
        scaleanchor="x",
        constrain="domain",
    )
    figure.update_xaxes(constrain="domain")
    figure.update_layout(
        height=460,
        barmode="overlay",
        margin={"l": 0, "r": 0, "t": 10, "b": 0},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        dragmode=False,
        showlegend=True,
    )
    return figure


def _pieces(found: Sequence[Band], name: str, colour: str, pattern: str, t: Catalog) -> go.Bar:
    labels = [", ".join(map(str, band.ranks)) for band in found]
    return go.Bar(
        orientation="h",
        y=[band.y + band.height / 2 for band in found],
        width=[band.height for band in found],
        base=[band.x for band in found],
        x=[band.width for band in found],
        name=name,
        text=labels,
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"color": INK, "size": 14},
        marker={
            "color": colour,
            "line": {"color": "#ffffff", "width": 1.5},
            "pattern": {"shape": pattern, "fillmode": "overlay", "fgopacity": 0.25,
                        "fgcolor": "#ffffff", "size": 7},
        },
        customdata=[
            [t(f"parallel.matrix_{band.matrix}"), band.said, t("parallel.on_ranks", ranks=label)]
            for band, label in zip(found, labels, strict=True)
        ],
        hovertemplate="%{customdata[0]}: %{customdata[1]}<br>%{customdata[2]}<extra></extra>",
    )  # fmt: skip


def dress(figure: go.Figure, height: int) -> go.Figure:
    """Nothing to drag, the legend above."""
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        dragmode=False,
        showlegend=True,
    )
    return figure
