"""The numbers behind the Layers page's charts, and its neurons. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from core.lens import Column
from core.neurons import Activity, Neuron, Scored
from core.residual import Stream
from ui.figures.layers import Label
from ui.i18n import HTML_LANG, Catalog


def way_table(column: Column, label: Label, t: Catalog) -> pd.DataFrame:
    """One row a layer: its favourite, and each followed token's probability and rank."""
    rows: dict[str, Any] = {
        t("layers.axis_layer"): range(1, column.ids.shape[0] + 1),
        t("layers.col_best"): [label(int(i)) for i in column.ids[:, 0]],
        t("layers.col_best_p"): column.probabilities[:, 0],
    }
    for i, token in enumerate(column.followed):
        name = label(token)
        rows[t("layers.col_p", token=name, id=token)] = column.followed_probability[:, i]
        rows[t("layers.col_rank", token=name, id=token)] = column.followed_rank[:, i]
    return pd.DataFrame(rows)


def stream_table(found: Stream, t: Catalog) -> pd.DataFrame:
    """One row a layer; row 0 is what enters the first one."""
    rows: dict[str, Any] = {
        t("layers.axis_layer"): range(found.size.size),
        t("layers.size"): found.size,
        t("layers.change"): [0.0, *found.change],
    }
    if found.parts is not None:
        parts = found.parts
        rows[t("layers.attention")] = [0.0, *parts.attention]
        rows[t("layers.feed_forward")] = [0.0, *parts.feed_forward]
        for name, values in (
            ("attention", parts.attention_along),
            ("feed_forward", parts.feed_forward_along),
        ):
            rows[t("layers.col_along", name=t(f"layers.{name}"))] = [0.0, *values]
    rows[t("layers.col_along", name=t("layers.size"))] = found.size * found.cosine
    rows[t("layers.cosine")] = found.cosine
    return pd.DataFrame(rows)


def sparsity_table(found: Activity, t: Catalog) -> pd.DataFrame:
    return pd.DataFrame(
        {
            t("layers.axis_layer"): range(1, found.near_zero.size + 1),
            t("layers.near_zero"): found.near_zero,
            t("layers.busy"): found.busy,
            t("layers.largest"): found.largest,
        }
    )


def neurons_data(found: Sequence[Neuron], layer: int, label: Label, t: Catalog) -> dict[str, Any]:
    """What the neurons' component draws."""

    def scored(tokens: Scored) -> list[dict[str, Any]]:
        return [{"label": label(token), "score": float(f"{s:.4g}")} for token, s in tokens]

    return {
        "lang": HTML_LANG[t.lang],
        "strings": t.area("layers"),
        "layer": layer,
        "gated": bool(found) and found[0].gate is not None,
        "largest": max((abs(neuron.value) for neuron in found), default=0.0),
        "longest": max((neuron.size for neuron in found), default=0.0),
        "neurons": [
            {
                "index": neuron.index,
                "value": neuron.value,
                "gate": neuron.gate,
                "up": neuron.up,
                "size": neuron.size,
                "column": neuron.column,
                "promotes": scored(neuron.promotes),
                "suppresses": scored(neuron.suppresses),
            }
            for neuron in found
        ],
    }
