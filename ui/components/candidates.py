"""The candidates of a step: the draw as a bar, and the table in which any token can be forced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ui.components.bundle import component

_CANDIDATES = component(
    "candidates",
    js=("dom", "walk", "candidates_table", "candidates_bar", "candidates_dice", "candidates"),
    css=("base", "act", "candidates"),
)


def candidates(data: Mapping[str, Any], on_action: Callable[[], None], *, key: str) -> None:
    """Draw ``data``, made by :func:`ui.figures.candidates.candidates_data`.

    A click on a token sets the trigger "action" of ``key`` and calls ``on_action``.
    """
    _CANDIDATES(key=key, data=dict(data), on_action_change=on_action)
