"""The cache of well-known models, by formula from their published configurations."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from core.lab.kv_cost import kept_bytes, token_bytes
from core.lab.shape_presets import presets

PUBLISHED_BYTES = 2
"""Of one number: these models are run in 16 bits."""


@dataclass(frozen=True)
class Other:
    """All bytes are of one text."""

    name: str
    title: str
    layers: int
    kv_heads: int
    heads: int
    head_dim: int
    window: int | None
    sliding_layers: int
    token_bytes: int
    """Before any window is full."""
    cache_bytes: int
    """Of a text of ``length`` tokens."""
    length: int
    source: str
    date: str


def other_caches(length: int) -> tuple[Other, ...]:
    """Every published model, with a text of ``length`` tokens."""
    found = []
    for name, preset in presets().items():
        shape = preset.shape
        found.append(
            Other(
                name=name,
                title=preset.title,
                layers=shape.layers,
                kv_heads=shape.kv_heads,
                heads=shape.heads,
                head_dim=shape.head_dim,
                window=shape.window,
                sliding_layers=shape.sliding_layers,
                token_bytes=round(token_bytes(shape, PUBLISHED_BYTES)),
                cache_bytes=round(kept_bytes(shape, length, PUBLISHED_BYTES)),
                length=length,
                source=preset.source,
                date=preset.date,
            )
        )
    return tuple(found)


def others(length: int) -> list[dict[str, Any]]:
    """The same as plain values."""
    return [asdict(other) for other in other_caches(length)]
