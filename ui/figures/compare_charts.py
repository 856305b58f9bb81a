"""Charts of a comparison: step by step, and quality against diversity. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import plotly.graph_objects as go

from core.compare_records import Figures, Text
from core.decode.figures import logprob, perplexity, repeated
from core.decode.measure import bits
from ui.figures.charts import percents, plain, short
from ui.figures.compare_rows import Scene
from ui.figures.compare_words import COLOURS, LETTERS, SYMBOLS
from ui.i18n import Catalog

Kind = Literal["probability", "entropy"]
DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
LEAST: Final = 1e-6
"""Lowest probability of the logarithmic axis."""


def look(index: int) -> dict[str, Any]:
    """Colour, dash and marker of a column: never the colour alone."""
    return {
        "line": {"color": COLOURS[index], "dash": DASHES[index], "width": 2},
        "marker": {"symbol": SYMBOLS[index], "size": 8, "color": COLOURS[index]},
    }


def per_step(scene: Scene, kind: Kind, t: Catalog) -> go.Figure:
    """Probability of the chosen token, or the model's entropy, at each step of each column."""
    figure, most = go.Figure(), 1
    for index in range(len(scene.written)):
        text, vocabulary = scene.text(index), scene.vocabularies[index]
        if text is None or vocabulary is None or not text.choices:
            continue
        most = max(most, len(text.choices))
        probable = kind == "probability"
        figure.add_scatter(
            x=list(range(1, len(text.choices) + 1)),
            y=[
                max(c.probability_model, LEAST) if probable else bits(c.entropy_model)
                for c in text.choices
            ],
            mode="lines+markers",
            name=plain(scene.title(index)),
            customdata=[short(vocabulary.label(c.id)) for c in text.choices],
            hovertemplate=f"{LETTERS[index]} · %{{x}}: %{{customdata}}<br>"
            + ("%{y:.2%}" if probable else t("generate.bits", n="%{y:.2f}"))
            + "<extra></extra>",
            **look(index),
        )
    figure.update_xaxes(title=t("compare.axis_step"), range=[0.5, most + 0.5], fixedrange=True)
    if most <= 30:
        figure.update_xaxes(dtick=1 if most <= 15 else 2, tick0=1)
    figure.update_yaxes(fixedrange=True, title=t(f"compare.axis_{kind}"))
    if kind == "probability":
        figure.update_yaxes(type="log", tickvals=[1, 0.1, 0.01, 1e-3, 1e-4, 1e-5, LEAST])
        figure.update_yaxes(ticktext=["100 %", "10 %", "1 %", "0.1 %", "0.01 %", "10⁻⁵", "≤ 10⁻⁶"])
        figure.update_yaxes(range=[math.log10(_floor(scene)) - 0.1, 0.15])
    else:
        figure.update_yaxes(rangemode="tozero")
    return _dress(figure, 330)


def _floor(scene: Scene) -> float:
    texts = [scene.text(i) for i in range(len(scene.written))]
    lowest = [c.probability_model for text in texts if text for c in text.choices]
    return max(LEAST, min([0.1, *lowest]))


def _dress(figure: go.Figure, height: int) -> go.Figure:
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
        showlegend=True,
    )
    return figure


# ---------------------------------------------------------------- quality against diversity

Across = Literal["repeated", "self_bleu"]
DECADES: Final = 0.6
"""Decades of perplexity that the chart spans at least: enough for several numbers."""
NARROW: Final = 0.8
CLOSE: Final = 0.07
"""Decades between marks whose letters would lie over each other."""


@dataclass(frozen=True)
class Point:
    """A text, or (``sample`` None) a whole column."""

    column: int
    sample: int | None
    perplexity: float
    across: float
    """Share of repeated 4-grams, or self-BLEU: 0 … 1."""


def points(scene: Scene, found: Sequence[Figures | None], across: Across) -> list[Point]:
    """Where the columns stand; with several texts, where each text stands too."""
    out = []
    for index, figures in enumerate(found):
        if figures is None:
            continue
        if across == "repeated":
            texts = scene.written[index].texts
            if len(texts) > 1:
                out += [p for text in texts if (p := _one(index, text)) is not None]
            value = figures.repeated_4grams
        else:
            value = figures.self_bleu
        if figures.perplexity is not None and value is not None:
            out.append(Point(index, None, figures.perplexity, value))
    return [point for point in out if math.isfinite(point.perplexity)]


def _one(index: int, text: Text) -> Point | None:
    unsure, again = perplexity(logprob(text), len(text.choices)), repeated([text.ids], 4)
    if unsure is None or again is None:
        return None
    return Point(index, text.sample, unsure, again)


def missing(found: Sequence[Figures | None], drawn: Sequence[Point]) -> list[int]:
    """Columns with figures that have no place among the points."""
    there = {point.column for point in drawn if point.sample is None}
    return [i for i, figures in enumerate(found) if figures is not None and i not in there]


def _aside(point: Point, shown: Sequence[Point]) -> str:
    """Where the letter of a mark goes: away from the one neighbour that stands close to it."""
    here = (math.log10(point.perplexity), point.column)
    others = [
        (math.log10(p.perplexity), p.column)
        for p in shown
        if p.sample is None and p.column != point.column
    ]
    close = [other > here for other in others if abs(other[0] - here[0]) < CLOSE]
    if not close or len(set(close)) > 1:
        return "top center"
    return "top left" if close[0] else "top right"


def quality(scene: Scene, shown: Sequence[Point], across: Across, t: Catalog) -> go.Figure:
    """Perplexity (how unlikely the text is) against how much it repeats itself."""
    figure = go.Figure()
    for index in range(len(scene.written)):
        texts = [p for p in shown if p.column == index and p.sample is not None]
        whole = [p for p in shown if p.column == index and p.sample is None]
        if texts:
            figure.add_scatter(
                x=[p.perplexity for p in texts],
                y=[p.across for p in texts],
                mode="markers",
                marker={"symbol": SYMBOLS[index], "size": 7, "color": COLOURS[index]},
                opacity=0.35,
                showlegend=False,
                customdata=[(p.sample or 0) + 1 for p in texts],
                hovertemplate=f"{LETTERS[index]} · #%{{customdata}}<br>"
                "%{x:.1f} · %{y:.1%}<extra></extra>",
            )
        if whole:
            figure.add_scatter(
                x=[p.perplexity for p in whole],
                y=[p.across for p in whole],
                mode="markers+text",
                text=[LETTERS[index]],
                textposition=_aside(whole[0], shown),
                textfont={"size": 15},
                marker={
                    "symbol": SYMBOLS[index],
                    "size": 16,
                    "color": COLOURS[index],
                    "line": {"width": 1, "color": "#808080"},
                },
                name=plain(scene.title(index)),
                hovertemplate=f"{LETTERS[index]}<br>%{{x:.2f}} · %{{y:.1%}}<extra></extra>",
            )
    figure.update_xaxes(title=t("compare.axis_perplexity"), type="log", fixedrange=True)
    high = max([0.1, *(p.across for p in shown)])
    figure.update_yaxes(
        title=t(f"compare.axis_{across}"),
        fixedrange=True,
        range=[-0.08 * high, 1.25 * high],
        **percents(1.25 * high),
    )
    spread = [math.log10(p.perplexity) for p in shown] or [0.0, 1.0]
    room = max(0.12, (DECADES - max(spread) + min(spread)) / 2)
    low, top = min(spread) - room, max(spread) + room
    # Over less than a decade 1, 2 and 5 would leave an axis with a single number.
    each = "D1" if top - low < NARROW else "D2"
    figure.update_xaxes(range=[low, top], dtick=each, tickformat="~g")
    return _dress(figure, 400)
