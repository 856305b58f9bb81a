"""What the Attention page says before its maps: layers that have none, and texts that are long."""

from __future__ import annotations

from collections.abc import Iterator

from ui.attention import Scene
from ui.figures.words import ranges


def notes(scene: Scene) -> Iterator[str]:
    """The sentences that hold for this model and this text."""
    if scene.closed:
        yield hybrid(scene)
    if not scene.whole:
        seconds, megabytes = scene.forwards[0].ms / 1000, scene.megabytes
        yield scene.context.t(
            "attention.long", n=len(scene.ids), mb=f"{megabytes:.0f}", s=f"{seconds:.1f}"
        )


def hybrid(scene: Scene) -> str:
    """Which layers have no attention to read, and what they do instead."""
    info, t = scene.context.engine.info, scene.context.t
    comma = t("attention.comma")
    kinds: dict[str, list[int]] = {}
    for layer in scene.closed:
        known = info.layer_kinds[layer] if layer in info.without_attention else "own"
        kinds.setdefault(known, []).append(layer)
    reasons = []
    for kind, layers in kinds.items():
        word = {"conv": "conv", "linear_attention": "state", "mamba": "state"}.get(kind, kind)
        names = {"layers": ranges(layers, comma)}
        reasons.append(t(f"attention.without_{word}", **names))
    readable = [n for n in range(info.layers) if n not in scene.closed]
    told = t("attention.hybrid", layers=ranges(readable, comma), reasons=comma.join(reasons))
    if scene.asked == scene.layer:
        return told
    here = t("attention.hybrid_here", layer=scene.asked + 1, other=scene.layer + 1)
    return t("attention.sentence_join").join((told, here))
