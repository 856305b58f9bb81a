"""What the parts of the KV cache page share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import streamlit as st

from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.models import local
from ui.context import Context
from ui.i18n import Catalog
from ui.kv_options import chosen
from ui.widgets import show

PLAIN: Final = {"displayModeBar": False}


def weights(context: Context | None) -> Engine | None:
    """The engine, where it has weights in this process."""
    if context is None:
        return None
    try:
        return local(context.engine)
    except Fault:
        return None


def title(t: Catalog, number: int, key: str) -> None:
    st.markdown(f"#### {number}. {t(f'kv_cache.{key}')}")


def table(t: Catalog, frame: Any, key: str) -> None:
    """A table under a chart, folded."""
    with st.expander(t("lab.as_table"), icon=":material/table:", key=f"{key}_table"):
        dataframe(frame, key)


def dataframe(frame: Any, key: str) -> None:
    number = st.column_config.NumberColumn(format="%.4g")
    whole = st.column_config.NumberColumn(format="localized")
    config: dict[Any, Any] = {str(n): number for n in frame.select_dtypes("floating").columns}
    config |= {str(n): whole for n in frame.select_dtypes("integer").columns}
    st.dataframe(frame, hide_index=True, column_config=config, key=key)


def choice(
    name: str,
    values: Sequence[Any],
    value: Any,
    *,
    label: str,
    help: str,
    say: Callable[[Any], str] = str,
) -> None:
    """A row of buttons that sets one option."""
    key = f"kv_set_{name}"
    st.segmented_control(
        label,
        list(values),
        key=show(key, value),
        format_func=lambda v: say(v) if v in values else str(v),
        help=help,
        required=True,
        on_change=chosen(name, key),
    )


def milliseconds(ms: float) -> str:
    """A time for people."""
    return f"{ms:,.0f} ms" if ms >= 10 else f"{ms:.1f} ms"
