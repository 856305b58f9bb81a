"""How large caches are: this model by context, and others beside it. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from core.lab.kv_cost import kept_bytes
from core.lab.kv_others import Other
from core.lab.kv_records import Held
from core.lab.shape import ModelShape
from ui.figures.charts import BLUE, ORANGE, dressed, pattern_of, plain
from ui.figures.sources import dated
from ui.figures.words import in_bytes
from ui.i18n import Catalog

GREEN, GREY = "#009E73", "#808080"


@dataclass(frozen=True)
class Own:
    """The model in use."""

    name: str
    shape: ModelShape
    value_bytes: int
    context: int
    held: Held


def growth_chart(own: Own, t: Catalog) -> go.Figure:
    """Bytes by length: as it is, with keys and values for every query head, without windows."""
    shape = own.shape
    # Far enough to see what a window saves, and near enough to see one more token.
    most = min(own.context, max(128, 3 * (shape.window or 0), 4 * own.held.length))
    lengths = sorted({1, most, *(most * i // 32 for i in range(1, 32)), shape.window or 1})
    lengths = [n for n in lengths if 1 <= n <= most]
    variants: list[tuple[str, ModelShape, str, str]] = []
    if shape.kv_heads < shape.heads:
        full = replace(shape, kv_heads=shape.heads)
        variants.append(("variant_heads", full, GREY, "dash"))
    if shape.window is not None and shape.sliding_layers:
        endless = replace(shape, window=None, sliding_layers=0)
        variants.append(("variant_windows", endless, GREEN, "dot"))
    variants.append(("variant_own", shape, BLUE, "solid"))
    figure = go.Figure()
    for key, each, colour, dash in variants:
        figure.add_scatter(
            x=lengths,
            y=[kept_bytes(each, n, own.value_bytes) / 1e6 for n in lengths],
            name=t(f"kv_cache.{key}"),
            mode="lines",
            line={"color": colour, "dash": dash, "width": 3 if each is shape else 2},
            hovertemplate="%{x:,}: %{y:,.2f} MB<extra></extra>",
        )
    figure.add_scatter(
        x=[own.held.length],
        y=[own.held.nbytes / 1e6],
        name=t("kv_cache.variant_now"),
        mode="markers",
        marker={"symbol": "diamond", "size": 13, "color": ORANGE},
        cliponaxis=False,
        hovertemplate="%{x:,}: %{y:,.3f} MB<extra></extra>",
    )
    figure.update_xaxes(
        fixedrange=True, title=t("kv_cache.axis_length"), tickformat=",", range=[0, most]
    )
    figure.update_yaxes(fixedrange=True, title="MB", rangemode="tozero", tickformat=",~g")
    return dressed(figure, 320, bargap=0.3)


def others_chart(others: Sequence[Other], own: Own | None, t: Catalog) -> go.Figure:
    """Horizontal bars on a logarithmic axis, the largest on top; this model has its own sign."""
    bars = [(other.title, other.cache_bytes, False) for other in others]
    if own is not None and others:
        size = kept_bytes(own.shape, others[0].length, own.value_bytes)
        bars.append((t("kv_cache.this_model", name=own.name), round(size), True))
    bars.sort(key=lambda bar: bar[1])
    figure = go.Figure(
        go.Bar(
            y=[plain(name) for name, _, _ in bars],
            x=[size / 1e6 for _, size, _ in bars],
            orientation="h",
            marker={
                "color": [ORANGE if mine else BLUE for _, _, mine in bars],
                "pattern": pattern_of(["/" if mine else "" for _, _, mine in bars]),
            },
            text=[in_bytes(size) for _, size, _ in bars],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
    )
    top = max(size for _, size, _ in bars) / 1e6
    low = min(size for _, size, _ in bars) / 1e6
    figure.update_xaxes(
        type="log",
        fixedrange=True,
        range=[_log(low / 3), _log(top * 12)],
        title=t("lab.log_axis", axis="MB"),
        dtick=1,
        tickformat=",~g",
    )
    figure.update_yaxes(fixedrange=True, automargin=True)
    return dressed(figure, 90 + 26 * len(bars), bargap=0.3)


def _log(value: float) -> float:
    return math.log10(max(value, 1e-6))


def layers_table(found: Held, t: Catalog) -> pd.DataFrame:
    """Each layer's part of the cache, from the shapes of its tensors."""
    return pd.DataFrame(
        [
            {
                t("kv_cache.col_layer"): layer.layer + 1,
                t("kv_cache.col_kind"): t(
                    "kv_cache.kind_full" if layer.window is None else "kv_cache.kind_sliding",
                    n=layer.window,
                ),
                t("kv_cache.col_kept"): layer.positions,
                t("kv_cache.col_first"): layer.first,
                t("kv_cache.col_kv_heads"): layer.kv_heads,
                t("kv_cache.col_head_dim"): layer.head_dim,
                t("kv_cache.col_cache"): layer.nbytes,
            }
            for layer in found.layers
        ]
    )


def others_table(others: Sequence[Other], own: Own | None, t: Catalog) -> pd.DataFrame:
    """What the bars show, with the numbers of the formula and their source."""
    rows: list[dict[str, Any]] = []
    if own is not None and others:
        shape, length = own.shape, others[0].length
        size = kept_bytes(shape, length, own.value_bytes)
        name = t("kv_cache.this_model", name=own.name)
        each = own.held.token_bytes
        rows.append(_other(name, shape, own.value_bytes, (each, round(size)), t))
    for other in others:
        shape = ModelShape(
            other.name, other.layers, 1, other.heads, other.kv_heads, other.head_dim, 1, 1,
            window=other.window, sliding_layers=other.sliding_layers,
        )  # fmt: skip
        sizes = (other.token_bytes, other.cache_bytes)
        row = _other(other.title, shape, 2, sizes, t)
        row[t("kv_cache.col_source")] = dated(other.source, other.date, t)
        rows.append(row)
    return pd.DataFrame(rows)


def _other(
    name: str, shape: ModelShape, value_bytes: int, sizes: tuple[int, int], t: Catalog
) -> dict[str, Any]:
    return {
        t("kv_cache.col_model"): name,
        t("kv_cache.col_layers"): shape.layers,
        t("kv_cache.col_sliding"): shape.sliding_layers,
        t("kv_cache.col_kv_heads"): f"{shape.kv_heads} / {shape.heads}",
        t("kv_cache.col_head_dim"): shape.head_dim,
        t("kv_cache.col_value_bytes"): value_bytes,
        t("kv_cache.col_token_bytes"): sizes[0],
        t("kv_cache.col_cache"): sizes[1],
    }
