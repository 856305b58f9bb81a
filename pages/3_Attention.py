"""Attention: which earlier tokens each token reads, and how each weight came about."""

import streamlit as st

from core.faults import Fault
from ui.ablate import second_opinion, switched_off
from ui.attention import Scene, scene
from ui.attention_notes import notes
from ui.components.cell import cell
from ui.components.head import head
from ui.components.heads_grid import heads_grid
from ui.context import Context
from ui.figures.attention import sink
from ui.frame import page


def body(context: Context) -> None:
    found, t = scene(context), context.t
    if found is None:
        st.info(t("attention.no_layers"))
        return
    with st.spinner(t("attention.reading"), show_time=True):
        digests = found.digests()
    if not digests:
        st.warning(t("attention.not_readable", architecture=context.engine.info.architecture))
    else:
        for note in notes(found):
            st.info(note)
        heads_grid(found, key="heads_grid")
        head(found, sink(digests), key="head")
    if context.recorded:
        st.info(t("attention.later"))
        return
    if digests:
        one_weight(found)
    switched_off(found)
    second_opinion(found)


def one_weight(found: Scene) -> None:
    t = found.context.t
    st.markdown(f"## {t('attention.cell_title')}")
    try:
        with st.spinner(t("attention.reading"), show_time=True):
            derivation = found.derivation()
    except Fault as fault:
        st.warning(t.fault(fault))
        return
    if derivation is None:
        st.caption(t("attention.cell_mean" if found.head < 0 else "attention.cell_none"))
    else:
        cell(found, derivation, key="cell")


page("attention", body)
