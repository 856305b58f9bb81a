"""What switching heads off changed, and a second opinion on which token mattered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ui.attention import listener
from ui.components.bundle import component
from ui.i18n import Catalog

_ABLATION = component(
    "ablation", js=("dom", "attention_maps", "ablation"), css=("base", "attention", "ablation")
)
_ATTRIBUTION = component(
    "attribution",
    js=("dom", "attention_maps", "attribution"),
    css=("base", "attention", "ablation"),
)


def ablation(data: Mapping[str, Any], t: Catalog, *, key: str) -> None:
    """Draw ``data``, made by :func:`ui.figures.attention_ablation.effect_data`."""
    words = {"lang": t.lang, "strings": t.area("attention")}
    _ABLATION(key=key, data={**data, **words}, on_action_change=listener(key))


def attribution(data: Mapping[str, Any], t: Catalog, *, key: str) -> None:
    """Draw ``data``, made by :func:`ui.figures.attention_ablation.attribution_data`."""
    words = {"lang": t.lang, "strings": t.area("attention")}
    _ATTRIBUTION(key=key, data={**data, **words}, on_action_change=listener(key))
