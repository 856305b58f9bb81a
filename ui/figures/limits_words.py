"""Words above a roofline, each with a line down to its mark: beside the marks there is no room for
them on a phone. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import plotly.graph_objects as go

ROW: Final = 0.065
"""Of the chart's height: one row of words, on a phone."""
RIGHT: Final = 0.45
"""Marks from this share of the chart's width on have their words to the left."""


@dataclass(frozen=True)
class Point:
    """One mark of the chart."""

    name: str
    intensity: float
    rate: float
    """GFLOP/s."""
    milliseconds: float


@dataclass(frozen=True)
class Word:
    """What one mark is called."""

    text: str
    point: Point
    colour: str


def write(
    figure: go.Figure, words: Sequence[Word], x: tuple[float, float], y: tuple[float, float]
) -> float:
    """Write the words at the upper end of ``y`` and above it, on logarithmic axes; returns the new
    end.

    Each has a row of its own. The outermost marks have the highest rows, so that no line runs
    through the words of another mark.
    """
    low, high = (math.log10(value) for value in y)
    left, end = (math.log10(value) for value in x)
    row = ROW * (high - low) / (1 - ROW * len(words))
    for place, word in enumerate(_ordered(words, left, end)):
        at, up = math.log10(word.point.intensity), math.log10(word.point.rate)
        figure.add_annotation(
            x=at, y=up, axref="x", ayref="y", ax=at, ay=high + row * (len(words) - 1.3 - place),
            text=word.text, font={"size": 13}, yanchor="bottom", borderpad=0,
            xanchor="right" if _share(word, left, end) > RIGHT else "left",
            arrowhead=0, arrowwidth=1, arrowcolor=word.colour, standoff=8,
        )  # fmt: skip
    return float(10 ** (high + row * len(words)))


def _share(word: Word, left: float, end: float) -> float:
    """How far to the right its mark stands, from 0 to 1."""
    return (math.log10(word.point.intensity) - left) / (end - left)


def _ordered(words: Sequence[Word], left: float, end: float) -> list[Word]:
    """From the highest row to the lowest: those on the right from outside in, then those on the
    left."""
    shares = [(_share(word, left, end), word) for word in words]
    right = sorted((pair for pair in shares if pair[0] > RIGHT), key=lambda p: -p[0])
    rest = sorted((pair for pair in shares if pair[0] <= RIGHT), key=lambda p: p[0])
    return [word for _, word in (*right, *rest)]
