"""The parts of the Beam search page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import streamlit as st

from core.beam_records import BeamSearch, Node
from core.cli.beams import search_record
from core.decode.ends import end_ids
from core.engine.toy_classics import CLASSICS
from core.faults import Fault, NotReady
from core.settings import BeamSettings
from ui import beam, beam_ends, beam_settings, state
from ui import beam_controls as controls
from ui.beam import Answer, Seen
from ui.beam_every import every_text
from ui.beam_source import Source, logits_after, settings_of, source_of
from ui.components.beam import beam as beam_tree
from ui.context import Context
from ui.figures import beam_words as words
from ui.figures.beam import beam_data, greedy_in
from ui.i18n import Catalog
from ui.lab_parts import wide
from ui.view import NOWHERE
from ui.widgets import NO_VALUE

REFRESH: Final = 0.5
"""Seconds between two looks at a search that is running."""
LIVE: Final = 2000
"""Candidates of a tree that is drawn again at each look."""
_CONTINUE: Final = "beam_continue"
GENERATE: Final = "pages/6_Generate.py"


def draw(t: Catalog, context: Context | None) -> None:
    """The whole page; without a run, what a table can show."""
    controls.picker(t)
    table = state.place().view.table
    if table and table not in CLASSICS:
        controls.editor(t)
    beam_settings.settings(t)
    try:
        source, settings = source_of(context), settings_of()
        if source is None:
            return
        ends = end_ids(settings, source.engine)
    except Fault as fault:
        st.error(t.fault(fault))
        return
    if st.session_state.pop(controls.FRESH, False):
        beam.run_anew(source, settings)
    ended = beam_ends.sentence(ends, source.engine, settings.max_new, t)
    st.caption(t("beam_search.sentence_join").join((ended, t("beam_search.players"))))
    if table in CLASSICS:
        controls.lesson(table, source.engine.vocabulary, t)
    try:
        _searched(source, settings, t)
    except NotReady:
        st.info(t("beam_search.model_not_ready"))
    except Fault as fault:
        st.error(t.fault(fault))
        st.button(
            t("beam_search.again"),
            key="beam_again",
            icon=":material/refresh:",
            on_click=beam.retry,
            args=(source, settings),
        )
    if source.table is not None:
        _table(source, table, t)


def _searched(source: Source, settings: BeamSettings, t: Catalog) -> None:
    if beam.must_ask(source, settings):
        n = f"{beam.most_rows(settings):,}"
        st.info(t("beam_search.ask_first", n=n, tokens=f"{len(source.prompt):,}"))
        st.button(
            t("beam_search.ask_run"),
            key="beam_ask",
            on_click=beam.want,
            args=(source, settings),
            type="primary",
            icon=":material/play_arrow:",
        )
        return
    seen = beam.look(source, settings, patient=True)
    if seen.running:
        st.fragment(_watched, run_every=REFRESH)(source, settings, t)
    else:
        _found(seen, source, settings, t)


def _watched(source: Source, settings: BeamSettings, t: Catalog) -> None:
    """A search that is running: how far it is, a button that stops it, its tree as it grows."""
    try:
        seen = beam.look(source, settings)
    except Fault:
        st.rerun(scope="app")  # where it is said
    if not seen.running:
        st.rerun(scope="app")
    with st.container(horizontal=True, vertical_alignment="center"):
        _progress(seen, settings, t)
        st.button(
            t("beam_search.stop_button"),
            key="beam_stop_button",
            icon=":material/stop:",
            on_click=beam.stop,
            args=(source, settings),
        )
    if seen.answer is not None:
        _carry_on(seen.answer.search)
        if sum(len(step.candidates) for step in seen.answer.search.steps) > LIVE:
            st.caption(t("beam_search.large"))
        else:
            _tree(seen.answer.search, seen.greedy, source, t)
    state.write_link()


def _progress(seen: Seen, settings: BeamSettings, t: Catalog) -> None:
    now = seen.making
    if now is None:
        st.progress(0.0, t("beam_search.waiting"))
        return
    alone = seen.answer is not None and seen.answer.search.stop is not None
    text = t(
        "beam_search.computing_greedy" if alone else "beam_search.computing",
        step=len(now.steps),
        steps=now.limit,
        beams=settings.width,
        rows=f"{now.forwards:,}",
    )
    st.progress(len(now.steps) / now.limit, text)


def _found(seen: Seen, source: Source, settings: BeamSettings, t: Catalog) -> None:
    """A search that has ended, or was stopped."""
    found = seen.answer
    if seen.stopped:
        _stopped(found, t)
    if found is None:
        return
    _carry_on(found.search)
    if found.verdict is not None:
        _verdict(found, source, settings, t)
    if found.search.steps:
        _tree(found.search, seen.greedy, source, t)
        twins = words.twins_sentence(found.search, t)
        if twins:
            st.caption(twins)
        _cost(found.search, seen.greedy, source, settings, t)
        _candidates(found.search, source, t)


def _stopped(found: Answer | None, t: Catalog) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        steps = len(found.search.steps) if found else 0
        st.info(t("beam_search.stopped", n=steps), width="stretch")
        st.button(
            t("beam_search.go_on"), key="beam_go_on", on_click=beam.go_on,
            icon=":material/play_arrow:",
        )  # fmt: skip


def _verdict(found: Answer, source: Source, settings: BeamSettings, t: Catalog) -> None:
    assert found.verdict is not None
    sentence = words.verdict_sentence(found.verdict, found.search, found.stored, t)
    if found.verdict != "further":
        st.info(sentence, icon=":material/check:")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.warning(sentence, width="stretch")
        st.button(
            t("beam_search.verdict_run"),
            key="beam_anew_button",
            on_click=beam.run_anew,
            args=(source, settings),
            type="primary",
        )


def node_in(search: BeamSearch) -> Node | None:
    """The candidate of the link, if the search has it."""
    step, place = state.place().view.node
    known = 0 <= step < len(search.steps) and 0 <= place < len(search.steps[step].candidates)
    return (step, place) if known else None


def _tree(search: BeamSearch, greedy: BeamSearch | None, source: Source, t: Catalog) -> None:
    node, after = node_in(search), None
    if node is not None and not search.steps[node[0]].candidates[node[1]].is_end:
        try:
            after = logits_after(source, search.tokens_at(node))
        except Fault:
            after = None  # the card says that it cannot be read now
    way = greedy_in(search, greedy) if greedy else None
    data = beam_data(
        search, way, source.engine.vocabulary, t,
        node=node, after=after, can_continue=source.table is None,
    )  # fmt: skip
    beam_tree(data, heard, key="beam")


def heard(event: Mapping[str, Any]) -> None:
    """What a click in the tree does. The browser is not trusted."""
    step, place = event.get("step"), event.get("place")
    if (
        type(step) is not int
        or type(place) is not int
        or min(step, place) < -1
        or max(step, place) >= NOWHERE
    ):
        return
    if event.get("do") == "node":
        state.look(node=(step, place) if min(step, place) >= 0 else controls.NONE)
    elif event.get("do") == "continue":
        st.session_state[_CONTINUE] = (step, place)


def _carry_on(search: BeamSearch) -> None:
    """Open Generate at a node of the tree, if that was asked for."""
    wanted = st.session_state.pop(_CONTINUE, None)
    if wanted is None or state.place().view.table:
        return
    step, place = wanted
    if 0 <= step < len(search.steps) and 0 <= place < len(search.steps[step].candidates):
        tokens = search.tokens_at(wanted)
        state.ask(forced=tuple(enumerate(tokens)))
        state.look(made=len(tokens), step=len(tokens) - 1, node=wanted)
        st.switch_page(GENERATE)


def _cost(
    search: BeamSearch,
    greedy: BeamSearch | None,
    source: Source,
    settings: BeamSettings,
    t: Catalog,
) -> None:
    vocabulary = source.engine.vocabulary
    st.markdown(f"## {t('beam_search.cost')}")
    every, sentence = None, None
    try:
        every = every_text(source, settings)
    except Fault as fault:
        sentence = t.fault(fault)
    rows = words.costs(search, greedy, every, t)
    # Units and a real minus sign make these numbers text, which stands at the left by itself.
    right = st.column_config.TextColumn(alignment="right")
    columns = {t(f"beam_search.cost_{key}"): right for key in ("ms", "sum", "score")}
    columns[t("beam_search.cost_best")] = wide()
    frame = words.cost_table(rows, vocabulary, t)
    st.dataframe(frame, hide_index=True, placeholder=NO_VALUE, column_config=columns)
    st.caption(t("beam_search.cost_note"))
    if every is not None:
        sentence = words.true_best(search, every[0], vocabulary, t)
    if sentence:
        st.info(sentence)


def _candidates(search: BeamSearch, source: Source, t: Catalog) -> None:
    with st.expander(t("beam_search.table_as"), icon=":material/table:"):
        frame = words.candidates_table(search, source.engine.vocabulary, t)
        st.dataframe(frame, hide_index=True, placeholder=NO_VALUE)
        st.caption(t("beam_search.table_note", n=len(frame), steps=len(search.steps)))
        with st.container(horizontal=True):
            st.download_button(
                t("beam_search.download_csv"),
                frame.to_csv(index=False).encode("utf-8-sig"),
                "beam_search.csv",
                "text/csv",
                on_click="ignore",
            )
            name = state.place().spec.model if source.table is None else "toy"
            record = search_record(search, name, source.engine)
            st.download_button(
                t("beam_search.download_json"),
                json.dumps(record, ensure_ascii=False, indent=1).encode(),
                "beam_search.json",
                "application/json",
                on_click="ignore",
            )


def _table(source: Source, table: str, t: Catalog) -> None:
    assert source.table is not None
    with st.expander(t("beam_search.editor"), icon=":material/table:", expanded=True):
        st.dataframe(controls.table_view(source.table, t), hide_index=True, placeholder=NO_VALUE)
        if table in CLASSICS:
            st.button(
                t("beam_search.editor_edit"),
                key="beam_edit",
                on_click=controls.edit,
                args=(table,),
                icon=":material/edit:",
            )
