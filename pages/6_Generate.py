"""Generate: the autoregressive loop, one token at a time."""

from __future__ import annotations

import streamlit as st

from core.trace import StepTrace
from ui.branches_panel import branches_panel
from ui.chance import chance, of_step
from ui.components.candidates import candidates
from ui.context import Context
from ui.figures.candidates import candidates_data
from ui.figures.charts import per_step
from ui.figures.generate import chain_latex, chain_table, run_figures, steps_table, stop_sentence
from ui.frame import page


def body(context: Context) -> None:
    step, run, t = context.view, context.generation, context.t
    if step is None:
        return
    labels = [context.vocabulary.label(made.choice.id) for made in run.steps]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        data = candidates_data(step, context.spec.settings, context.vocabulary, t)
        candidates(data, context.act("candidates"), key="candidates")
        chance(of_step(context, step), t)
    with right:
        st.markdown(f"## {t('generate.text')}", help=t("generate.text_help"))
        st.code(context.vocabulary.text(run.ids, skip_special=True), language=None, wrap_lines=True)
        st.text(stop_sentence(run, labels[-1], t))
        _figures(context, step)
        _steps(context, step, labels)
    branches_panel(context)
    st.markdown(f"## {t('generate.chain')}\n\n{t('generate.chain_text')}")
    st.latex(chain_latex(run, t))
    st.dataframe(chain_table(run, labels, t), hide_index=True)


def _figures(context: Context, step: StepTrace) -> None:
    st.markdown(f"## {context.t('generate.figures')}")
    grid = st.grid(2, min_column_width=160)
    for figure in run_figures(context.generation, step, context.t):
        with grid.cell(), st.container(gap="xxsmall"):
            st.metric(figure.name, figure.value, help=figure.help)
            st.caption(figure.note)


def _steps(context: Context, step: StepTrace, labels: list[str]) -> None:
    run, t = context.generation, context.t
    st.markdown(f"## {t('generate.chart')}")
    st.caption(t("generate.chart_text"))
    figure = per_step(run, labels, step.index, t)
    alt = t("generate.chart_alt", n=len(run.steps))
    st.plotly_chart(figure, key="per_step", config={"displayModeBar": False}, alt=alt)
    with st.expander(t("generate.chart_table")):
        st.dataframe(steps_table(run, labels, t), hide_index=True)


page("generate", body)
