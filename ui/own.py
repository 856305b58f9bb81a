"""The "type your own" mode of the Probabilities page: its fields, presets and sentences.

What is typed lives in the place's ``own``, and so in the address bar; the widgets only show it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, get_args

import streamlit as st

from core.faults import Fault
from core.settings import MAX_SEED, STAGE_NAMES, Settings
from ui import state
from ui.i18n import Catalog
from ui.typed import Kind, Typed, can_rescale, pack, parse, rescaled, unpack
from ui.view import TEXT_CAP
from ui.widgets import picked

_OFF: Final[dict[str, Any]] = {name: getattr(Settings(), name) for name in STAGE_NAMES}


@dataclass(frozen=True)
class Preset:
    """A classroom example: the numbers are in the catalogue, the settings here."""

    kind: Kind
    settings: dict[str, Any]


PRESETS: Final = {
    "peaked": Preset("probabilities", {"top_p": 0.9}),
    "flat": Preset("probabilities", {"top_p": 0.9}),
    "humps": Preset("probabilities", {"min_p": 0.5}),
    "ties": Preset("probabilities", {"top_k": 1}),
    "exact": Preset("probabilities", {"top_p": 0.8}),
    "order": Preset("logits", {"temperature": 2.0, "top_p": 0.6}),
}


def mode(t: Catalog) -> bool:
    """The switch between the model's step and typed numbers; whether the latter are wanted."""
    st.session_state["own_mode"] = "own" if state.place().view.own else "model"

    def switched() -> None:
        wanted = st.session_state["own_mode"] == "own"
        last = st.session_state.get("own_last") or _preset_text("peaked", t)
        state.look(own=last if wanted else "")

    st.segmented_control(
        t("probabilities.mode"),
        ["model", "own"],
        format_func=lambda id: t(f"probabilities.mode_{id}") if id in ("model", "own") else str(id),
        key="own_mode",
        required=True,
        on_change=switched,
        label_visibility="collapsed",
    )
    return bool(state.place().view.own)


def fields(t: Catalog) -> Typed | None:
    """The fields, and what they say; ``None`` (and a sentence) while it cannot be read."""
    own = state.place().view.own
    st.session_state["own_last"] = own
    kind, text = unpack(own)
    st.session_state.update(own_kind=kind, own_text=text, own_preset=_preset_of(own, t))
    st.pills(
        t("probabilities.own_presets"),
        list(PRESETS),
        format_func=lambda id: t(f"probabilities.preset_{id}") if id in PRESETS else str(id),
        key="own_preset",
        on_change=lambda: _take(picked("own_preset", PRESETS, None), t),
    )
    if st.session_state["own_preset"]:
        st.info(t(f"probabilities.preset_{st.session_state['own_preset']}_note"))
    _editor(t, kind)
    try:
        return parse(kind, text)
    except Fault as fault:
        st.error(t.fault(fault))
        if can_rescale(kind, text):
            st.button(
                t("probabilities.own_rescale"),
                key="own_rescale",
                on_click=lambda: state.look(own=pack(kind, rescaled(text))),
            )
        return None


def resting(t: Catalog) -> None:
    """Says which stages have no text to look at, where any of them is on."""
    names = [t(f"probabilities.{name}_term") for name in state.place().spec.settings.processors]
    if names:
        st.caption(t("probabilities.own_no_text", names=" · ".join(names)))


def _editor(t: Catalog, kind: Kind) -> None:
    def typed() -> None:
        state.look(own=pack(picked("own_kind", get_args(Kind), kind), st.session_state["own_text"]))

    st.text_area(
        t("probabilities.own_text"),
        key="own_text",
        help=t("probabilities.own_help"),
        height=90,
        on_change=typed,
    )
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    left.segmented_control(
        t("probabilities.own_kind"),
        list(get_args(Kind)),
        format_func=lambda id: t(f"probabilities.own_{id}") if id in get_args(Kind) else str(id),
        key="own_kind",
        required=True,
        on_change=typed,
    )
    right.button(
        t("probabilities.own_dice"),
        key="own_dice",
        help=t("probabilities.own_dice_help"),
        on_click=_throw,
        icon=":material/casino:",
    )
    if len(state.place().view.own) > TEXT_CAP:
        st.caption(t("probabilities.own_long", n=TEXT_CAP - 2))


def _preset_text(name: str, t: Catalog) -> str:
    return pack(PRESETS[name].kind, t(f"probabilities.preset_{name}_text"))


def _preset_of(own: str, t: Catalog) -> str | None:
    return next((name for name in PRESETS if _preset_text(name, t) == own), None)


def _take(name: str | None, t: Catalog) -> None:
    if name not in PRESETS:
        return
    state.look(own=_preset_text(name, t))
    state.ask(**{**_OFF, "order": STAGE_NAMES, "strategy": "sample", **PRESETS[name].settings})
    st.session_state["whole_page"] = True


def _throw() -> None:
    state.ask(seed=(state.place().spec.settings.seed + 1) % (MAX_SEED + 1))
    st.session_state["whole_page"] = True
