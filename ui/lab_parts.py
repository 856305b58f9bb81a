"""What the pages of the laboratory are put together from: rows of buttons, tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import streamlit as st

from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.models import local
from ui.context import Context
from ui.i18n import Catalog
from ui.lab_options import Table, chosen, here
from ui.widgets import NO_VALUE, show

_NUMBER: Final = re.compile(r"[+−-]?(\d[\d,.]*|…)(\s?(%|ms|s|[kMG]?B|×|tokens/s))?")
PLAIN: Final = {"displayModeBar": False}
"""Of a chart: without Plotly's own buttons."""


def section(t: Catalog, number: int, key: str) -> None:
    """The heading of a page's part, and, where there is one, the text that says what it is."""
    st.markdown(f"## {number}. {t(f'{key}_title')}")
    if f"{key}_text" in t.messages:
        st.caption(t(f"{key}_text"))


def weights(context: Context | None) -> Engine | None:
    """The engine, where it has weights in this process."""
    if context is None:
        return None
    try:
        return local(context.engine)
    except Fault:
        return None


def table(t: Catalog, frame: Any, key: str, **columns: Any) -> None:
    """A table under a chart, folded; ``columns`` as :func:`dataframe` takes them."""
    with st.expander(t("lab.as_table"), icon=":material/table:", key=f"{key}_table"):
        dataframe(frame, key, **columns)


def dataframe(frame: Any, key: str, **columns: Any) -> None:
    """A table; ``columns`` are Streamlit's settings of single ones."""
    config = {**number_columns(frame), **columns}
    st.dataframe(frame, hide_index=True, placeholder=NO_VALUE, column_config=config, key=key)


def wide() -> Any:
    """The setting of a column whose texts are long, such as sources."""
    return st.column_config.TextColumn(width="large")


def number_columns(frame: Any) -> dict[Any, Any]:
    """How the numbers of a table are written: four digits, or whole with separators; those that
    are texts already, such as "50.0 %", stand at the right as the others do."""
    number = st.column_config.NumberColumn(format="%.4g")
    whole = st.column_config.NumberColumn(format="localized")
    right = st.column_config.TextColumn(alignment="right")
    config: dict[Any, Any] = {str(n): number for n in frame.select_dtypes("floating").columns}
    config |= {str(n): whole for n in frame.select_dtypes("integer").columns}
    texts = [n for n in frame.columns if str(n) not in config]
    return config | {str(n): right for n in texts if _only_numbers(frame[n])}


def _only_numbers(column: Any) -> bool:
    """Whether each cell that is filled is a number in words: "+0.12", "50.0 %", "1.5 GB", "…"."""
    filled = [cell for cell in column.dropna() if cell != ""]
    return bool(filled) and all(
        isinstance(cell, str) and _NUMBER.fullmatch(cell) is not None for cell in filled
    )


def buttons(
    field: str,
    options: Table,
    name: str,
    values: Sequence[Any],
    *,
    label: str,
    help: str,
    say: Callable[[Any], str] = str,
    key: str | None = None,
) -> None:
    """A row of buttons that sets the option ``name`` of a page (see ``ui.lab_options``)."""
    key = key or f"{field}_{name}"
    st.segmented_control(
        label,
        list(values),
        key=show(key, here(field, options)[name]),
        format_func=lambda v: say(v) if v in values else str(v),
        help=help,
        required=True,
        on_change=chosen(field, options, name, key),
    )
