"""Tokens: the text as the model reads it, and how the tokenizer cut it."""

import streamlit as st

from core.bpe import Cutting, cut
from core.faults import Fault
from ui import state, tokenizers
from ui.compare_tokenizers import compare_tokenizers
from ui.components.merges import merges
from ui.components.tokens import tokens
from ui.context import Context
from ui.figures.tokens import tokens_data, tokens_table
from ui.figures.tokens_merges import chosen_word, merges_data
from ui.frame import page


def body(context: Context) -> None:
    t, run, vocabulary = context.t, context.generation, context.vocabulary
    made = vocabulary.tokens(run.ids, len(run.prompt))
    at = min(state.place().view.at, len(made) - 1)
    cutting = _cutting(context)
    tokens(tokens_data(run, made, vocabulary, _selected(at, cutting), t), key="tokens")
    with st.expander(t("tokens.table"), icon=":material/table:"):
        st.dataframe(tokens_table(made, t), hide_index=True)
    st.markdown(f"## {t('tokens.merges_title')}\n\n{t('tokens.merges_intro')}")
    if isinstance(cutting, Fault):
        st.info(t.fault(cutting))
    else:
        rules = tokenizers.rules(context.spec.model, vocabulary)
        merges(merges_data(cutting, rules, vocabulary, at, t), key="merges")
    compare_tokenizers(context)


def _cutting(context: Context) -> Cutting | Fault:
    """How the prompt was cut, or why that cannot be told."""
    spec = context.spec
    try:
        return cut(context.vocabulary, spec.prompt, chat=spec.chat, literal=spec.literal)
    except Fault as fault:
        return fault


def _selected(at: int, cutting: Cutting | Fault) -> int:
    """The token whose card is shown; where the reader has chosen none, the example's first."""
    if at >= 0 or isinstance(cutting, Fault):
        return max(at, 0)
    word = chosen_word(cutting, at)
    return 0 if word is None else cutting.words[word].positions[0]


page("tokens", body)
