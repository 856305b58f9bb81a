"""What the parts of the Many machines page share."""

from __future__ import annotations

from typing import Any, Final

import streamlit as st

from ui.context import Context
from ui.i18n import Catalog

PLAIN: Final = {"displayModeBar": False}


def title(t: Catalog, number: int, key: str) -> None:
    """The heading of a part, and what it is about."""
    st.markdown(f"#### {number}. {t(f'parallel.{key}_title')}")
    st.markdown(t(f"parallel.{key}_text"))


def chart(t: Catalog, figure: Any, key: str) -> None:
    """A chart with its description for those who do not see it."""
    st.plotly_chart(figure, key=f"parallel_{key}", config=PLAIN, alt=t(f"parallel.alt_{key}"))


def table(t: Catalog, frame: Any, key: str, *, folded: bool = True) -> None:
    """Under a chart folded, otherwise as it is."""
    number = st.column_config.NumberColumn(format="%.4g")
    whole = st.column_config.NumberColumn(format="localized")
    config: dict[str, Any] = {str(name): number for name in frame.select_dtypes("floating").columns}
    config |= {str(name): whole for name in frame.select_dtypes("integer").columns}
    if not folded:
        st.dataframe(frame, hide_index=True, column_config=config, key=f"parallel_{key}_rows")
        return
    with st.expander(t("lab.as_table"), icon=":material/table:", key=f"parallel_{key}_fold"):
        st.dataframe(frame, hide_index=True, column_config=config, key=f"parallel_{key}_rows")


def ids_of(context: Context) -> tuple[int, ...]:
    """The prompt as the model reads it."""
    return tuple(token.id for token in context.generation.prompt)


def live(context: Context) -> bool:
    """Whether the model is here; says so where a stored run stands in for it."""
    if context.recorded is not None:
        st.info(context.t("fault.model_loading"))
    return context.recorded is None


def phase_text(t: Catalog, record: Any) -> None:
    """What the processes are busy with."""
    if not record.done:
        st.caption(t(f"parallel.phase_{record.phase}"))
