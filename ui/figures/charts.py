"""Plotly charts of a run. Pure: records in, a figure out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.decode.measure import bits
from core.trace import Generation
from ui.i18n import Catalog

MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"}
"""Plotly reads these as markup in every label, and dollars as mathematics."""
LONGEST = 12
BLUE, ORANGE = "#2B87C2", "#E06A1B"
"""Between the two themes' own blue and orange, so that one figure reads well on both grounds."""
INK = "#111111"
"""Text on coloured bars: on every fill here it stands out more than white."""
BELOW = 8
"""Pixels from the numbers of an axis to its title. Without it Plotly draws the title among the
numbers where these are far apart."""
LEANING = [0, -40, -90]
"""Angles for names along an axis. Turned this way they end below their places; the other way
Plotly drops the last one where there is no room beside it."""


def plain(text: str) -> str:
    """A label that Plotly draws letter by letter."""
    return "".join(MARKUP.get(char, char) for char in text)


def short(text: str) -> str:
    """The same, cut for a tick."""
    return plain(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def percents(high: float, low: float = 0.0, *, most: int = 6) -> dict[str, Any]:
    """Ticks of an axis of shares from ``low`` to ``high``, ``most`` at most, written as everywhere
    else: 50 %. Plotly's own format has no space."""
    room = max(high - low, 1e-9)
    power = 10.0 ** math.floor(math.log10(room / most))
    step = next(power * n for n in (1, 2, 2.5, 5, 10, 20) if room / (power * n) <= most - 1)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [step * n for n in range(first, last + 1)]
    texts = [f"{100 * value:.4g} %" for value in values]
    return {"tickmode": "array", "tickvals": values, "ticktext": texts}


def pattern_of(shape: str | list[str]) -> dict[str, Any]:
    """A pattern over a solid colour: told apart without the colour, and read on both grounds; a
    list has one for each bar."""
    return {
        "shape": shape,
        "fillmode": "overlay",
        "fgcolor": "#ffffff",
        "fgopacity": 0.35,
        "size": 7,
    }


def dressed(figure: go.Figure, height: int, **more: Any) -> go.Figure:
    """The frame of a chart of the laboratory: its legend above, nothing to drag; ``more`` is
    Plotly's own layout."""
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
    )
    return figure.update_layout(**more)


def per_step(run: Generation, labels: Sequence[str], view: int, t: Catalog) -> go.Figure:
    """Probability of the chosen token, and entropy, at each step; the step in view is marked."""
    choices = [step.choice for step in run.steps]
    x = list(range(1, len(choices) + 1))
    names = [plain(label) for label in labels]
    figure = make_subplots(rows=2, shared_xaxes=True, vertical_spacing=0.1)
    figure.add_bar(
        row=1,
        col=1,
        x=x,
        y=[c.probability_model for c in choices],
        name=t("generate.col_p"),
        customdata=names,
        marker={
            "color": BLUE,
            "opacity": [1.0 if i == view else 0.55 for i in range(len(x))],
            "line": {"color": ORANGE, "width": [3 if i == view else 0 for i in range(len(x))]},
        },
        hovertemplate="%{x}: %{customdata}<br>p = %{y:.4f}<extra></extra>",
    )
    model = [bits(choice.entropy_model) for choice in choices]
    filtered = [bits(choice.entropy_filtered) for choice in choices]
    for values, name, color, dash, symbol in (
        (model, "col_entropy", BLUE, "solid", "circle"),
        (filtered, "col_entropy_filtered", ORANGE, "dot", "square"),
    ):
        figure.add_scatter(
            row=2,
            col=1,
            x=x,
            y=values,
            name=t(f"generate.{name}"),
            mode="lines+markers",
            line={"color": color, "dash": dash},
            marker={"symbol": symbol, "size": [12 if i == view else 7 for i in range(len(x))]},
            customdata=names,
            hovertemplate="%{x}: %{customdata}<br>"
            + t("generate.bits", n="%{y:.3f}")
            + "<extra></extra>",
        )
    _dress(figure, x, labels, view, t)
    return figure


def _dress(
    figure: go.Figure, x: Sequence[int], labels: Sequence[str], view: int, t: Catalog
) -> None:
    if 0 <= view < len(x):
        figure.add_vrect(
            x0=view + 0.5,
            x1=view + 1.5,
            fillcolor=ORANGE,
            opacity=0.12,
            line_width=0,
            layer="below",
        )
    every = max(1, len(x) // 40)
    ticks = {"tickmode": "array", "tickvals": list(x)[::every], "autotickangles": LEANING}
    figure.update_xaxes(range=[0.4, max(len(x), 6) + 0.6], fixedrange=True)
    figure.update_xaxes(row=2, col=1, ticktext=[short(w) for w in labels][::every], **ticks)
    figure.update_yaxes(fixedrange=True, rangemode="tozero", tickformat="~g")
    figure.update_yaxes(row=1, col=1, range=[0, 1.02], title=t("generate.axis_p"), **percents(1))
    figure.update_yaxes(row=2, col=1, title=t("generate.axis_entropy"))
    figure.update_layout(
        height=380,
        margin={"l": 10, "r": 10, "t": 10, "b": 26},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
        bargap=0.25,
    )
