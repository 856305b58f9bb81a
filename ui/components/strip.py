"""The shared text and the player, mounted at the top of every page."""

from __future__ import annotations

import streamlit as st

from ui.components.bundle import component
from ui.context import Context
from ui.figures.strip import strip_data

_STRIP = component(
    "strip",
    js=("dom", "ramp", "chips", "player", "walk", "strip_text", "strip_controls", "strip"),
    css=("base", "scale", "strip"),
)


def strip(context: Context, *, key: str) -> None:
    """Draw the run of ``context``; each click sets the trigger "action" of ``key``.

    Each event carries a serial number that goes back with the answer: the player then knows
    which data answers it, even where nothing changed.
    """
    run = context.generation
    tokens = context.vocabulary.tokens(run.ids, len(run.prompt))
    data = strip_data(run, tokens, context.view.index if context.view else -1, context.t)
    event = (st.session_state.get(key) or {}).get("action")
    serial = event.get("serial") if isinstance(event, dict) else None
    _STRIP(key=key, data={**data, "ack": serial}, on_action_change=context.act(key))
