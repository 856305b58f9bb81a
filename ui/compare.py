"""The body of the Compare page: cards, controls, the columns while they are written."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any, Final

import streamlit as st

from core.compare_records import Comparison, Question
from core.decode.compare import seed_of, shared_seed
from core.faults import Fault
from core.settings import BeamSettings, RunSpec, Settings
from ui import compare_run as run
from ui import state
from ui.compare_details import details
from ui.compare_editor import editor, more
from ui.compare_setup import Setup, setup, thrown, with_seed
from ui.compare_sweep import sweep
from ui.components.columns import columns
from ui.context import Context
from ui.decoding_controls import seed_of as seed_typed
from ui.figures.compare_rows import Scene, rows_data
from ui.figures.compare_words import LETTERS
from ui.i18n import Catalog
from ui.jobs import Look
from ui.view import SAMPLES_CAP
from ui.widgets import picked, show

GENERATE: Final = "pages/6_Generate.py"
_OPEN: Final = "compare_open"
_WHOLE: Final = "compare_whole"


def body(context: Context) -> None:
    """Draw the page below the strip."""
    _board(context.t)


def meanwhile(t: Catalog) -> None:
    """What can be seen and changed while there is no run."""
    found = setup(state.place().spec, state.place().view)
    editor(found, t)


def _board(t: Catalog) -> None:
    if st.session_state.pop(_OPEN, False):
        st.switch_page(GENERATE)
    st.session_state.pop(_WHOLE, None)
    found = setup(state.place().spec, state.place().view)
    editor(found, t)
    _controls(found, t)
    if found.question is None:
        st.info(t("compare.none_readable"))
        return
    if found.waiting:
        run.models_coming(found, t)
        return
    first = run.look(found, patient=True)
    if first is None:
        _ask(found, found.question, t)
        return
    every = run.REFRESH if first.running else None
    st.fragment(_results, run_every=every)(found, t, first.running)
    sweep(found, t)


# ---------------------------------------------------------------- controls


def _controls(found: Setup, t: Catalog) -> None:
    view = state.place().view
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="medium", key="compare_controls"
    ):
        _dice(found, t)
        st.number_input(
            t("compare.samples"),
            1,
            SAMPLES_CAP,
            key=show("compare_samples", view.samples),
            help=t("compare.samples_help", most=SAMPLES_CAP),
            on_change=lambda: state.look(samples=st.session_state["compare_samples"], sample=0),
            width=150,
        )
        if view.samples > 1:
            st.number_input(
                t("compare.sample"),
                1,
                view.samples,
                key=show("compare_sample", min(view.sample, view.samples - 1) + 1),
                help=t("compare.sample_help"),
                on_change=lambda: state.look(sample=st.session_state["compare_sample"] - 1),
                width=150,
            )
        count = len(found.slots)
        if count > 1:
            st.selectbox(
                t("compare.reference"),
                list(range(count)),
                key=show("compare_reference", min(view.reference, count - 1)),
                format_func=lambda i: _title(found, i, t),
                help=t("compare.reference_help"),
                on_change=lambda: state.look(
                    reference=picked("compare_reference", range(count), view.reference)
                ),
                width=260,
            )
        more(found, t)


def _title(found: Setup, index: object, t: Catalog) -> str:
    if isinstance(index, int) and 0 <= index < len(found.slots):
        return f"{LETTERS[index]} · {found.name(index, t)}"
    return str(index)


def _dice(found: Setup, t: Catalog) -> None:
    view = state.place().view
    ids = ("same", "own")
    st.segmented_control(
        t("compare.dice"),
        ids,
        key=show("compare_dice", view.dice or "same"),
        format_func=lambda id: t(f"compare.dice_{id}") if id in ids else str(id),
        help=t("compare.dice_help"),
        required=True,
        on_change=_switched,
        width="content",
    )
    shared = shared_seed([slot.column for slot in found.slots if slot.column])
    if view.dice != "own":
        if st.session_state.get("compare_seed") != str(shared):
            st.session_state["compare_seed"] = str(shared)
        st.text_input(
            t("frame.seed"),
            key="compare_seed",
            max_chars=26,
            help=t("compare.seed_shared_help"),
            on_change=_typed_seed,
            width=110,
        )
    st.button(
        t("compare.throw"),
        key="compare_throw",
        icon=":material/casino:",
        help=t("compare.throw_help"),
        on_click=_throw,
    )


def _switched() -> None:
    own = st.session_state["compare_dice"] == "own"
    state.look(dice="own" if own else "")


def _typed_seed() -> None:
    try:
        seed = seed_typed(st.session_state["compare_seed"] or "0")
        state.look(columns=tuple(with_seed(lambda _: seed)))
    except Fault:
        # The field shows the seed that holds.
        return


def _throw() -> None:
    """The next seed for every column."""
    state.look(columns=tuple(thrown()))


def _ask(found: Setup, question: Question, t: Catalog) -> None:
    """What it costs, and the button."""
    rows = found.rows(question)
    tokens = max(len(found.prompt(slot)) for slot in range(len(found.slots)))
    st.info(t("compare.cost", rows=f"{rows:,}", steps=question.max_new, tokens=f"{tokens:,}"))
    st.button(
        t("compare.run"),
        key="compare_run",
        type="primary",
        icon=":material/play_arrow:",
        on_click=run.want,
        args=(found.key,),
    )


# ---------------------------------------------------------------- results


def _results(found: Setup, t: Catalog, running: bool) -> None:
    """The columns; drawn again and again while they are written."""
    if st.session_state.pop(_WHOLE, False) or st.session_state.get(_OPEN):
        st.rerun(scope="app")
    now = run.look(found)
    if now is None or (running and not now.running):
        st.rerun(scope="app")
    if now.fault is not None:
        st.error(t.fault(now.fault))
        _run_again(found, t)
        return
    shown = run.scene(found, now, t)
    _status(found, now, t)
    if shown is not None:
        columns(rows_data(shown, t), _heard(found, shown), key="columns")
        if not now.running:
            details(found, shown, t)


def _status(found: Setup, now: Look[Comparison], t: Catalog) -> None:
    share, ended, all_texts = run.progress(now.value)
    if now.running:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            steps = now.value.steps if now.value else 0
            words = t("compare.running", steps=steps, ended=ended, texts=all_texts)
            st.progress(share, text=words)
            st.button(
                t("compare.stop_button"),
                key="compare_stop",
                icon=":material/stop:",
                on_click=_stop,
                args=(found.key,),
            )
        return
    comparison = now.value
    if comparison is not None and comparison.cancelled:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(t("compare.stopped", ended=ended, texts=all_texts))
            _run_again(found, t)


def _run_again(found: Setup, t: Catalog) -> None:
    st.button(
        t("compare.again"),
        key="compare_again",
        icon=":material/play_arrow:",
        on_click=_again,
        args=(found.key,),
    )


def _stop(key: Hashable) -> None:
    run.stop(key)
    st.session_state[_WHOLE] = True


def _again(key: Hashable) -> None:
    run.want(key)
    st.session_state[_WHOLE] = True


def _heard(found: Setup, shown: Scene) -> Callable[[], None]:
    """What a click in the component does. The browser is not trusted."""

    def on_action() -> None:
        event: Any = (st.session_state.get("columns") or {}).get("action")
        told = event if isinstance(event, Mapping) else {}
        numbers = {k: v for k, v in told.items() if isinstance(v, int) and not isinstance(v, bool)}
        if told.get("do") == "sample" and 0 <= numbers.get("sample", -1) < shown.samples:
            state.look(sample=numbers["sample"])
            st.session_state[_WHOLE] = True
        if told.get("do") == "open":
            column, step = numbers.get("column", -1), numbers.get("step", -1)
            if 0 <= column < len(shown.written) and open_on_generate(found, shown, column, step):
                st.session_state[_OPEN] = True

    return on_action


def open_on_generate(found: Setup, shown: Scene, slot: int, step: int) -> bool:
    """Make one text the run of the other pages; whether there is such a step."""
    text, place, question = shown.text(slot), found.places[slot], found.question
    if text is None or place is None or question is None or not 0 <= step < len(text.choices):
        return False
    column = question.columns[place]
    if isinstance(column.settings, BeamSettings):
        # A search looks ahead; step by step it is greedy, but for what it took otherwise.
        forced = tuple((i, c.id) for i, c in enumerate(text.choices) if c.rank != 1)
        settings = Settings(strategy="greedy", forced=forced, max_new=question.max_new)
    else:
        seed = seed_of(question, place, text.sample)
        settings = replace(column.settings, seed=seed, max_new=question.max_new)
    spec = state.place().spec
    there = RunSpec(column.model or question.model, spec.prompt, settings, spec.literal, spec.chat)
    # Another model starts without forced tokens; these are meant for it.
    state.put(state.place().ask(there).ask(there))
    state.look(made=len(text.choices), step=step)
    return True
