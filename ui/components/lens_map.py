"""The map of layers × positions: one canvas, whose cells can be pointed at and opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ui.components.bundle import component

_MAP = component(
    "lens_map",
    js=("dom", "ramp", "lens_layout", "lens_panel", "lens_map"),
    css=("base", "lens_map"),
)


def lens_map(data: Mapping[str, Any], on_action: Callable[[], None], *, key: str) -> None:
    """Draw ``data``, made by :func:`ui.figures.layers.map_data`.

    A click sets the trigger "action" of ``key``: ``{do: "look", at, layer}`` or
    ``{do: "cell", cell}``.
    """
    _MAP(key=key, data=dict(data), on_action_change=on_action)
