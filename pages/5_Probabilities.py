"""From the scores of one step to a choice; or the same with numbers typed by hand."""

from dataclasses import replace

import streamlit as st

from core.decode import choose
from ui import own
from ui.components.stages import stages
from ui.context import Context
from ui.figures.stages import MOST_ROWS, Scene, csv_of, probability_columns, stages_table
from ui.frame import page
from ui.i18n import Catalog


def body(context: Context) -> None:
    t, spec = context.t, context.spec
    typed = own.fields(t) if (wanted := own.mode(t)) else None
    if typed:
        settings = replace(spec.settings, forced=())
        choice = choose(typed.logits, settings, step=0)
        scene = Scene(typed.logits, choice, settings, 0, typed.labels.__getitem__, typed=True)
        stages(scene, t, None, "", context.act, key="stages")
        table(scene, t)
    elif (step := context.view) and not wanted:
        label = context.vocabulary.label
        scene = Scene(step.forward.logits, step.choice, spec.settings, step.index, label)
        stages(scene, t, context.vocabulary, spec.model, context.act, key="stages")
        table(scene, t)


def table(scene: Scene, t: Catalog) -> None:
    with st.expander(t("probabilities.table"), icon=":material/table:"):
        frame = stages_table(scene, MOST_ROWS, t)
        digits = st.column_config.NumberColumn(format="%.6f")
        columns = dict.fromkeys(probability_columns(scene.choice, t), digits)
        st.dataframe(frame, hide_index=True, column_config=columns)
        st.caption(t("probabilities.table_note", n=min(MOST_ROWS, scene.logits.size)))
        st.download_button(
            t("probabilities.download"),
            csv_of(frame),
            "probabilities.csv",
            "text/csv",
            on_click="ignore",
        )


page("probabilities", body)
