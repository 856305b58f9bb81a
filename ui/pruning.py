"""The body of the Pruning page: four parts, one story."""

from __future__ import annotations

import streamlit as st

from core.edits.spec import split
from core.faults import Fault
from ui import state
from ui.context import Context
from ui.edit_words import edit_words
from ui.i18n import Catalog
from ui.pruning_importance import importance_part
from ui.pruning_parts import bench_of, coming
from ui.pruning_removal import removal_part
from ui.pruning_speed import speed_part
from ui.pruning_zeros import zeros_part


def draw(t: Catalog, context: Context | None) -> None:
    """The page; without a model, what was recorded."""
    bench = bench_of(t)
    if bench.engine is None and context is not None and context.recorded is None:
        # (While nothing is there, the frame itself says what is being waited for.)
        if bench.waiting:
            coming(bench)
        else:
            st.info(t.fault(Fault("lab_needs_weights")))
    _already(t)
    for part in (zeros_part, removal_part, speed_part, importance_part):
        try:
            part(bench)
        except Fault as fault:
            st.info(t.fault(fault))


def _already(t: Catalog) -> None:
    """The model in use is an edited one: what is measured here, and what the buttons do."""
    edit = split(state.place().spec.model)[1]
    if not edit:
        return
    try:
        words = edit_words(t, edit)
    except Fault:
        return
    st.info(t("pruning.already", edit=words))
