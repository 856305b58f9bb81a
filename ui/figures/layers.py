"""The map of layers × positions as data for its component. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from core.lens import Column
from core.model_info import ModelInfo
from core.trace import Token
from ui.i18n import HTML_LANG, Catalog
from ui.view import CELLS

Label = Callable[[int], str]
WORK: Final = 36_000_000
"""Layers × positions × vocabulary that one picture reads through the LM head."""
NARROWEST, WIDEST = 8, 24


@dataclass(frozen=True, eq=False)
class Map:
    """What is drawn: a window of positions, all layers, one cell chosen."""

    tokens: Sequence[Token]
    """Those that the step has read, and the one that it chose."""
    start: int
    stop: int
    at: int
    layer: int
    layers: int
    cell: str
    """A name of ``ui.link.CELLS``; empty: the logit lens."""
    columns: Mapping[int, Column]
    """The lens by position; positions may be missing (a stored run)."""
    values: Float[np.ndarray, "layer column"] | None
    """Of the quantity ``cell``; NaN where it isn't known."""


def window_width(info: ModelInfo) -> int:
    """Positions that one picture shows: fewer for many layers or a large vocabulary."""
    return min(max(WORK // max(1, info.layers * info.vocabulary), NARROWEST), WIDEST)


def window(at: int, total: int, width: int) -> tuple[int, int]:
    """(start, stop) of the block that holds ``at``; blocks are counted from the end."""
    stop = total - (total - 1 - at) // width * width
    stop = min(max(stop, width), total)
    return max(0, stop - width), stop


def map_data(drawn: Map, label: Label, t: Catalog) -> dict[str, Any]:
    """All that the component draws, as JSON values; arrays are [layer][column]."""
    positions = range(drawn.start, drawn.stop)
    labels = _Labels(label)
    best, shares = _cells(drawn, positions, labels)
    return {
        "lang": HTML_LANG[t.lang],
        "strings": t.area("layers"),
        "layers": drawn.layers,
        "total": len(drawn.tokens) - 1,
        "start": drawn.start,
        "earlier": drawn.start - 1 if drawn.start else None,
        "later": drawn.stop if drawn.stop < len(drawn.tokens) - 1 else None,
        "at": drawn.at,
        "layer": drawn.layer,
        "cell": drawn.cell,
        "cells": ["", *CELLS],
        "columns": [_column(drawn, p, label) for p in positions],
        "best": best,
        "shares": shares,
        "labels": labels.known,
        "values": _plain(drawn.values),
        "scale": scale(drawn.cell, drawn.values),
    }


def scale(cell: str, values: Float[np.ndarray, "layer column"] | None) -> dict[str, Any] | None:
    """How a value becomes a colour: on a log axis, as a share, or as a cosine."""
    if values is None:
        return None
    if cell != "norm":
        return {"kind": "cosine" if cell == "cosine" else "share"}
    known = values[np.isfinite(values) & (values > 0)]
    low, high = (float(known.min()), float(known.max())) if known.size else (1.0, 1.0)
    return {"kind": "log", "low": low, "high": high}


class _Labels:
    """Each label once; the cells name it by its place in the list."""

    def __init__(self, label: Label) -> None:
        self._label, self._index = label, dict[int, int]()
        self.known: list[str] = []

    def __call__(self, token: int) -> int:
        if token not in self._index:
            self._index[token] = len(self.known)
            self.known.append(self._label(token))
        return self._index[token]


def _cells(
    drawn: Map, positions: Sequence[int], labels: _Labels
) -> tuple[list[list[Any]], list[list[Any]]]:
    """(places in the list of labels, probabilities), [layer][column][top]; null: not known."""
    best: list[list[Any]] = []
    shares: list[list[Any]] = []
    for layer in range(drawn.layers):
        columns = [drawn.columns.get(position) for position in positions]
        best.append([c and [labels(int(i)) for i in c.ids[layer]] for c in columns])
        shares.append([c and [_short(p) for p in c.probabilities[layer]] for c in columns])
    return best, shares


def _column(drawn: Map, position: int, label: Label) -> dict[str, Any]:
    token, following = drawn.tokens[position], drawn.tokens[position + 1]
    column = drawn.columns.get(position)
    return {
        "position": position,
        "label": token.label,
        "special": token.special,
        "source": token.source,
        "next": following.label,
        "chosen": following.source == "generated",
        "ways": [] if column is None else _ways(column, following.id, label),
    }


def _ways(column: Column, following: int, label: Label) -> list[dict[str, Any]]:
    """Probability and rank by layer, of the token that follows and of the model's favourite."""
    return [
        {
            "label": label(token),
            "next": token == following,
            "favourite": token == column.favourite,
            "p": [_short(p) for p in column.followed_probability[:, i]],
            "rank": [int(rank) for rank in column.followed_rank[:, i]],
        }
        for i, token in enumerate(column.followed)
    ]


def _plain(values: Float[np.ndarray, "layer column"] | None) -> list[list[float | None]] | None:
    if values is None:
        return None
    return [[_short(v) if math.isfinite(v) else None for v in row] for row in values]


def _short(value: float) -> float:
    """Five digits that count: a tiny probability stays above 0."""
    return float(f"{value:.5g}")
