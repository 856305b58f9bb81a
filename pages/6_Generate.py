"""Generate: the autoregressive loop, one token at a time."""

from __future__ import annotations

import streamlit as st

from ui.components.candidates import candidates
from ui.figures.candidates import candidates_data
from ui.figures.charts import per_step
from ui.figures.generate import chain_latex, chain_table, run_figures, steps_table, stop_sentence
from ui.frame import Context, page


def body(context: Context) -> None:
    step, run, t = context.view, context.generation, context.t
    if step is None:
        return
    labels = [context.vocabulary.label(made.choice.id) for made in run.steps]
    left, right = st.columns([3, 2], gap="large")
    with left:
        data = candidates_data(step, context.spec.settings, context.vocabulary, t)
        candidates(data, context.act("candidates"), key="candidates")
    with right:
        _text(context, labels)
        _figures(context)
        _steps(context, labels)
    _chain(context, labels)


def _text(context: Context, labels: list[str]) -> None:
    run, t = context.generation, context.t
    st.markdown(f"##### {t('generate.text')}", help=t("generate.text_help"))
    text = context.vocabulary.text(run.ids, skip_special=True)
    st.code(text, language=None, wrap_lines=True)
    st.text(stop_sentence(run, labels[-1], t))


def _figures(context: Context) -> None:
    st.markdown(f"##### {context.t('generate.figures')}")
    columns = st.columns(2)
    for place, figure in enumerate(run_figures(context.generation, context.view, context.t)):
        with columns[place % 2]:
            st.metric(figure.name, figure.value, help=figure.help)
            st.caption(figure.note)


def _chain(context: Context, labels: list[str]) -> None:
    t = context.t
    st.markdown(f"##### {t('generate.chain')}")
    st.markdown(t("generate.chain_text"))
    st.latex(chain_latex(context.generation))
    st.dataframe(chain_table(context.generation, labels, t), hide_index=True)


def _steps(context: Context, labels: list[str]) -> None:
    run, t = context.generation, context.t
    st.markdown(f"##### {t('generate.chart')}")
    st.caption(t("generate.chart_text"))
    figure = per_step(run, labels, context.view.index, t)
    st.plotly_chart(figure, key="per_step", config={"displayModeBar": False})
    with st.expander(t("generate.chart_table")):
        st.dataframe(steps_table(run, labels, t), hide_index=True)


page("generate", body)
