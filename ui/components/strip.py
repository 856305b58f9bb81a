"""The shared text and the player, mounted at the top of every page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from ui.components.bundle import component

_STRIP = component(
    "strip",
    js=("dom", "ramp", "chips", "player", "strip_text", "strip_controls", "strip"),
    css=("base", "strip"),
)


def strip(data: Mapping[str, Any], on_action: Callable[[], None], *, key: str = "strip") -> None:
    """Draw ``data``, made by :func:`ui.figures.strip.strip_data`.

    A click sets the trigger "action" of ``key`` and calls ``on_action``. Each event carries a
    serial number that goes back with the answer: the player then knows which data answers
    it, even where nothing changed.
    """
    event = (st.session_state.get(key) or {}).get("action")
    serial = event.get("serial") if isinstance(event, dict) else None
    _STRIP(key=key, data={**data, "ack": serial}, on_action_change=on_action)
