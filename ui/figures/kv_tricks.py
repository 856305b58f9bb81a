"""Smaller caches side by side: what each keeps, and what it costs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.lab.kv_records import Trick, TrickResult
from ui.figures.charts import BLUE, ORANGE, pattern_of, percents
from ui.figures.words import percent, tiny, whole_percent
from ui.i18n import Catalog

PINK, GREEN = "#CC79A7", "#009E73"
LEAST = 1e-5
"""Lowest KL of the logarithmic axis."""


def trick_name(trick: Trick, t: Catalog) -> str:
    """A trick in a few words."""
    parts = []
    if trick.bits is not None:
        parts.append(t(f"kv_cache.name_{trick.keys}", bits=trick.bits))
    if trick.window is not None:
        key = "name_sinks" if trick.sinks else "name_window"
        parts.append(t(f"kv_cache.{key}", n=trick.window, sinks=trick.sinks))
    return " + ".join(parts) or t("kv_cache.name_full")


def _looks(trick: Trick) -> tuple[str, str]:
    """Colour and pattern: rounding per token or channel, windows without or with first tokens."""
    if trick.bits is not None:
        return (BLUE, "") if trick.keys == "channel" else (ORANGE, "/")
    return (GREEN, "") if trick.sinks else (PINK, "x")


def tricks_chart(results: Sequence[TrickResult], t: Catalog) -> go.Figure:
    """Bars: the share of the bytes that stays, and the cost in KL on a logarithmic axis."""
    names = [trick_name(result.trick, t) for result in results]
    looks = [_looks(result.trick) for result in results]
    marker = {
        "color": [colour for colour, _ in looks],
        "pattern": pattern_of([shape for _, shape in looks]),
    }
    figure = make_subplots(cols=2, shared_yaxes=True, horizontal_spacing=0.04)
    figure.add_bar(
        row=1,
        col=1,
        y=list(range(len(names))),
        x=[result.nbytes / result.full_bytes for result in results],
        orientation="h",
        marker=marker,
        text=[whole_percent(result.nbytes / result.full_bytes) for result in results],
        textposition="outside",
        cliponaxis=False,
        customdata=names,
        hovertemplate="%{customdata}: %{text}<extra></extra>",
        showlegend=False,
    )
    figure.add_bar(
        row=1,
        col=2,
        y=list(range(len(names))),
        x=[max(result.kl - LEAST, 0) for result in results],
        base=LEAST,
        orientation="h",
        marker=marker,
        text=[_cost(result.kl) for result in results],
        textposition="outside",
        cliponaxis=False,
        customdata=names,
        hovertemplate="%{customdata}: KL %{text}<extra></extra>",
        showlegend=False,
    )
    figure.update_yaxes(fixedrange=True, range=[len(names) - 0.4, -0.6])
    figure.update_yaxes(
        col=1, tickmode="array", tickvals=list(range(len(names))), ticktext=names, automargin=True
    )
    figure.update_xaxes(fixedrange=True)
    figure.update_xaxes(
        col=1, title=t("kv_cache.axis_kept"), range=[0, 0.85], **percents(0.85, most=3)
    )
    figure.update_xaxes(
        col=2, title=t("kv_cache.axis_kl"), type="log", range=[-5, 1.7], dtick=2, tickformat="~g"
    )
    figure.update_layout(
        height=100 + 30 * len(names),
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        dragmode=False,
        bargap=0.3,
    )
    return figure


def _cost(kl: float) -> str:
    """0.21, 6.5 × 10⁻⁵, ≈ 0."""
    if kl < LEAST:
        return "≈ 0"
    return tiny(kl) if kl < 0.001 else f"{kl:.2g}"


def tricks_table(results: Sequence[TrickResult], t: Catalog) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                t("kv_cache.col_trick"): trick_name(result.trick, t),
                t("kv_cache.col_cache"): result.nbytes,
                t("kv_cache.col_saved"): percent(result.saved),
                t("kv_cache.col_kl"): result.kl,
                t("kv_cache.col_top1"): percent(result.top1),
                t("kv_cache.col_key_error"): percent(result.key_error),
                t("kv_cache.col_value_error"): percent(result.value_error),
            }
            for result in results
        ]
    )
