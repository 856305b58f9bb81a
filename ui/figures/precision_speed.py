"""Ways to store the weights: bytes, and times beside the original's. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.edits.spec import parse_edit
from core.lab.quantize_records import Speed, Stored
from core.lab.timing import Spread
from ui.figures.charts import BLUE, ORANGE, pattern_of
from ui.figures.words import in_bytes, percent, two_digits
from ui.i18n import Catalog

GREEN: Final = "#009E73"


def storage_words(name: str, t: Catalog) -> str:
    """A way to store the weights in a few words; "" is the model as it was loaded."""
    if not name:
        return t("precision.store_loaded")
    packing = parse_edit(name).packing
    assert packing is not None
    said = t(f"precision.store_{packing.storage}", group=packing.group)
    return said + (t("precision.and_head_copy") if packing.head else "")


def _ratio(time: Spread, first: Spread) -> float | None:
    """Median ÷ the original's median; ``None`` before it is measured."""
    return time.median / first.median if time.repeats and first.repeats else None


def speed_chart(found: Speed, t: Catalog) -> go.Figure:
    """Bars: share of the bytes, of the step's time, of the prefill's time; 1 is the original."""
    rows = list(found.rows)
    names = [storage_words(row.edit, t) for row in rows]
    first = rows[0]
    figure = make_subplots(cols=3, shared_yaxes=True, horizontal_spacing=0.05)
    columns: tuple[tuple[str, str, str, list[float | None]], ...] = (
        ("axis_bytes", BLUE, "", [row.nbytes / first.nbytes for row in rows]),
        ("axis_step", ORANGE, "/", [_ratio(row.step, first.step) for row in rows]),
        ("axis_prefill", GREEN, "x", [_ratio(row.prefill, first.prefill) for row in rows]),
    )
    for col, (key, colour, pattern, values) in enumerate(columns, 1):
        figure.add_bar(
            row=1,
            col=col,
            y=list(range(len(rows))),
            x=values,
            orientation="h",
            marker={"color": colour, "pattern": pattern_of(pattern)},
            customdata=names,
            hovertemplate="%{customdata}: × %{x:.2f}<extra></extra>",
            showlegend=False,
        )
        _write(figure, col, values)
        most = max([1.0, *(value for value in values if value is not None)])
        figure.update_xaxes(
            col=col,
            title=t(f"precision.{key}"),
            range=[0, most * 1.6],
            tickvals=[0, 1],
            fixedrange=True,
        )
        figure.add_vline(x=1, line={"color": "#8A8F98", "width": 1, "dash": "dot"}, col=col)
    figure.update_yaxes(fixedrange=True, range=[len(rows) - 0.4, -0.6])
    figure.update_yaxes(
        col=1, tickmode="array", tickvals=list(range(len(rows))), ticktext=names, automargin=True
    )
    figure.update_layout(
        height=110 + 34 * len(rows),
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        dragmode=False,
        bargap=0.3,
    )
    return figure


def _write(figure: go.Figure, col: int, values: Sequence[float | None]) -> None:
    """The numbers behind the bars and behind the line at 1, which would cross them elsewhere."""
    figure.add_scatter(
        row=1,
        col=col,
        y=list(range(len(values))),
        x=[max(value or 0.0, 1.0) for value in values],
        mode="text",
        text=["" if value is None else f"\u00a0{value:.2f}" for value in values],
        textposition="middle right",
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )


def speed_table(found: Speed, t: Catalog) -> pd.DataFrame:
    """Bytes of the real tensors, times with their spread, ratios."""
    first = found.rows[0]
    return pd.DataFrame([_row(row, first, t) for row in found.rows])


def _row(row: Stored, first: Stored, t: Catalog) -> dict[str, str]:
    return {
        t("precision.col_store"): storage_words(row.edit, t),
        t("precision.col_size"): in_bytes(row.nbytes),
        t("precision.col_bytes"): f"{row.nbytes:,}",
        t("precision.col_kl"): "–" if row.kl is None else f"{row.kl:.3g}",
        t("precision.col_top1"): "–" if row.top1 is None else percent(row.top1),
        t("precision.col_step"): _spread(row.step, t),
        t("precision.col_step_ratio"): _times(row.step, first.step),
        t("precision.col_prefill"): _spread(row.prefill, t),
        t("precision.col_prefill_ratio"): _times(row.prefill, first.prefill),
        t("precision.col_kernel"): t(
            "precision.kernel_yes" if row.kernel else "precision.kernel_no"
        ),
    }


def _spread(time: Spread, t: Catalog) -> str:
    if not time.repeats:
        return "–"
    return t(
        "precision.spread",
        median=two_digits(time.median),
        low=two_digits(time.low),
        high=two_digits(time.high),
    )


def _times(time: Spread, first: Spread) -> str:
    ratio = _ratio(time, first)
    return "–" if ratio is None else f"× {ratio:.2f}"
