"""Layers: what each one writes into the residual stream, and what it is made of."""

import streamlit as st

from core.faults import Fault
from ui import layers_page as parts
from ui.context import Context
from ui.frame import page
from ui.layers import Reading


def body(context: Context) -> None:
    t = context.t
    if context.engine.info.layers == 0:
        st.info(t.fault(Fault("toy_no_layers")))
        return
    if context.view is None:
        return
    reading = Reading(context)
    parts.safely(t, [lambda: parts.show_map(reading)])
    left, right = st.columns(2, gap="medium")
    with left:
        parts.safely(t, [lambda: parts.show_way(reading)])
    with right:
        parts.safely(t, [lambda: parts.show_stream(reading)])
    parts.show_layer_picker(reading)
    parts.safely(t, [lambda: parts.show_neurons(reading), lambda: parts.show_walk(reading)])


page("layers", body)
