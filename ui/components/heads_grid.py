"""All heads of all layers as one canvas of small maps."""

from __future__ import annotations

from ui.attention import Scene, listener, probe
from ui.components.bundle import component
from ui.figures.attention import grid_data

_GRID = component(
    "heads_grid",
    js=(
        "dom",
        "attention_maps",
        "attention_grid",
        "heads_draw",
        "heads_table",
        "heads_tools",
        "heads_grid",
    ),
    css=("base", "attention", "heads_grid"),
)


def heads_grid(scene: Scene, *, key: str) -> None:
    """Draw every known head; a click or Enter opens one (the "action" of ``key``)."""
    t, engine = scene.context.t, scene.context.engine
    data = grid_data(scene.digests(), engine.info, len(scene.ids), probe(scene.context))
    off = [list(pair) for pair in scene.off]
    words = {"lang": t.lang, "strings": t.area("attention")}
    data |= {"layer": scene.layer, "head": scene.head, "windows": scene.windows, "off": off}
    data["closed"] = list(scene.closed)
    _GRID(key=key, data={**data, **words}, on_action_change=listener(key))
