"""Keys and values as a growing table: a row for each token. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from jaxtyping import Float

from core.lab.kv_records import Rows
from ui.figures.charts import ORANGE, short
from ui.i18n import Catalog

MOST_ROWS = 48
"""Drawn at once; the table behind holds all."""
MOST_LABELS = 24
SATURATED = 0.99
"""Share of the numbers that the colours tell apart; the few larger ones have the last colour."""


@dataclass(frozen=True)
class Shown:
    """What is drawn of a cache."""

    rows: Rows
    new: int
    """Rows that this step wrote: the last ones."""
    labels: Sequence[str]
    """Of every position of the text, the dropped ones too."""

    @property
    def first(self) -> int:
        """The first position drawn."""
        return max(self.rows.first, self.last - MOST_ROWS + 1)

    @property
    def last(self) -> int:
        return self.rows.first + len(self.rows.keys) - 1


def rows_chart(shown: Shown, part: str, t: Catalog) -> go.Figure:
    """``part`` is "keys" or "values". The oldest row is on top; the new ones are framed."""
    every: Float[np.ndarray, "position head_dim"] = getattr(shown.rows, part)
    drawn = every[shown.first - shown.rows.first :]
    places = list(range(shown.first, shown.last + 1))
    reach = float(np.quantile(np.abs(every), SATURATED)) or 1.0
    figure = go.Figure(
        go.Heatmap(
            z=drawn,
            y=places,
            zmin=-reach,
            zmax=reach,
            autocolorscale=True,
            colorbar={"thickness": 10, "len": 1, "tickformat": ".2~g"},
            customdata=np.array([[short(shown.labels[p])] * drawn.shape[1] for p in places]),
            hovertemplate="%{y} %{customdata}, %{x}: %{z:.4f}<extra></extra>",
        )
    )
    start = max(shown.first, shown.last + 1 - shown.new)
    figure.add_shape(
        type="rect",
        x0=-0.5,
        x1=drawn.shape[1] - 0.5,
        y0=start - 0.5,
        y1=shown.last + 0.5,
        line={"color": ORANGE, "width": 3},
    )
    step = max(1, -(-len(places) // MOST_LABELS))
    # Counted from the last row, whose label always stands.
    ticks = places[::-1][::step]
    figure.update_yaxes(
        range=[shown.last + 0.7, shown.first - 0.7],
        tickmode="array",
        tickvals=ticks,
        ticktext=[_tick(shown, place, start) for place in ticks],
        fixedrange=True,
    )
    figure.update_xaxes(fixedrange=True, title=t("kv_cache.axis_number"))
    figure.update_layout(
        height=110 + max(8, len(places)) * (18 if len(places) <= MOST_LABELS else 11),
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        dragmode=False,
    )
    return figure


def _tick(shown: Shown, place: int, start: int) -> str:
    mark = "▸ " if place >= start else ""
    return f"{mark}{short(shown.labels[place])}"


def rows_table(shown: Shown, part: str, t: Catalog) -> pd.DataFrame:
    """Every number, a row for each position."""
    numbers = getattr(shown.rows, part)
    frame = pd.DataFrame(numbers, columns=[str(i) for i in range(numbers.shape[1])])
    places = range(shown.rows.first, shown.last + 1)
    frame.insert(0, t("kv_cache.col_token"), [shown.labels[p] for p in places])
    frame.insert(0, t("kv_cache.col_position"), list(places))
    return frame
