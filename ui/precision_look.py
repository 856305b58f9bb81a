"""The third part of the Precision page: one matrix, its grid, and the arithmetic by hand."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import streamlit as st

from core.edits.grid import Grid
from core.engine.memory import ByteLRU
from core.engine.protocol import Engine
from core.lab.models import local
from core.lab.quantize_records import Hand, Look
from ui import state
from ui.figures.precision import grid_words, share_of, share_words
from ui.figures.precision_look import (
    hand_table,
    histogram,
    histogram_table,
    outliers_table,
    scale_latex,
    scales_table,
)
from ui.figures.words import percent, real_minus
from ui.i18n import Catalog
from ui.lab_parts import PLAIN, dataframe, section, table
from ui.marks import mark
from ui.precision_model import Reference
from ui.precision_options import chosen, here, setting_here
from ui.widgets import NO_VALUE, picked, show

LOOKS_BYTES: Final = 32_000_000
_LAYER: Final = re.compile(r"^(.*\.(?:layers|h|blocks)\.)(\d+)\.(.+)$")


@st.cache_resource(show_spinner=False)
def _looks() -> ByteLRU[Any, Look]:
    return ByteLRU(LOOKS_BYTES)


def look_part(t: Catalog, reference: Reference) -> None:
    """Histogram, one row by hand, outliers: of one matrix of the original."""
    section(t, 3, "precision.look")
    if reference.engine is None:
        st.caption(t("precision.needs_model"))
        return
    name = _pick(t, reference.engine)
    if name is None:
        return
    found = _look(reference, name, setting_here().grid, here()["row"])
    mark(t, "computed", t("precision.look_how", name=name))
    _histogram(t, found)
    _by_hand(t, found)
    _outliers(t, found)


def _pick(t: Catalog, engine: Engine) -> str | None:
    """The matrix in view: its layer is the one of all pages."""
    from core.lab.quantize_look import matrix_names  # noqa: PLC0415 - imports torch

    names = matrix_names(local(engine))
    layers: dict[int, list[str]] = {}
    for name in names:
        match = _LAYER.match(name)
        layers.setdefault(int(match.group(2)) if match else -1, []).append(name)
    if not layers:
        st.info(t("precision.no_matrices"))
        return None
    numbers = sorted(number for number in layers if number >= 0)
    asked = state.place().view.layer
    layer = asked if asked in numbers else (numbers[0] if numbers else -1)
    left, right = st.columns(2, gap="medium")
    with left:
        if len(numbers) > 1:
            st.select_slider(
                t("precision.layer"),
                numbers,
                key=show("precision_layer", layer),
                format_func=lambda n: str(n + 1) if isinstance(n, int) else str(n),
                on_change=lambda: state.look(layer=picked("precision_layer", numbers, layer)),
            )
    short = {_short(name): name for name in (*layers[layer], *layers.get(-1, ()))}
    matrix = here()["matrix"]
    if matrix not in short:
        matrix = next(
            (name for name in short if "down" in name or "c_proj" in name), next(iter(short))
        )
    with right:
        st.selectbox(
            t("precision.matrix"),
            list(short),
            key=show("precision_matrix", matrix),
            on_change=chosen("matrix", "precision_matrix"),
        )
    return str(short[matrix])


def _short(name: str) -> str:
    match = _LAYER.match(name)
    return match.group(3) if match else name


def _look(reference: Reference, name: str, grid: Grid, row: int) -> Look:
    """From the memo, or looked at now; row -1 is that of the largest weight."""
    assert reference.engine is not None
    key = (reference.key, name, grid, row)
    found = _looks().get(key)
    if found is None:
        from core.lab.quantize_look import look, matrix, outliers  # noqa: PLC0415 - imports torch

        table = matrix(local(reference.engine), name)
        largest = outliers(table)[0]
        at, start = (largest.row, largest.column) if row < 0 else (row, 0)
        if grid.span != "group":
            start = max(0, min(start - 3, table.shape[1] - 16))
        found = look(name, table, grid, at, start)
        _looks().put(key, found, 20_000)
    return found


def _histogram(t: Catalog, found: Look) -> None:
    st.markdown(f"### {t('precision.histogram_title')}")
    share = share_words(share_of(found.grid), t)
    st.caption(
        t(
            "precision.histogram_text",
            rows=f"{found.shape[0]:,}",
            columns=f"{found.shape[1]:,}",
            levels=found.grid.levels,
            share=share,
            row=found.hand.row,
        )
    )
    figure = histogram(found, t)
    alt = t("precision.histogram_alt", levels=found.grid.levels, low=f"{found.hand.low:.3g}",
            high=f"{found.hand.high:.3g}")  # fmt: skip
    st.plotly_chart(figure, key="precision_histogram", config=PLAIN, alt=alt)
    table(t, histogram_table(found, t), "precision_histogram")


def _by_hand(t: Catalog, found: Look) -> None:
    hand: Hand = found.hand
    st.markdown(f"### {t('precision.hand_title')}")
    st.number_input(
        t("precision.row"),
        min_value=0,
        max_value=found.shape[0] - 1,
        key=show("precision_row", hand.row),
        help=t("precision.row_help"),
        on_change=chosen("row", "precision_row"),
    )
    st.caption(
        t(
            "precision.hand_text",
            row=hand.row,
            first=hand.start,
            last=hand.start + hand.weights.size - 1,
            grid=grid_words(found.grid, t),
            span=f"{hand.span:,}",
            low=real_minus(f"{hand.low:.4g}"),
            high=real_minus(f"{hand.high:.4g}"),
        )
    )
    for line in scale_latex(hand, found.grid):
        st.latex(line)
    number = st.column_config.NumberColumn(format="%.6f")
    frame = hand_table(hand, found.grid, t)
    config: dict[Any, Any] = {str(n): number for n in frame.select_dtypes("floating").columns}
    st.dataframe(
        frame,
        hide_index=True,
        placeholder=NO_VALUE,
        column_config=config,
        key="precision_hand",
        height="content",
    )
    worst = float(np.max(hand.error)) if hand.error.size else 0.0
    within = worst <= hand.scale / 2 * (1 + 1e-9) + 1e-12
    st.caption(
        t(
            "precision.hand_check" if within else "precision.hand_off",
            worst=f"{worst:.6f}",
            half=f"{hand.scale / 2:.6f}",
        )
    )


def _outliers(t: Catalog, found: Look) -> None:
    st.markdown(f"### {t('precision.outliers_title')}")
    largest = found.outliers[0]
    whole = next(scale for scale in found.scales if scale.grid.span == "tensor")
    st.markdown(
        t(
            "precision.outliers_text",
            value=real_minus(f"{largest.value:.4g}"),
            row=largest.row,
            column=largest.column,
            deviations=f"{largest.deviations:.1f}",
            scale=f"{whole.largest:.4g}",
            without=f"{found.without:.4g}",
            zeroed=percent(whole.zeroed),
        )
    )
    dataframe(scales_table(found.scales, t), "precision_scales")
    table(t, outliers_table(found.outliers, t), "precision_outliers")
