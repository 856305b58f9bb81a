"""RoPE in the browser: a pair of numbers of q and k turning, and what the distance makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ui.components.bundle import component
from ui.i18n import HTML_LANG, Catalog

_ROTATION = component(
    "rotation",
    js=("dom", "heat", "rotation_math", "rotation_draw", "rotation"),
    css=("base", "rotation"),
)


def rotation(
    data: Mapping[str, Any], t: Catalog, on_action: Callable[[], None], *, key: str
) -> None:
    """Draw ``data`` of :func:`ui.figures.rotation.rotation_data`.

    A choice asks ``{do: "look", layer?, head?, at?, key?, pair?}``.
    """
    words = {"lang": HTML_LANG[t.lang], "strings": t.area("embeddings")}
    _ROTATION(key=key, data={**data, **words}, on_action_change=on_action)
