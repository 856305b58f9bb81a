"""The settings of a beam search: width, penalty, rule, how many texts, and the kind of search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import streamlit as st

from core.settings import BEAM_KINDS, STOP_RULES
from ui import beam_ends, link, state
from ui.beam_controls import NONE
from ui.beam_source import MOST_BEAMS
from ui.i18n import Catalog
from ui.view import View
from ui.widgets import show

NUMBER: Final = 150
"""Pixels of a field for a number: all of them in one row of a wide page."""


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


def _look(key: str, field: str, convert: Callable[[Any], Any], **also: Any) -> Callable[[], None]:
    def changed() -> None:
        state.look(**{field: convert(st.session_state[key]), **also})

    return changed
