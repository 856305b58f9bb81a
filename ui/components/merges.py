"""How the tokenizer got there: the cut into words, and the merges of one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ui.components.bundle import component
from ui.components.tokens import choose

_MERGES = component(
    "merges",
    js=("dom", "walk", "merges_state", "merges_parts", "merges_player", "merges"),
    css=("base", "merges"),
)


def merges(data: Mapping[str, Any], *, key: str) -> None:
    """Draw ``data``, made by :func:`ui.figures.tokens_merges.merges_data`.

    A click on a word chooses it. The merges are played in the browser alone.
    """
    _MERGES(key=key, data=dict(data), on_action_change=choose(key))
