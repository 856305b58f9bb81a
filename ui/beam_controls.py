"""The controls of the Beam search page. Each shows the reader's place and reports its change."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
import streamlit as st

from core.engine.toy_classics import CLASSICS, limit_of
from core.engine.toy_table import ToyTable
from ui import state
from ui.beam_table import LESSONS, outcomes, packed, pretty
from ui.figures.beam_words import lesson_sentence
from ui.i18n import Catalog
from ui.view import TABLE_CAP
from ui.widgets import show

SOURCES: Final = ("model", *CLASSICS, "own")
TYPED: Final = 20_000
"""Characters of a table that the editor takes."""
NONE: Final = (-1, -1)
FRESH: Final = "beam_fresh"
"""Set when the next search is to be run, not judged again."""
_BEFORE: Final = "beam_before"
"""The output limit, from before a classic brought its own."""


def picker(t: Catalog) -> None:
    """The model, one of the classics, or a table of one's own."""
    table = state.place().view.table
    here = table if table in CLASSICS else "own" if table else "model"

    def changed() -> None:
        choose(st.session_state["beam_source"] or here)

    st.pills(
        t("beam_search.source"),
        SOURCES,
        key=show("beam_source", here),
        format_func=lambda id: t(f"beam_search.source_{id}") if id in SOURCES else str(id),
        help=t("beam_search.source_help"),
        on_change=changed,
    )


def choose(source: str) -> None:
    """Go to a source: a classic brings the settings of its lesson."""
    place = state.place()
    was = place.view.table
    if source == "model":
        before = st.session_state.pop(_BEFORE, None)
        if was and before is not None:
            state.ask(max_new=before)
            st.session_state["whole_page"] = True
        state.look(table="", node=NONE)
    elif source in LESSONS:
        if not was:
            st.session_state[_BEFORE] = place.spec.settings.max_new
        state.ask(max_new=limit_of(source))
        start = LESSONS[source].start
        state.look(table=source, node=NONE, nbest=0, kind="", **start)
        st.session_state["whole_page"] = True
    elif source == "own":
        kept = st.session_state.get("beam_own")
        edit(kept or (was if was in CLASSICS else CLASSICS[0]))


def edit(table: str) -> None:
    """Open the editor on a table."""
    state.look(table=packed(pretty(table)), node=NONE)


def editor(t: Catalog) -> None:
    """The reader's own table as text; a fault in it is said where the search would stand."""
    table = state.place().view.table

    def changed() -> None:
        text = packed(st.session_state["beam_text"])
        st.session_state["beam_own"] = text
        state.look(table=text or CLASSICS[0], node=NONE)

    # Not said in every run: that would wipe out what is being typed.
    if packed(st.session_state.get("beam_text", "")) != table:
        st.session_state["beam_text"] = pretty(table)
    st.text_area(
        t("beam_search.editor_label"),
        key="beam_text",
        help=t("beam_search.editor_help"),
        height=240,
        max_chars=TYPED,
        on_change=changed,
    )
    if len(table) > TABLE_CAP:
        st.caption(t("beam_search.editor_long", n=f"{len(table):,}", cap=f"{TABLE_CAP:,}"))


def table_view(table: ToyTable, t: Catalog) -> pd.DataFrame:
    """The table as people read it: a row for each history, a column for each word."""
    names = {"": t("beam_search.editor_start"), "*": t("beam_search.editor_else")}
    rows = [np.exp(row) for row in table.logits.values()]
    frame = pd.DataFrame(rows, columns=list(table.vocab))
    after = t("beam_search.editor_after")
    while after in table.vocab:
        after += ":"
    frame.insert(0, after, [names.get(history, history) for history in table.logits])
    return frame


def lesson(name: str, vocabulary: Any, t: Catalog) -> None:
    """What a classic teaches: the sentence, and the searches that it compares."""
    found, about = outcomes(name), LESSONS[name]
    with st.container(border=True):
        st.markdown(
            f"**{t('beam_search.lesson_title')}** {lesson_sentence(name, found, vocabulary, t)}"
        )
        with st.container(horizontal=True):
            for value in about.values:
                setting = outcome_name(about.field, value, t)
                now = getattr(state.place().view, about.field) == value
                st.button(
                    t("beam_search.lesson_show", setting=setting),
                    key=f"lesson_{about.field}_{value}",
                    on_click=show_outcome,
                    args=({**about.start, about.field: value},),
                    type="primary" if now else "secondary",
                )


def show_outcome(asked: dict[str, Any]) -> None:
    """Go to one of a lesson's searches, and really run it: a table answers at once."""
    state.look(**asked, nbest=0, node=NONE, kind="")
    st.session_state[FRESH] = True


def outcome_name(field: str, value: object, t: Catalog) -> str:
    """A setting of a lesson, for people."""
    if field == "rule":
        return t(f"beam_search.outcome_rule_{value}")
    return t(f"beam_search.outcome_{field}", value=f"{value:g}")
