"""The Embeddings page but for its rotation: the look-up with its map, rankings, learned rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ui.components.bundle import component
from ui.i18n import HTML_LANG, Catalog

_EMBEDDINGS = component(
    "embeddings",
    js=("dom", "heat", "cloud", "embeddings_row", "embeddings_map", "embeddings"),
    css=("base", "embeddings"),
)
_RANKED = component("ranked", js=("dom", "ranked"), css=("base", "ranked"))
_LEARNED = component("learned", js=("dom", "heat", "learned"), css=("base", "embeddings"))


def embeddings(
    data: Mapping[str, Any], t: Catalog, on_action: Callable[[], None], *, key: str
) -> None:
    """Draw a token's row, its neighbours and the map; a click asks ``{do: "look", at}``.

    ``data`` are those of :func:`ui.figures.embeddings.lookup_data` with ``vocabulary``, ``map``,
    ``neighbours`` and the sentences ``entering`` and ``without``.
    """
    _EMBEDDINGS(key=key, data={**data, **_words(t)}, on_action_change=on_action)


def ranked(data: Mapping[str, Any], t: Catalog, *, key: str) -> None:
    """Draw rankings side by side: a headline, lists, and a sentence below."""
    _RANKED(key=key, data={**data, **_words(t)})


def learned(data: Mapping[str, Any], t: Catalog, *, key: str) -> None:
    """Draw a learned position as one vector added to another."""
    _LEARNED(key=key, data={**data, **_words(t)})


def _words(t: Catalog) -> dict[str, Any]:
    return {"lang": HTML_LANG[t.lang], "strings": t.area("embeddings")}
