"""The branches of a run: the tree of its paths, and the list in which they are named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ui.components.bundle import component

_BRANCHES = component(
    "branches",
    js=("dom", "walk", "branches_tree", "branches_list", "branches"),
    css=("base", "act", "branches"),
)


def branches(data: Mapping[str, Any], on_action: Callable[[], None], *, key: str) -> None:
    """Draw ``data``, made by :func:`ui.figures.branches.branches_data`.

    A click sets the trigger "action" of ``key`` and calls ``on_action``.
    """
    _BRANCHES(key=key, data=dict(data), on_action_change=on_action)
