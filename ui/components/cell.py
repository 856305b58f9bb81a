"""How one attention weight came about, from q and k to the softmax."""

from __future__ import annotations

from core.weight import Derivation
from ui.attention import Scene, listener
from ui.components.bundle import component
from ui.figures.attention_cell import cell_data

_CELL = component(
    "cell",
    js=("dom", "attention_maps", "cell_strips", "cell_rows", "cell"),
    css=("base", "attention", "cell"),
)


def cell(scene: Scene, derivation: Derivation, *, key: str) -> None:
    """Draw ``derivation``; its rows lead to the row's other weights."""
    t, info = scene.context.t, scene.context.engine.info
    window = scene.windows[scene.layer]
    data = cell_data(derivation, scene.tokens, info, window=window)
    words = {"lang": t.lang, "strings": t.area("attention")}
    _CELL(key=key, data={**data, **words}, on_action_change=listener(key))
