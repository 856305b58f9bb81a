"""The body of the KV cache page: five parts, one story."""

from __future__ import annotations

import streamlit as st

from core.faults import Fault
from ui.context import Context
from ui.i18n import Catalog
from ui.kv_held import rows_part, sizes_part
from ui.kv_reuse import reuse_part
from ui.kv_steps import steps_part
from ui.kv_tricks import tricks_part
from ui.lab_parts import weights


def draw(t: Catalog, context: Context | None) -> None:
    """The page; without a run, what was recorded and what a formula says."""
    engine = weights(context)
    if engine is None and context is not None and context.recorded is None:
        st.info(t.fault(Fault("lab_needs_weights")))
    for part in (steps_part, rows_part, sizes_part, tricks_part, reuse_part):
        try:
            part(t, context, engine)
        except Fault as fault:
            st.info(t.fault(fault))
