"""Queries and keys of one head, turned back to where their positions had not come in. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from core.geometry import cosine
from core.heads import place_of
from core.model_info import Rope
from core.position import members, rotate, unrotate, wavelengths
from core.trace import Forward, Token
from ui.figures.embeddings import packed, token_data

SENT: Final = 1_500_000
"""Bytes of queries and keys that are sent; of a longer text its last tokens are offered."""
DOTS: Final = 150
"""Up to so many tokens offered, the model's own dot products are sent for comparison."""


@dataclass(frozen=True, eq=False)
class Head:
    """One head of one layer, at all positions of a text."""

    layer: int
    head: int
    kv_head: int
    """Several query heads may share one key head."""
    queries: Float[np.ndarray, "token head_dim"]
    """As the model used them: turned by their positions."""
    keys: Float[np.ndarray, "token head_dim"]
    rope: Rope

    @property
    def places(self) -> Float[np.ndarray, " token"]:
        return np.arange(len(self.queries), dtype=np.float64)

    def straight(self) -> tuple[np.ndarray, np.ndarray]:
        """Queries and keys turned back: without position."""
        return (
            unrotate(self.queries, self.places, self.rope),
            unrotate(self.keys, self.places, self.rope),
        )


def head_of(forward: Forward, layer: int, head: int, rope: Rope) -> Head | None:
    """The head's queries and keys; ``None`` where the pass did not keep them."""
    row = place_of(forward, layer)
    if forward.queries is None or forward.keys is None or row is None:
        return None
    queries, keys = forward.queries[row], forward.keys[row]
    kv_head = head * keys.shape[0] // queries.shape[0]
    return Head(layer, head, kv_head, queries[head], keys[kv_head], rope)


def difference(ours: np.ndarray, model: np.ndarray) -> float:
    """The largest difference, as a share of the model's largest number (at least of 1)."""
    size = max(1.0, float(np.abs(model).max(initial=0.0)))
    return float(np.abs(ours - model).max(initial=0.0)) / size


def turned_again(head: Head) -> float:
    """Turned back and forth once more: how far that is from what the model used."""
    queries, keys = head.straight()
    return max(
        difference(rotate(queries, head.places, head.rope), head.queries),
        difference(rotate(keys, head.places, head.rope), head.keys),
    )


def agrees_without(head: Head, plain: Head) -> float:
    """How far q and k, turned back, are from those of the same text read without positions.

    Only in the first layer are these two the same thing: nothing has been mixed before it.
    """
    queries, keys = head.straight()
    return max(difference(queries, plain.queries), difference(keys, plain.keys))


def telling_pair(query: np.ndarray, key: np.ndarray, rope: Rope, tokens: int) -> int:
    """The pair with the longest arrows among those that turn visibly within the text."""
    first, second = members(rope).T
    sizes = np.hypot(query[first], query[second]) * np.hypot(key[first], key[second])
    quick = wavelengths(rope) <= max(24, 2 * tokens)
    return int(np.where(quick, sizes, -1.0).argmax()) if quick.any() else int(sizes.argmax())


def offered(count: int, width: int, always: Sequence[int]) -> list[int]:
    """Positions whose vectors are sent: the last ones that fit, and those in view."""
    most = max(2, SENT // (2 * 4 * max(1, width)))
    return sorted({*range(max(0, count - most), count), *always})


def rotation_data(
    head: Head, tokens: Sequence[Token], query: int, key: int, pair: int
) -> dict[str, Any]:
    """All that is drawn; ``query`` and ``key`` are positions, ``pair`` -1 for the telling one."""
    places = offered(len(tokens), head.queries.shape[1], (query, key))
    queries, keys = head.straight()
    pairs = head.rope.dims // 2
    found = telling_pair(queries[query], keys[key], head.rope, len(tokens))
    few = len(places) <= DOTS
    rows = places if few else [query]
    dots = head.queries[rows].astype(np.float64) @ head.keys[places].T.astype(np.float64)
    return {
        "tokens": [token_data(tokens[place]) for place in places],
        "layer": head.layer,
        "head": head.head,
        "kv_head": head.kv_head,
        "query": query,
        "key": key,
        "pair": pair if 0 <= pair < pairs else found,
        "q": packed(queries[places]),
        "k": packed(keys[places]),
        "width": int(head.queries.shape[1]),
        "dims": head.rope.dims,
        "layout": head.rope.layout,
        "scaling": head.rope.scaling,
        "frequencies": np.asarray(head.rope.frequencies, dtype=np.float64).tolist(),
        "dots": packed(dots),
        "dot_rows": rows,
        "read": len(tokens),
    }


@dataclass(frozen=True)
class Check:
    """A sentence with a measured difference, and whether it is as small as it must be."""

    text: str
    good: bool


def learned_data(
    tokens: Sequence[Token],
    at: int,
    row: Float[np.ndarray, " width"],
    table: Float[np.ndarray, "position width"],
    vector: Float[np.ndarray, " width"],
) -> dict[str, Any]:
    """A learned position: the token's row, the position's row ``table[at]``, and their sum.

    ``table`` begins with position 0; ``vector`` is what entered the first layer.
    """
    places = table[at]
    rows = (row, places, vector)
    return {
        "at": at,
        "label": tokens[at].label,
        "width": int(row.size),
        "values": [packed(values) for values in rows],
        "saturation": [float(np.quantile(np.abs(values), 0.98)) for values in rows],
        "difference": difference(row.astype(np.float64) + places, vector),
        "cosines": packed(cosine(table, places)),
    }
