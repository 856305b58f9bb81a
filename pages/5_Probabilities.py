"""From the scores of one step to a choice; or the same with numbers typed by hand."""

import streamlit as st

from ui import own, state
from ui.chance import Throw, chance, dice, of_step
from ui.components.stages import stages
from ui.context import Context
from ui.figures.stages import MOST_ROWS, Scene, csv_of, probability_columns, stages_table
from ui.frame import page
from ui.i18n import Catalog


def body(context: Context) -> None:
    t, step = context.t, context.view
    if own.mode(t):
        typed(t)
    elif step:
        scene = Scene.of(context.spec.settings, step, context.vocabulary.label)
        stages(scene, t, context.vocabulary, context.spec.model, context.act, key="stages")
        dice(of_step(context, step), t)
        table(scene, t)


def meanwhile(t: Catalog) -> None:
    """Typed numbers need no model."""
    if own.mode(t):
        typed(t)


def typed(t: Catalog) -> None:
    numbers = own.fields(t)
    if numbers:
        own.resting(t)
        scene = Scene.by_hand(state.place().spec.settings, numbers)
        stages(scene, t, None, "", state.listener, key="stages")
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
    chance(Throw(scene.choice, scene.settings, scene.step, scene.label), t)


page("probabilities", body, meanwhile=meanwhile)
