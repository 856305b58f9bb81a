"""Parts taken out: size, time and quality side by side. Pure."""

from __future__ import annotations

import math
from typing import Final

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.edits.spec import parse_edit
from core.lab.prune_records import Removal, Removals
from ui.figures.charts import BELOW, BLUE, ORANGE, pattern_of
from ui.figures.pruning_words import number
from ui.figures.words import in_bytes, percent, whole_percent
from ui.i18n import Catalog

PINK, GREEN = "#CC79A7", "#009E73"
CEILING: Final = 1e5


def removal_name(edit: str, t: Catalog) -> str:
    """“20 % of the neurons”, “2 layers”."""
    found = parse_edit(edit)
    parts = []
    if found.layers:
        parts.append(t("pruning.bar_layers" if len(found.layers) > 1 else "pruning.bar_layer",
                       n=len(found.layers)))  # fmt: skip
    if found.groups:
        parts.append(t("pruning.bar_groups", n=found.groups))
    if found.neurons:
        parts.append(t("pruning.bar_neurons", share=whole_percent(found.neurons)))
    return " + ".join(parts) or edit


def _looks(row: Removal) -> tuple[str, str]:
    """Colour and pattern: neurons, layers, groups."""
    found = parse_edit(row.edit)
    if found.layers:
        return ORANGE, "/"
    return (PINK, "x") if found.groups else (BLUE, "")


def removals_chart(found: Removals, t: Catalog) -> go.Figure:
    """Bars: memory and step time as shares of the original's, and perplexity (logarithmic)."""
    rows = found.rows
    names = [removal_name(row.edit, t) for row in rows]
    looks = [_looks(row) for row in rows]
    marker = {
        "color": [colour for colour, _ in looks],
        "pattern": pattern_of([shape for _, shape in looks]),
    }
    figure = make_subplots(cols=3, shared_yaxes=True, horizontal_spacing=0.03)
    low = math.log10(max(found.perplexity, 1.0))
    columns = (
        ([row.size.nbytes / found.original.nbytes for row in rows], whole_percent),
        ([row.times.ratio for row in rows], whole_percent),
        ([row.judged.perplexity for row in rows], None),
    )
    logs: list[float] = []
    for place, (values, form) in enumerate(columns, 1):
        logs = [math.log10(min(max(v, 1.0), CEILING)) for v in values]
        figure.add_bar(
            row=1,
            col=place,
            y=list(range(len(rows))),
            x=values if form else [log - low for log in logs],
            base=0 if form else low,
            orientation="h",
            marker=marker,
            text=[form(v) if form else number(v) for v in values],
            textposition="outside",
            textangle=0,
            cliponaxis=False,
            customdata=names,
            hovertemplate="%{customdata}: %{text}<extra></extra>",
            showlegend=False,
        )
    for place, key in enumerate(("axis_memory", "axis_step", "axis_perplexity_short"), 1):
        title = {"text": t(f"pruning.{key}"), "standoff": BELOW}
        figure.update_xaxes(col=place, title=title, fixedrange=True)
    for place in (1, 2):
        figure.update_xaxes(col=place, range=[0, 1.6], tickvals=[0, 1], ticktext=["0 %", "100 %"])
    most = max([low, *logs])
    # The bars begin at the original's; its number and the next power of ten want room.
    powers = [n for n in range(1, 6) if low + 0.3 < n <= most]
    figure.update_xaxes(
        # Room for a number behind the longest bar.
        col=3, range=[low - 0.05, low + 1.6 * max(most - low, 0.3)],
        tickvals=[low, *powers],
        ticktext=[number(found.perplexity), *(f"{10**n:,}" for n in powers)],
    )  # fmt: skip
    figure.update_yaxes(fixedrange=True, range=[len(rows) - 0.4, -0.6])
    figure.update_yaxes(
        col=1, tickmode="array", tickvals=list(range(len(rows))), ticktext=names, automargin=True
    )
    return figure.update_layout(
        height=90 + 30 * max(len(rows), 2),
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        dragmode=False,
        bargap=0.3,
    )


def removals_table(found: Removals, t: Catalog) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                t("pruning.col_removed"): removal_name(row.edit, t),
                t("pruning.memory"): in_bytes(row.size.nbytes),
                t("pruning.col_memory_share"): percent(row.size.nbytes / found.original.nbytes),
                t("pruning.col_parameters"): row.size.parameters,
                t("pruning.col_ratio"): f"× {row.times.ratio:.2f}",
                t("pruning.col_step"): f"{row.times.original.median:.1f} → "
                f"{row.times.edited.median:.1f}",
                t("pruning.perplexity"): number(row.judged.perplexity),
                t("pruning.kl"): row.judged.kl,
                t("pruning.col_top1"): percent(row.judged.top1),
                t("pruning.col_edit"): row.edit,
            }
            for row in found.rows
        ]
    )
