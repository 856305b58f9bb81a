"""The residual stream at one position: how large it is, who wrote what, where it is going.

A layer adds what attention and the feed-forward part make of the stream. Vectors add up, their
lengths don't; so besides the lengths there is each part's share along the final vector, and
those shares do add up, to the final vector's length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from core.trace import Forward


@dataclass(frozen=True, eq=False)
class Parts:
    """What the two halves of every layer add at one position."""

    attention: Float[np.ndarray, " layer"]
    """Length of what attention adds."""
    feed_forward: Float[np.ndarray, " layer"]
    attention_along: Float[np.ndarray, " layer"]
    """Its component along the final vector; negative: it points away from it."""
    feed_forward_along: Float[np.ndarray, " layer"]
    error: float
    """Largest |before + attention + feed-forward − after|, as a share of the largest |after|."""


@dataclass(frozen=True, eq=False)
class Stream:
    """One position's way through the layers; index 0 is what enters the first layer."""

    size: Float[np.ndarray, " layer_and_one"]
    """Length of the vector, ‖h‖."""
    cosine: Float[np.ndarray, " layer_and_one"]
    """Of the angle to the vector after the last layer (before the final norm)."""
    change: Float[np.ndarray, " layer"]
    """Length of what the layer adds altogether, ‖Δ‖."""
    start_along: float
    """The embedding's component along the final vector."""
    parts: Parts | None
    """``None``: this pass kept no parts, or the architecture's cannot be told apart."""


def path(forward: Forward, row: int) -> Float[np.ndarray, "layer_and_one width"]:
    """The vector of one row: as it enters the first layer, then after each layer."""
    return np.concatenate([forward.embedding[None, row], forward.residual[:, row]])


def stream(forward: Forward, row: int) -> Stream:
    """The stream at row ``row`` of a pass; with its parts where the pass captured them."""
    way = path(forward, row).astype(np.float64)
    size = np.linalg.norm(way, axis=-1)
    final = way[-1] / size[-1] if size[-1] > 0 else np.zeros_like(way[-1])
    along = way @ final
    cosine = np.divide(along, size, out=np.zeros_like(along), where=size > 0)
    return Stream(
        size=size,
        cosine=np.clip(cosine, -1.0, 1.0),
        change=np.linalg.norm(np.diff(way, axis=0), axis=-1),
        start_along=float(along[0]),
        parts=_parts(forward, row, way, final),
    )


def _parts(
    forward: Forward,
    row: int,
    way: Float[np.ndarray, "layer_and_one width"],
    final: Float[np.ndarray, " width"],
) -> Parts | None:
    if forward.attention_part is None or forward.feed_forward_part is None:
        return None
    attention = forward.attention_part[:, row].astype(np.float64)
    feed_forward = forward.feed_forward_part[:, row].astype(np.float64)
    missing = np.abs(way[:-1] + attention + feed_forward - way[1:]).max(axis=-1)
    largest = np.abs(way[1:]).max(axis=-1)
    share = np.divide(missing, largest, out=missing.copy(), where=largest > 0)
    return Parts(
        attention=np.linalg.norm(attention, axis=-1),
        feed_forward=np.linalg.norm(feed_forward, axis=-1),
        attention_along=attention @ final,
        feed_forward_along=feed_forward @ final,
        error=float(share.max()),
    )
