"""The columns of a comparison, token by token, while they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ui.components.bundle import component

_COLUMNS = component(
    "columns",
    js=("dom", "ramp", "columns_cells", "columns_panel", "columns"),
    css=("base", "scale", "columns"),
)


def columns(data: Mapping[str, Any], on_action: Callable[[], None], *, key: str) -> None:
    """Draw ``data``, made by :func:`ui.figures.compare_rows.rows_data`.

    A click sets the trigger "action" of ``key``: ``{do: "open", column, step}`` or
    ``{do: "sample", sample}``.
    """
    _COLUMNS(key=key, data=dict(data), on_action_change=on_action)


_FIGURES = component(
    "compare_figures",
    js=("dom", "columns_cells", "columns_panel", "compare_figures"),
    css=("base", "scale", "columns", "compare_figures"),
)


def figures_table(data: Mapping[str, Any], *, key: str) -> None:
    """Draw ``data``, made by :func:`ui.figures.compare_figures.figures_data`."""
    _FIGURES(key=key, data=dict(data))
