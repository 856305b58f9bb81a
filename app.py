"""Home: the whole journey of one prediction, on one screen."""

import streamlit as st

from ui.components.journey import journey
from ui.context import Context
from ui.frame import page


def body(context: Context) -> None:
    journey(context)
    read, loop, choose = st.columns([23, 44, 33])  # as wide as the stages above
    with read:
        label = context.t("tokens.from_home")
        st.page_link("pages/1_Tokens.py", label=label, icon=":material/arrow_forward:")
        label = context.t("embeddings.from_home")
        st.page_link("pages/2_Embeddings.py", label=label, icon=":material/arrow_forward:")
    with loop:
        label = context.t("attention.from_home")
        st.page_link("pages/3_Attention.py", label=label, icon=":material/arrow_forward:")
        label = context.t("layers.from_home")
        st.page_link("pages/4_Layers.py", label=label, icon=":material/arrow_forward:")
        label = context.t("home.to_generate")
        st.page_link("pages/6_Generate.py", label=label, icon=":material/arrow_forward:")
    with choose:
        label = context.t("home.to_probabilities")
        st.page_link("pages/5_Probabilities.py", label=label, icon=":material/arrow_forward:")
        label = context.t("beam_search.from_generate")
        st.page_link("pages/7_Beam_search.py", label=label, icon=":material/arrow_forward:")
        label = context.t("compare.from_home")
        st.page_link("pages/8_Compare.py", label=label, icon=":material/arrow_forward:")


page("home", body)
