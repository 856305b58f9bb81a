"""The lower half of the Attention page: heads switched off, and attribution."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import streamlit as st

from core.ablation import continuation, effect, next_logits
from core.faults import Fault
from core.trace import Edit
from ui import state
from ui.attention import Scene, attributed
from ui.components.ablation import ablation, attribution
from ui.figures.attention_ablation import (
    NOTHING_OFF,
    Texts,
    attribution_data,
    edit_of,
    effect_data,
)
from ui.view import WHYS

STEPS = (8, 16, 32)
INTEGRATION = 16
"""Points of the way from zero at which integrated gradients are taken."""
_TEXTS = "attention_texts"


def switched_off(scene: Scene) -> None:
    """The effect of the heads and layers that are off, really recomputed."""
    context, t = scene.context, scene.context.t
    step = context.view
    st.markdown(f"## {t('attention.off_title')}")
    st.caption(t("attention.off_text"))
    edit = edit_of(scene.off, context.engine.info)
    # The same component before, during and after: a reader at the keyboard stays in it.
    chart = st.container()
    if step is None or edit == Edit():
        with chart:
            ablation(NOTHING_OFF, t, key="ablation")
        return
    try:
        with st.spinner(t("attention.off_busy"), show_time=True):
            after = next_logits(context.engine, scene.ids, scene.prompt_length, edit)
        found = effect(step.forward.logits, after, step.choice.id)
        texts = _texts(scene, edit)
        with chart:
            data = effect_data(found, texts, edit, context.vocabulary.label)
            ablation(data, t, key="ablation")
    except Fault as fault:
        st.warning(t.fault(fault))


def _texts(scene: Scene, edit: Edit) -> Texts | None:
    """Both continuations, made at the press of a button."""
    t, settings = scene.context.t, scene.context.spec.settings
    steps = st.session_state.get("attention_steps", STEPS[0])
    key = (scene.context.spec.model, scene.ids, scene.prompt_length, edit, settings, steps)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            t("attention.texts_steps"), STEPS, default=STEPS[0], key="attention_steps",
            required=True,
        )  # fmt: skip
        go = st.button(t("attention.texts_go"), key="attention_go", icon=":material/play_arrow:")
    kept = st.session_state.get(_TEXTS, (None, None))
    if kept[0] == key and not go:
        found: Texts = kept[1]
        return found
    if not go:
        return None
    bar = st.progress(0.0, text=t("attention.texts_busy", n=0, steps=2 * steps))
    made: list[tuple[int, ...]] = []
    for one in (Edit(), edit):
        tokens: list[int] = []
        for token in _turns(scene, one, steps):
            tokens.append(token)
            done = len(tokens) + steps * len(made)
            bar.progress(done / (2 * steps), t("attention.texts_busy", n=done, steps=2 * steps))
        made.append(tuple(tokens))
    bar.empty()
    st.session_state[_TEXTS] = (key, Texts(*made))
    return Texts(*made)


def _turns(scene: Scene, edit: Edit, steps: int) -> Iterable[int]:
    return islice(
        continuation(
            scene.context.engine,
            scene.ids,
            scene.context.spec.settings,
            prompt_length=scene.prompt_length,
            edit=edit,
            steps=steps,
        ),
        steps,
    )


def second_opinion(scene: Scene) -> None:
    """Which tokens of the text the chosen one depends on, by gradient × input."""
    context, t = scene.context, scene.context.t
    step = context.view
    st.markdown(f"## {t('attention.why_title')}")
    st.caption(t("attention.why_text"))
    names = ("", *WHYS)
    why = state.place().view.why
    chosen = st.segmented_control(
        t("attention.why_how"),
        names,
        default=why,
        key=f"attention_why_{why}",
        format_func=lambda name: t(f"attention.why_{name or 'none'}"),
        required=True,
    )
    if chosen != why:
        state.look(why=chosen)
    if step is None or not chosen:
        return
    try:
        with st.spinner(t("attention.why_busy"), show_time=True):
            count = 1 if chosen == "gradient" else INTEGRATION
            values = attributed(scene, step.choice.id, count)
    except Fault as fault:
        st.warning(t.fault(fault))
        return
    row = None if scene.map is None else scene.map[-1]
    target = context.vocabulary.label(step.choice.id)
    score = float(step.forward.logits[step.choice.id])
    data = attribution_data(values, row, scene.tokens, target, score)
    data |= {"how": chosen, "layer": scene.layer, "head": scene.head}
    attribution(data, t, key="attribution")
