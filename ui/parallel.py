"""The Many machines page: four ways to run one model on several processes."""

from __future__ import annotations

import streamlit as st

from core.faults import Fault
from ui.context import Context
from ui.parallel_copies import draw_copies, draw_offload
from ui.parallel_pipeline import draw_pipeline
from ui.parallel_tensor import draw_tensor


def draw(context: Context) -> None:
    """The four parts; each needs a model with layers, and a fault in one leaves the others."""
    if context.engine.info.layers == 0:
        st.info(context.t.fault(Fault("lab_needs_weights")))
        return
    for part in (draw_tensor, draw_pipeline, draw_offload, draw_copies):
        try:
            part(context)
        except Fault as fault:
            st.info(context.t.fault(fault))
