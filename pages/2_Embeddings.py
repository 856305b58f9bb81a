"""Embeddings: tokens become vectors, and their order gets in."""

from __future__ import annotations

import streamlit as st

from ui.context import Context
from ui.embeddings import lookup, reading, sums
from ui.frame import page
from ui.positions import order, positions


def body(context: Context) -> None:
    found = reading(context)
    if found is None:
        st.info(context.t("embeddings.no_vectors"))
        return
    lookup(found)
    if context.recorded:
        return  # what is below asks the model itself, and the look-up says so
    sums(found)
    positions(found)
    order(found)


page("embeddings", body)
