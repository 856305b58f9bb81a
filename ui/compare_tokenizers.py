"""The Tokens page's last part: the same text through every tokenizer at hand."""

from __future__ import annotations

import streamlit as st

from core.faults import Fault
from core.models.catalog import resolve, title_of
from core.settings import RunSpec
from core.text.compare import prices, reading
from ui import state, tokenizers
from ui.components.tokens import readings
from ui.context import Context
from ui.figures.tokens_compare import (
    Row,
    compare_data,
    price_chart,
    price_table,
    sentences,
    summary,
)
from ui.i18n import Catalog, plain
from ui.widgets import NO_VALUE


def compare_tokenizers(context: Context) -> None:
    """Draw the readings, the field for another tokenizer, and the price of a language."""
    t, spec = context.t, context.spec
    st.markdown(f"## {t('tokens.compare_title')}\n\n{t('tokens.compare_intro')}")
    with st.spinner(t("tokens.opening")):
        names = tokenizers.at_hand(spec.model, state.place().view.other)
        rows = [row for name in names if (row := _row(name, spec, t)) is not None]
    readings(compare_data(rows, t), key="readings")
    _other(t)
    st.markdown(f"## {t('tokens.price_title')}\n\n{t('tokens.price_intro')}")
    alt = t("tokens.price_chart_alt", n=len(sentences()))
    chart = price_chart(rows, t)
    st.plotly_chart(chart, key="prices", config={"displayModeBar": False}, alt=alt)
    for said in summary(rows, t):
        st.text(said)
    with st.expander(t("tokens.price_table"), icon=":material/table:"):
        st.dataframe(price_table(rows, t), hide_index=True, placeholder=NO_VALUE)
        st.caption(t("tokens.price_note"))


def _row(name: str, spec: RunSpec, t: Catalog) -> Row | None:
    """``None`` for one that has to be fetched first: that is offered below."""
    title = title_of(name)
    try:
        if tokenizers.missing(name):
            return None
        vocabulary = tokenizers.vocabulary_of(name)
        made = reading(vocabulary, spec.prompt, literal=spec.literal)
    except Fault as fault:
        # (a component shows text, and no Markdown)
        return Row(title, why=t("fault." + fault.code, **fault.params))
    if resolve(name).kind == "toy":  # any word is a token to it, known or not
        return Row(title, made)
    try:
        return Row(title, made, prices(vocabulary, [sentence.text for sentence in sentences()]))
    except Fault:  # a vocabulary of a few words reads no other language
        return Row(title, made)


def _other(t: Catalog) -> None:
    name = state.place().view.other
    if state.IN_CLASS and not name:
        return  # a class neither downloads nor opens files here

    def typed() -> None:
        state.look(other=(st.session_state["w_other"] or "").strip())

    st.session_state["w_other"] = name
    st.text_input(
        t("tokens.other_label"),
        key="w_other",
        help=t("tokens.other_help"),
        placeholder="openai-community/gpt2",
        on_change=typed,
    )
    try:
        if not name or not tokenizers.missing(name):
            return
        st.info(t("tokens.other_missing", name=plain(name)))
        if st.button(t("tokens.other_fetch"), key="fetch_tokenizer"):
            tokenizers.fetch(name)
            st.rerun(scope="fragment")
    except Fault as fault:
        st.error(t.fault(fault))
