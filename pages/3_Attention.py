"""Attention: which earlier tokens each token reads, and how each weight came about."""

import streamlit as st

from core.faults import Fault
from ui.ablate import second_opinion, switched_off
from ui.attention import Scene, hybrid, scene
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
        for note in (hybrid(found), "" if found.whole else long_text(found)):
            if note:
                st.info(note)
        heads_grid(found, key="heads_grid")
        head(found, sink(digests), key="head")
        one_weight(found)
    switched_off(found)
    second_opinion(found)


def long_text(found: Scene) -> str:
    seconds = found.forwards[0].ms / 1000
    megabytes = found.megabytes
    return found.context.t(
        "attention.long", n=len(found.ids), mb=f"{megabytes:.0f}", s=f"{seconds:.1f}"
    )


def one_weight(found: Scene) -> None:
    t = found.context.t
    st.markdown(f"##### {t('attention.cell_title')}")
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
