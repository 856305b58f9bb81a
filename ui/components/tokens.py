"""The text as chips with a card for the chosen token, and other tokenizers' beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from ui import state
from ui.components.bundle import component

_TOKENS = component("tokens", js=("dom", "walk", "tokens_card", "tokens"), css=("base", "tokens"))
_READINGS = component("readings", js=("dom", "readings"), css=("base", "readings"))


def tokens(data: Mapping[str, Any], *, key: str) -> None:
    """Draw ``data``, made by :func:`ui.figures.tokens.tokens_data`; a click chooses a token.

    The click shows at once; its serial number comes back with the data that answers it.
    """
    heard = st.session_state.get(f"{key}_heard")
    _TOKENS(key=key, data={**data, "heard": heard}, on_action_change=choose(key))


def readings(data: Mapping[str, Any], *, key: str) -> None:
    """Draw ``data``, made by :func:`ui.figures.tokens_compare.compare_data`."""
    _READINGS(key=key, data=dict(data))


def choose(key: str) -> Callable[[], None]:
    """The callback of a component whose event ``{at: position}`` chooses a token."""

    def heard() -> None:
        event = (st.session_state.get(key) or {}).get("action")
        told = event if isinstance(event, Mapping) else {}
        at, serial = told.get("at"), told.get("serial")
        st.session_state[f"{key}_heard"] = serial if isinstance(serial, int) else None
        if isinstance(at, int) and not isinstance(at, bool) and 0 <= at < 2**20:
            state.look(at=at)

    return heard
