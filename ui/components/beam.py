"""The tree of a beam search: step by step or whole, with a card for the node in view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from ui.components.bundle import component

_BEAM = component(
    "beam",
    js=("dom", "beam_layout", "beam_tree", "beam_card", "beam_parts", "beam"),
    css=("base", "beam"),
)


def beam(
    data: Mapping[str, Any], on_event: Callable[[Mapping[str, Any]], None], *, key: str
) -> None:
    """Draw ``data``, made by :func:`ui.figures.beam.beam_data`.

    A click calls ``on_event`` with ``{do: "node", step, place}`` (-1: none) or
    ``{do: "continue", step, place}``; its serial number goes back with the answer.
    """
    heard = f"{key}_heard"

    def on_action() -> None:
        event = (st.session_state.get(key) or {}).get("action")
        told = event if isinstance(event, Mapping) else {}
        serial = told.get("serial")
        st.session_state[heard] = serial if isinstance(serial, int) else None
        on_event(told)

    _BEAM(
        key=key,
        data={**data, "heard": st.session_state.get(heard)},
        on_action_change=on_action,
    )
