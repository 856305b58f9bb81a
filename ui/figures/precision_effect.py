"""What one setting does to the next token and to the layers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.lab.quantize_records import Candidate, LayerError
from ui.figures.charts import BLUE, LEANING, ORANGE, dressed, pattern_of, percents, plain, short
from ui.figures.words import percent
from ui.i18n import Catalog

Label = Callable[[int], str]


def next_chart(
    candidates: Sequence[Candidate], label: Label, t: Catalog, reference: str
) -> go.Figure:
    """The likeliest next tokens, before and after, as pairs of bars."""
    figure = go.Figure()
    x = list(range(len(candidates)))
    names = [plain(label(one.id)) for one in candidates]
    for values, name, colour, pattern in (
        ([one.before for one in candidates], reference, BLUE, ""),
        ([one.after for one in candidates], t("precision.after"), ORANGE, "/"),
    ):
        figure.add_bar(
            x=x,
            y=values,
            name=name,
            marker={"color": colour, "pattern": pattern_of(pattern)},
            customdata=names,
            hovertemplate="%{customdata}<br>p = %{y:.4f}<extra></extra>",
        )
    figure.update_xaxes(
        tickmode="array",
        tickvals=x,
        ticktext=[short(label(one.id)) for one in candidates],
        autotickangles=LEANING,
        fixedrange=True,
    )
    figure.update_yaxes(title=t("precision.axis_p"), fixedrange=True, rangemode="tozero")
    most = max([p for one in candidates for p in (one.before, one.after)], default=1.0)
    figure.update_yaxes(percents(most))
    return dressed(figure, 300, bargap=0.3, barmode="group")


def next_table(candidates: Sequence[Candidate], label: Label, t: Catalog) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                t("precision.col_token"): label(one.id),
                t("precision.col_before"): percent(one.before),
                t("precision.col_after"): percent(one.after),
            }
            for one in candidates
        ]
    )


def layers_chart(layers: Sequence[LayerError], t: Catalog) -> go.Figure:
    """Two rows: how far the weights are off, and how far the stream is off after each layer."""
    figure = make_subplots(rows=2, shared_xaxes=True, vertical_spacing=0.1)
    x = list(range(1, len(layers) + 1))
    figure.add_bar(
        row=1,
        col=1,
        x=x,
        y=[layer.weights for layer in layers],
        name=t("precision.layer_weights"),
        marker={"color": BLUE},
        customdata=[percent(layer.weights) for layer in layers],
        hovertemplate="%{x}: %{customdata}<extra></extra>",
    )
    figure.add_scatter(
        row=2,
        col=1,
        x=x,
        y=[layer.stream for layer in layers],
        name=t("precision.layer_stream"),
        mode="lines+markers",
        line={"color": ORANGE, "width": 2},
        marker={"symbol": "diamond", "size": 7},
        customdata=[percent(layer.stream) for layer in layers],
        hovertemplate="%{x}: %{customdata}<extra></extra>",
    )
    figure.update_yaxes(rangemode="tozero", fixedrange=True)
    for row, name in ((1, "weights"), (2, "stream")):
        most = max([getattr(layer, name) for layer in layers], default=1.0)
        figure.update_yaxes(percents(most, most=4), row=row, col=1)
    every = max(1, -(-len(layers) // 12))
    figure.update_xaxes(
        range=[0.4, max(len(x), 4) + 0.6], tickmode="linear", tick0=1, dtick=every, fixedrange=True
    )
    figure.update_xaxes(row=2, col=1, title=t("precision.axis_layer"))
    return dressed(figure, 380, bargap=0.3, barmode="group")


def layers_table(layers: Sequence[LayerError], t: Catalog) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                t("precision.axis_layer"): number,
                t("precision.layer_weights"): percent(layer.weights),
                t("precision.layer_stream"): percent(layer.stream),
            }
            for number, layer in enumerate(layers, 1)
        ]
    )
