"""One head's map in full, with the arcs of a row, and the last row of all layers."""

from __future__ import annotations

from ui.attention import Scene, listener
from ui.components.bundle import component
from ui.figures.attention import head_data

_HEAD = component(
    "head",
    js=("dom", "attention_maps", "attention_arcs", "head_plot", "head_side", "head"),
    css=("base", "attention", "head"),
)


def head(scene: Scene, sink: float | None, *, key: str) -> None:
    """Draw the map in view; ``sink``: the first token's share over the known heads."""
    t, weights = scene.context.t, scene.map
    if weights is None:
        return
    data = head_data(
        weights,
        scene.last,
        scene.tokens,
        scene.context.engine.info,
        layer=scene.layer,
        head=scene.head,
        window=scene.windows[scene.layer],
    )
    off = [list(pair) for pair in scene.off]
    words = {"lang": t.lang, "strings": t.area("attention")}
    data |= {"at": scene.at, "key": scene.key, "sink": sink, "off": off, "whole": scene.whole}
    data |= {"prompt": scene.prompt_length, "pinned": scene.pinned}
    data["closed"] = list(scene.closed)
    _HEAD(key=key, data={**data, **words}, on_action_change=listener(key))
