"""The neurons of a layer, drawn as a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ui.components.bundle import component

_NEURONS = component("neurons", js=("dom", "neurons"), css=("base", "neurons"))


def neurons(data: Mapping[str, Any], *, key: str) -> None:
    """Draw ``data``, made by :func:`ui.figures.layers_tables.neurons_data`."""
    _NEURONS(key=key, data=dict(data))
