"""One parameter over a range: as many texts, a chart of what changes, and a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import streamlit as st

from core.compare_records import Column, Comparison, Figures, Question
from core.decode.figures import figures
from core.decode.sweep import (
    BEAMS,
    MOST,
    RANGES,
    Sweep,
    fits,
    parse_sweep,
    spell_sweep,
    sweep_columns,
)
from core.faults import Fault
from core.tokens import Vocabulary
from ui import compare_run as run
from ui import state
from ui.compare_setup import Setup
from ui.figures.compare_rows import chosen
from ui.figures.compare_sweep import Row, Shown, setting_title, sweep_chart, sweep_table
from ui.figures.compare_words import LETTERS, fault_text
from ui.i18n import Catalog
from ui.jobs import Look
from ui.widgets import NO_VALUE, picked, show

NAME: Final = "sweep"
USUAL: Final = "temperature"
_AT: Final = "compare_sweep_at"
PLAIN: Final = {"displayModeBar": False}


def sweep(found: Setup, t: Catalog) -> None:
    """Draw the section; it computes once it is asked for, and then with every change."""
    st.markdown(f"## {t('compare.sweep')}")
    st.caption(t("compare.sweep_text"))
    text = state.place().view.sweep
    base, asked = _read(text, found)
    if text and asked is None:
        st.error(_complaint(text, t))
    varied, column = asked or parse_sweep(USUAL), found.slots[base].column
    _controls(found, base, varied, bool(text), t)
    if column is not None and not fits(column.settings, varied.name):
        st.caption(_instead(base, varied, t))
    if not text or asked is None or column is None or found.question is None:
        return
    try:
        columns = sweep_columns(column, asked)
    except Fault as fault:
        st.error(t.fault(fault))
        return
    question = replace(found.question, columns=columns)
    _answer(replace(found, question=question), column, asked, t)


def _read(text: str, found: Setup) -> tuple[int, Sweep | None]:
    """(column that is varied, the sweep) of ``temperature:0:2:9@1``."""
    said, _, at = text.partition("@")
    try:
        asked = parse_sweep(said) if said else None
    except Fault:
        asked = None
    if at.isdecimal() and len(at) < 4 and int(at) < len(found.slots):
        return int(at), asked
    return _usual_base(found, asked.name if asked else USUAL), asked


def _usual_base(found: Setup, name: str) -> int:
    """The first column that has what is varied; the first of all where none has."""
    columns = enumerate(slot.column for slot in found.slots)
    return next((i for i, c in columns if c is not None and fits(c.settings, name)), 0)


def _instead(base: int, asked: Sweep, t: Catalog) -> str:
    """What is varied in place of a column that lacks the parameter."""
    kind = "beam" if asked.name in BEAMS else "sample"
    name = setting_title(asked.name, t)
    return t(f"compare.sweep_instead_{kind}", column=LETTERS[base], parameter=name)


def _complaint(text: str, t: Catalog) -> str:
    try:
        parse_sweep(text.partition("@")[0])
    except Fault as fault:
        return t.fault(fault)
    return ""


def _tell(base: int, asked: Sweep, found: Setup) -> None:
    usual = base == _usual_base(found, asked.name)
    state.look(sweep=spell_sweep(asked) if usual else f"{spell_sweep(asked)}@{base}")


# ---------------------------------------------------------------- controls


def _controls(found: Setup, base: int, asked: Sweep, on: bool, t: Catalog) -> None:
    keys = ("compare_sweep_name", "compare_sweep_base", "compare_sweep_low",
            "compare_sweep_high", "compare_sweep_count")  # fmt: skip
    places = len(found.slots)

    def changed(*, fresh: bool = False, start: bool = False) -> None:
        name, at = picked(keys[0], RANGES, asked.name), picked(keys[1], range(places), base)
        low, high, count = (st.session_state[key] for key in keys[2:])
        try:
            new = parse_sweep(name) if fresh else Sweep(name, low, high, count)
            column = found.slots[at].column
            if fresh and (column is None or not fits(column.settings, name)):
                at = _usual_base(found, name)
            if start or (at, new) != (base, asked):  # a new label alone asks for nothing
                _tell(at, new, found)
            st.session_state.pop("compare_sweep_refused", None)
        except Fault as fault:
            st.session_state["compare_sweep_refused"] = fault

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.selectbox(
            t("compare.sweep_name"),
            list(RANGES),
            key=show(keys[0], asked.name),
            format_func=lambda id: setting_title(id, t) if id in RANGES else str(id),
            on_change=lambda: changed(fresh=True),
            width=210,
        )
        st.selectbox(
            t("compare.sweep_base"),
            list(range(places)),
            key=show(keys[1], base),
            format_func=lambda i: f"{LETTERS[i]} · {found.name(i, t)}",
            help=t("compare.sweep_base_help"),
            on_change=changed,
            width=240,
        )
        step = 1.0 if RANGES[asked.name].whole else 0.1
        for place, end, value in ((2, "low", asked.low), (3, "high", asked.high)):
            st.number_input(
                t(f"compare.sweep_{end}"),
                key=show(keys[place], float(value)),
                step=step,
                on_change=changed,
                width=120,
            )
        st.number_input(
            t("compare.sweep_count"),
            2,
            MOST,
            key=show(keys[4], asked.count),
            on_change=changed,
            width=120,
        )
        _switch(on, lambda: changed(start=True), t)
    refused = st.session_state.get("compare_sweep_refused")
    if refused is not None:
        st.error(t.fault(refused))


def _switch(on: bool, start: Callable[[], None], t: Catalog) -> None:
    if on:
        st.button(
            t("compare.sweep_off"),
            key="compare_sweep_off",
            on_click=lambda: state.look(sweep=""),
        )
        return
    st.button(
        t("compare.sweep_on"),
        key="compare_sweep_on",
        icon=":material/play_arrow:",
        on_click=start,
    )


# ---------------------------------------------------------------- results


def _answer(found: Setup, column: Column, asked: Sweep, t: Catalog) -> None:
    now = run.look(found, name=NAME, patient=True)
    if now is None:
        question = found.question
        assert question is not None
        values, most = len(question.columns), f"{found.rows(question):,}"
        st.info(t("compare.sweep_cost", n=values, texts=question.samples, rows=most))
        st.button(
            t("compare.run"),
            key="compare_sweep_run",
            icon=":material/play_arrow:",
            type="primary",
            on_click=run.want,
            args=(found.key, NAME),
        )
        return
    every = run.REFRESH if now.running else None
    st.fragment(_drawn, run_every=every)(found, column, asked, t, now.running)


def _drawn(found: Setup, column: Column, asked: Sweep, t: Catalog, running: bool) -> None:
    now = run.look(found, name=NAME)
    if now is None or (running and not now.running):
        st.rerun(scope="app")
    if now.fault is not None:
        st.error(t.fault(now.fault))
        return
    if now.running:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            share, ended, texts = run.progress(now.value)
            steps = now.value.steps if now.value else 0
            st.progress(share, text=t("compare.running", steps=steps, ended=ended, texts=texts))
            st.button(
                t("compare.stop_button"),
                key="compare_sweep_stop",
                icon=":material/stop:",
                on_click=run.stop,
                args=(found.key, NAME),
            )
        return
    question = found.question
    if now.value is None or question is None:
        return
    engine = found.engines.get(column.model or question.model)
    if engine is None or isinstance(engine, Fault):
        st.error(t.fault(engine or Fault("model_of_column", name=column.model or question.model)))
        return
    rows = _rows(question, now, asked, engine.vocabulary, t)
    _show(Shown(asked.name, tuple(rows)), asked, t)


def _rows(
    question: Question, now: Look[Comparison], asked: Sweep, vocabulary: Vocabulary, t: Catalog
) -> list[Row]:
    assert now.value is not None
    sample = min(state.place().view.sample, question.samples - 1)
    out = []
    for value, written in zip(asked.values, now.value.columns, strict=True):
        text = chosen(written, sample)
        numbers: Figures | None = figures(written, vocabulary) if text and text.choices else None
        plain = vocabulary.text(text.ids, skip_special=True) if text else ""
        if written.fault:
            plain = fault_text(written.fault, t)
        out.append(Row(value, plain, numbers))
    return out


def _show(shown: Shown, asked: Sweep, t: Catalog) -> None:
    values = [row.value for row in shown.rows]
    picked: Any = st.session_state.get(_AT)
    at = picked if picked in values else values[len(values) // 2]
    left, right = st.columns([3, 2], gap="medium")
    with right:
        st.select_slider(
            t("compare.sweep_at", name=setting_title(asked.name, t)),
            values,
            key=show(f"{_AT}_w", at),
            format_func=lambda v: f"{v:g}",
            on_change=lambda: st.session_state.update({_AT: picked(f"{_AT}_w", values, at)}),
        )
        row = shown.rows[values.index(at)]
        st.code(row.text or t("compare.rows_empty"), language=None, wrap_lines=True)
        st.caption(_numbers(row, t))
    with left:
        figure = sweep_chart(shown, values.index(at), t)
        alt = t("compare.sweep_alt", n=len(values), name=setting_title(asked.name, t))
        st.plotly_chart(
            figure,
            key="compare_sweep_chart",
            config=PLAIN,
            alt=alt,
            on_select=_pick,
            selection_mode="points",
        )
    with st.expander(t("compare.sweep_table"), icon=":material/table:"):
        st.dataframe(sweep_table(shown, t), hide_index=True, placeholder=NO_VALUE)


def _pick() -> None:
    """A click on a point shows its text; a second click on the same point keeps it."""
    chosen_points = st.session_state["compare_sweep_chart"]["selection"]["points"]
    if chosen_points:
        st.session_state[_AT] = chosen_points[0]["x"]


def _numbers(row: Row, t: Catalog) -> str:
    if row.figures is None:
        return ""
    perplexity, again = row.figures.perplexity, row.figures.repeated_4grams
    return t(
        "compare.sweep_numbers",
        perplexity="–" if perplexity is None else f"{perplexity:.2f}",
        repeated="–" if again is None else f"{100 * again:.1f} %",
        tokens=row.figures.tokens,
    )
