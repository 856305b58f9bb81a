"""Attention maps → what the grid of heads and the large map draw. Pure.

Rows are the position that attends (the query), columns the position attended to (the key).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float, UInt8

from core.decode.measure import bits
from core.heads import HeadStatistics
from core.model_info import ModelInfo
from core.trace import Token

THUMB: Final = 32
"""Most pixels a side of a head's small picture."""
MOST_VALUES: Final = 600_000
"""Most weights sent for the large map; of a longer text, the latest rows."""
STATISTICS: Final = ("entropy", "distance", "first", "previous", "itself", "same", "induction")


@dataclass(frozen=True, eq=False)
class Digest:
    """One layer's heads, small: pictures and statistics."""

    pictures: UInt8[np.ndarray, "head row column"]
    statistics: HeadStatistics


def packed(array: np.ndarray, kind: str = "<f4") -> str:
    """Base64 of little-endian values: a component's data is either JSON or bytes, never both."""
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode()


def pooling(total: int) -> int:
    """Positions that share one pixel of a small picture."""
    return -(-total // THUMB)


def pictures(weights: Float[np.ndarray, "head query key"]) -> UInt8[np.ndarray, "head row column"]:
    """Each head's map in at most THUMB × THUMB pixels, 255·√weight.

    A pixel that stands for several weights shows the largest of them.
    """
    heads, total, _ = weights.shape
    pool = pooling(total)
    side = -(-total // pool)
    if pool > 1:
        edges = np.arange(0, total, pool)
        weights = np.maximum.reduceat(weights, edges, axis=2)
        weights = np.maximum.reduceat(weights, edges, axis=1)
    assert weights.shape == (heads, side, side)
    tones: np.ndarray = np.rint(255 * np.sqrt(np.clip(weights, 0, 1))).astype(np.uint8)
    return tones


def grid_data(
    digests: Mapping[int, Digest],
    info: ModelInfo,
    total: int,
    induction: Float[np.ndarray, "layer head"] | None,
) -> dict[str, Any]:
    """The grid of heads; ``digests`` are the layers known. Entropies are in bits.

    ``pictures``: [known layer, head, row, column] of ``side`` × ``side`` bytes.
    """
    known = sorted(digests)
    return {
        "layers": info.layers,
        "heads": info.heads,
        "kv_heads": info.kv_heads,
        "known": known,
        "side": -(-total // pooling(total)),
        "pool": pooling(total),
        "tokens": total,
        "pictures": packed(np.stack([digests[n].pictures for n in known]), "u1") if known else "",
        "statistics": {
            name: [_row(name, layer, digests.get(layer), induction) for layer in range(info.layers)]
            for name in STATISTICS
        },
    }


def _row(
    name: str, layer: int, digest: Digest | None, induction: Float[np.ndarray, "layer head"] | None
) -> list[float | None] | None:
    if digest is None:
        return None
    if name == "induction":
        heads = digest.pictures.shape[0]
        values = np.full(heads, np.nan) if induction is None else induction[layer]
    else:
        values = getattr(digest.statistics, name)
    scale = bits(1.0) if name == "entropy" else 1.0
    return [None if np.isnan(value) else round(float(value) * scale, 5) for value in values]


def sink(digests: Mapping[int, Digest]) -> float | None:
    """The share of the first position, averaged over all known heads and all rows but its own."""
    found = [digest.statistics.first for digest in digests.values()]
    return float(np.mean(found)) if found else None


def sharing(info: ModelInfo, head: int) -> tuple[int, ...]:
    """The query heads that read the same KV head as ``head``, itself included."""
    group = info.heads // max(1, info.kv_heads)
    first = head // max(1, group) * group
    return tuple(range(first, first + group))


def first_row(total: int) -> int:
    """The first row that is sent of a map of ``total`` positions."""
    first = 0
    values = total * (total + 1) // 2
    while values > MOST_VALUES:
        first += 1
        values -= first
    return first


def triangle(weights: Float[np.ndarray, "query key"], first: int = 0) -> Float[np.ndarray, " n"]:
    """The rows from ``first`` on, each up to its own position: what the mask leaves."""
    total = weights.shape[0]
    rows, columns = np.tril_indices(total)
    kept = rows >= first
    return np.asarray(weights[rows[kept], columns[kept]])


def token_list(tokens: Sequence[Token]) -> list[dict[str, Any]]:
    return [
        {
            "label": token.label,
            "id": token.id,
            "source": token.source,
            "special": token.special,
        }
        for token in tokens
    ]


def head_data(
    weights: Float[np.ndarray, "query key"],
    last: Float[np.ndarray, "layer key"] | None,
    tokens: Sequence[Token],
    info: ModelInfo,
    *,
    layer: int,
    head: int,
    window: int | None,
) -> dict[str, Any]:
    """One map in full: a head's, or with ``head`` -1 the mean of its layer's heads.

    ``values``: rows from ``first`` on, each with its own position + 1 weights. ``last``: what
    the last position reads in each layer, [layer, key], NaN where a layer is not known.
    """
    total = weights.shape[0]
    if len(tokens) != total:
        raise ValueError(f"{len(tokens)} tokens for a map of {total}")
    first = first_row(total)
    return {
        "tokens": token_list(tokens),
        "layers": info.layers,
        "heads": info.heads,
        "layer": layer,
        "head": head,
        "kv_head": head * info.kv_heads // info.heads if head >= 0 else -1,
        "kv_heads": info.kv_heads,
        "sharing": list(sharing(info, head)) if head >= 0 else [],
        "window": window,
        "first": first,
        "values": packed(triangle(weights, first)),
        "last": "" if last is None else packed(last),
    }
