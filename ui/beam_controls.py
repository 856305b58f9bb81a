"""The controls of the Beam search page. Each shows the reader's place and reports its change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd
import streamlit as st

from core.engine.toy_classics import CLASSICS, limit_of
from core.engine.toy_table import ToyTable
from core.settings import BEAM_KINDS, STOP_RULES
from ui import beam_ends, link, state
from ui.beam_source import MOST_BEAMS
from ui.beam_table import LESSONS, outcomes, packed, pretty
from ui.figures.beam_words import lesson_sentence
from ui.i18n import Catalog
from ui.view import TABLE_CAP, View
from ui.widgets import show

SOURCES: Final = ("model", *CLASSICS, "own")
TYPED: Final = 20_000
"""Characters of a table that the editor takes."""
NONE: Final = (-1, -1)
FRESH: Final = "beam_fresh"
"""Set when the next search is to be run, not judged again."""
NUMBER: Final = 150
"""Pixels of a field for a number: all of them in one row of a wide page."""
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


def _look(key: str, field: str, convert: Callable[[Any], Any], **also: Any) -> Callable[[], None]:
    def changed() -> None:
        state.look(**{field: convert(st.session_state[key]), **also})

    return changed


def settings(t: Catalog) -> None:
    """Width, length penalty, stopping rule, n-best, limit, and the kind of search."""
    view, own = state.place().view, state.place().spec.settings
    with st.container(key="beam_settings"):
        columns = st.columns(2, gap="medium")
        with columns[0]:
            _width(view, t)
        with columns[1]:
            _penalty(view, t)
        # A row that wraps: columns of a fixed share would cut the choices off on a laptop.
        with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            _rule(view, t)
            st.number_input(
                t("beam_search.nbest"),
                1,
                min(view.beams, MOST_BEAMS),
                value=None,
                key=show("beam_nbest", min(view.nbest, view.beams, MOST_BEAMS) or None),
                placeholder=t("beam_search.nbest_all"),
                help=t("beam_search.nbest_help"),
                on_change=_look("beam_nbest", "nbest", lambda n: n or 0),
                width=NUMBER,
            )
            st.number_input(
                t("beam_search.max_new"),
                1,
                link.STEPS_CAP,
                key=show("beam_max", own.max_new),
                help=t("beam_search.max_new_help"),
                on_change=_ask("beam_max", "max_new", lambda n: n or 1),
                width=NUMBER,
            )
            _kind(view, t)
            _of_kind(view, t)
        if not view.table:
            # A table names its own end words.
            beam_ends.field(t)


def _width(view: View, t: Catalog) -> None:
    st.slider(
        t("beam_search.width"),
        1,
        MOST_BEAMS,
        key=show("beam_width", min(view.beams, MOST_BEAMS)),
        help=t("beam_search.width_help"),
        on_change=_look("beam_width", "beams", int, node=NONE),
    )
    if view.beams > MOST_BEAMS:
        st.caption(t("beam_search.too_wide", n=view.beams, most=MOST_BEAMS))


def _penalty(view: View, t: Catalog) -> None:
    st.slider(
        t("beam_search.alpha"),
        min(-2.0, view.alpha),
        max(2.0, view.alpha),
        key=show("beam_alpha", view.alpha),
        step=0.05,
        help=t("beam_search.alpha_help"),
        on_change=_look("beam_alpha", "alpha", lambda x: round(float(x), 2)),
    )


def _rule(view: View, t: Catalog) -> None:
    st.segmented_control(
        t("beam_search.rule"),
        STOP_RULES[::-1],
        key=show("beam_rule", view.rule),
        format_func=lambda id: t(f"beam_search.rule_{id}") if id in STOP_RULES else str(id),
        help=t("beam_search.rule_help"),
        required=True,
        width="content",
        on_change=_look("beam_rule", "rule", lambda rule: rule or view.rule),
    )


def _kind(view: View, t: Catalog) -> None:
    st.segmented_control(
        t("beam_search.kind"),
        BEAM_KINDS,
        key=show("beam_kind", view.kind or "plain"),
        format_func=lambda id: t(f"beam_search.kind_{id}") if id in BEAM_KINDS else str(id),
        help=t("beam_search.kind_help"),
        required=True,
        width="content",
        on_change=_look(
            "beam_kind", "kind", lambda kind: "" if kind in (None, "plain") else kind, node=NONE
        ),
    )


def _of_kind(view: View, t: Catalog) -> None:
    own = state.place().spec.settings
    if not view.kind:
        return
    if view.kind == "diverse":
        st.number_input(
            t("beam_search.groups"),
            1,
            max(MOST_BEAMS, view.groups),
            key=show("beam_groups", view.groups),
            help=t("beam_search.groups_help"),
            on_change=_look("beam_groups", "groups", lambda n: n or 1, node=NONE),
            width=NUMBER,
        )
        st.number_input(
            t("beam_search.diversity"),
            0.0,
            100.0,
            key=show("beam_diversity", view.diversity),
            step=0.1,
            help=t("beam_search.diversity_help"),
            on_change=_look("beam_diversity", "diversity", lambda x: x or 0.0, node=NONE),
            width=NUMBER,
        )
        return
    st.number_input(
        t("beam_search.temperature"),
        0.05,
        max(10.0, own.temperature),
        key=show("beam_temperature", own.temperature or 1.0),
        step=0.05,
        help=t("beam_search.temperature_help"),
        on_change=_ask("beam_temperature", "temperature", lambda x: x or 1.0),
        width=NUMBER,
    )
    st.number_input(
        t("beam_search.seed"),
        0,
        2**53 - 1,
        key=show("beam_seed", min(own.seed, 2**53 - 1)),
        help=t("beam_search.seed_help"),
        on_change=_ask("beam_seed", "seed", lambda n: n or 0),
        width=NUMBER,
    )


def _ask(key: str, field: str, convert: Callable[[Any], Any]) -> Callable[[], None]:
    """The value belongs to the run: the sidebar shows it too."""

    def changed() -> None:
        state.ask(**{field: convert(st.session_state[key])})
        state.look(node=NONE)
        st.session_state["whole_page"] = True

    return changed
