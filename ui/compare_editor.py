"""The cards of the Compare page: one a column, with its preset, its settings and its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import streamlit as st

from core.decode.columns import PRESETS, spell
from ui import state
from ui.compare_fields import REFUSED, column_at, fields, model_title
from ui.compare_setup import Setup, Slot, put, swap, texts
from ui.figures.compare_words import LETTERS, name, preset_of
from ui.i18n import Catalog, plain
from ui.view import COLUMNS_CAP
from ui.widgets import show

LOOKS: Final = Path(__file__).resolve().parent / "components" / "css" / "compare_page.css"
OWN: Final = "own"
"""The preset of a column that is none of the ready ones."""


def editor(setup: Setup, t: Catalog) -> None:
    """Draw the cards."""
    st.html(LOOKS)
    with st.container(key="compare_cards"):
        for index, slot in enumerate(setup.slots):
            with st.container(key=f"compare_card_{index}", border=True, gap="xsmall"):
                _card(setup, index, slot, t)


def more(setup: Setup, t: Catalog) -> None:
    """The buttons for one more column, and for the first set."""
    st.button(
        t("compare.add"),
        key="compare_add",
        on_click=_add,
        icon=":material/add:",
        disabled=len(setup.slots) >= COLUMNS_CAP,
        help=t("compare.add_help", most=COLUMNS_CAP),
    )
    if state.place().view.columns:
        st.button(
            t("compare.reset"),
            key="compare_reset",
            on_click=lambda: state.look(columns=(), reference=0, sample=0),
            icon=":material/restart_alt:",
            help=t("compare.reset_help"),
        )


def _card(setup: Setup, index: int, slot: Slot, t: Catalog) -> None:
    letter = LETTERS[index]
    preset = preset_of(slot.column) if slot.column else None
    own = setup.name(index, t)
    st.selectbox(
        t("compare.strategy_of", letter=letter),
        [*PRESETS, *([] if preset else [OWN])],
        key=show(f"c{index}_preset", preset or OWN),
        format_func=lambda id: _preset_title(str(id), own, t),
        on_change=lambda: _take(index),
    )
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        with st.popover(t("compare.settings"), icon=":material/tune:", key=f"c{index}_settings"):
            fields(index, slot, t)
        with st.popover(t("compare.more"), icon=":material/more_horiz:", key=f"c{index}_menu"):
            _menu(index, len(setup.slots), t)
    refused = st.session_state.get(REFUSED, {}).get((index, slot.text))
    if slot.fault or refused:
        st.error(t.fault(slot.fault or refused))
    if slot.column and slot.column.model:
        st.caption(t("compare.with_model", model=plain(model_title(slot.column.model, t))))


def _preset_title(id: str, own: str, t: Catalog) -> str:
    return t("compare.own", name=own) if id not in PRESETS else name(PRESETS[id], t)


def _take(index: int) -> None:
    id = st.session_state[f"c{index}_preset"]
    if id in PRESETS:
        model = column_at(index).model
        swap(index, replace(PRESETS[id], model=model))


# ---------------------------------------------------------------- the place of a column


def _add() -> None:
    """One more: the first preset that is not there yet."""
    here = texts()
    fresh = next((spell(p) for p in PRESETS.values() if spell(p) not in here), "sample")
    put([*here, fresh])


def _menu(index: int, count: int, t: Catalog) -> None:
    def duplicate() -> None:
        found = texts()
        put([*found[: index + 1], found[index], *found[index + 1 :]])

    def remove() -> None:
        found = texts()
        at = state.place().view.reference
        put([*found[:index], *found[index + 1 :]], reference=at - (index < at))

    _move(index, -1, count, t)
    _move(index, 1, count, t)
    st.button(
        t("compare.duplicate"),
        key=f"c{index}_twin",
        on_click=duplicate,
        disabled=count >= COLUMNS_CAP,
        icon=":material/content_copy:",
        width="stretch",
    )
    st.button(
        t("compare.make_reference"),
        key=f"c{index}_reference",
        on_click=lambda: state.look(reference=index),
        disabled=state.place().view.reference == index,
        icon=":material/flag:",
        width="stretch",
    )
    st.button(
        t("compare.remove"),
        key=f"c{index}_remove",
        on_click=remove,
        disabled=count <= 1,
        icon=":material/delete:",
        width="stretch",
    )


def _move(index: int, way: int, count: int, t: Catalog) -> None:
    def move() -> None:
        found, at = texts(), state.place().view.reference
        other = index + way
        found[index], found[other] = found[other], found[index]
        put(found, reference={index: other, other: index}.get(at, at))

    side = "earlier" if way < 0 else "later"
    st.button(
        t(f"compare.{side}"),
        key=f"c{index}_{side}",
        on_click=move,
        disabled=not 0 <= index + way < count,
        icon=":material/arrow_back:" if way < 0 else ":material/arrow_forward:",
        width="stretch",
    )
