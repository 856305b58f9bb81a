"""Attention heads: their maps over a whole run, and their statistics.

Maps are [head, query, key]: the row is the position that attends, the column the one that
is attended to. Letters as in :mod:`core.trace`; T is the number of positions of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from core.engine.protocol import Engine
from core.tokens import Vocabulary
from core.trace import Forward

PROBE: Final = 25
"""Tokens of the probe that are read twice."""
PROBE_SEED: Final = 20


# ---------------------------------------------------------------- maps


def owner(forwards: Sequence[Forward], position: int) -> Forward:
    """The pass that computed ``position``. Raises LookupError if none did."""
    for forward in forwards:
        if forward.start <= position < len(forward.ids):
            return forward
    raise LookupError(position)


def rows_of(forward: Forward, layer: int) -> Float[np.ndarray, "head query key"] | None:
    """One layer's weights as one pass has them; ``None`` where it did not keep them."""
    place = place_of(forward, layer)
    if forward.attention is None or place is None:
        return None
    rows: np.ndarray = forward.attention[place]
    return rows


def place_of(forward: Forward, layer: int) -> int | None:
    """Where a layer stands in a pass's arrays of attention; ``None``: it is not among them."""
    held = forward.attending or tuple(range(len(forward.residual)))
    return held.index(layer) if layer in held else None


def layer_map(
    forwards: Sequence[Forward], layer: int
) -> Float[np.ndarray, "head query key"] | None:
    """One layer's weights over all positions: the rows of every step, stitched.

    ``forwards`` are those of a run, the prompt's first; T is the length of the last one's
    text. ``None`` where some pass did not keep this layer.
    """
    found = [rows_of(forward, layer) for forward in forwards]
    kept = [rows for rows in found if rows is not None]
    if len(kept) < len(found) or not kept:
        return None
    total = len(forwards[-1].ids)
    if len(kept) == 1 and kept[0].shape[1:] == (total, total):
        return kept[0]
    whole = np.zeros((kept[0].shape[0], total, total), dtype=np.float32)
    for forward, rows in zip(forwards, kept, strict=True):
        stop = len(forward.ids)
        # A layer with a window gives fewer keys: the latest ones.
        whole[:, forward.start : stop, stop - rows.shape[2] : stop] = rows
    return whole


def telling_head(forward: Forward) -> tuple[int, int] | None:
    """(layer, head) in which the last position reads most from one position in between.

    The first position is left out (it is the attention sink), and so is the last itself.
    ``None`` where no layer is known; the first known layer where nothing lies in between.
    """
    best: tuple[float, int, int] | None = None
    for layer in range(len(forward.residual)):
        rows = rows_of(forward, layer)
        if rows is None:
            continue
        start = max(0, 1 - (len(forward.ids) - rows.shape[2]))
        between = rows[:, -1, start:-1]
        peaks = between.max(axis=1) if between.size else np.zeros(rows.shape[0])
        head = int(peaks.argmax())
        if best is None or peaks[head] > best[0]:
            best = (float(peaks[head]), layer, head)
    return None if best is None else best[1:]


def last_rows(forwards: Sequence[Forward], layers: int) -> Float[np.ndarray, "layer key"] | None:
    """What the last position reads in each layer, averaged over the heads; NaN where unknown.

    ``None`` where no layer is known.
    """
    last = forwards[-1]
    rows = np.full((layers, len(last.ids)), np.nan, dtype=np.float32)
    for layer in range(layers):
        found = rows_of(last, layer)
        if found is not None:
            rows[layer] = 0
            rows[layer, len(last.ids) - found.shape[2] :] = found[:, -1].mean(axis=0)
    return None if np.isnan(rows).all() else rows


# ---------------------------------------------------------------- statistics


@dataclass(frozen=True, eq=False)
class HeadStatistics:
    """The heads of one layer, each number averaged over all rows but the first.

    (The first position can read nothing but itself.) Shares are of the whole attention, 0 … 1.
    """

    entropy: Float[np.ndarray, " head"]
    """Of a row, in nats: 0 = one position gets everything."""
    distance: Float[np.ndarray, " head"]
    """Mean distance looked back, in tokens."""
    first: Float[np.ndarray, " head"]
    """Share on position 0."""
    previous: Float[np.ndarray, " head"]
    """Share on the position just before."""
    itself: Float[np.ndarray, " head"]
    """Share on the position itself."""
    same: Float[np.ndarray, " head"]
    """Share on earlier positions with the same token, over the rows that have one; else NaN."""


def statistics(weights: Float[np.ndarray, "head query key"], ids: Sequence[int]) -> HeadStatistics:
    """Statistics of the heads of one layer; ``ids`` [T] are the tokens of all positions."""
    heads, total, _ = weights.shape
    if total == 1:
        one, none = np.ones(heads), np.zeros(heads)
        return HeadStatistics(none, none, one, none, one, np.full(heads, np.nan))
    rows = weights[:, 1:]
    at = np.arange(total, dtype=np.float32)
    with np.errstate(divide="ignore"):
        logs = np.log(rows, out=np.zeros_like(rows), where=rows > 0)
    tokens = np.asarray(ids)
    twins = np.tril(tokens[:, None] == tokens[None], -1)[1:]
    some = twins.any(axis=1)
    return HeadStatistics(
        entropy=_mean(-np.einsum("hqk,hqk->hq", rows, logs)),
        distance=_mean(at[1:] * rows.sum(axis=2) - rows @ at),
        first=_mean(rows[:, :, 0]),
        previous=_mean(np.diagonal(weights, -1, 1, 2)),
        itself=_mean(np.diagonal(weights, 0, 1, 2)[:, 1:]),
        same=_mean(np.where(twins, rows, 0).sum(axis=2)[:, some])
        if some.any()
        else np.full(heads, np.nan),
    )


def _mean(rows: Float[np.ndarray, "head query"]) -> Float[np.ndarray, " head"]:
    return np.asarray(rows.mean(axis=1, dtype=np.float64))


def probe_ids(vocabulary: Vocabulary) -> tuple[tuple[int, ...], int, int]:
    """(ids, where the first copy begins, its length): ordinary tokens drawn by a fixed seed,
    read twice, behind whatever the tokenizer itself puts first."""
    start = vocabulary.encode("").ids
    plain = [
        id for id in range(vocabulary.size) if not vocabulary.is_special(id) and id not in start
    ]
    usable = np.array(sorted(set(plain) - vocabulary.unused))
    drawn = np.random.default_rng(PROBE_SEED).permutation(usable)[:PROBE]
    copy = tuple(int(id) for id in drawn)
    return (*start, *copy, *copy), len(start), len(copy)


def induction(engine: Engine) -> Float[np.ndarray, "layer head"] | None:
    """How much each head, in the second copy, reads the token *after* its own first copy.

    Averaged over the second copy of :func:`probe_ids` (Olsson et al. 2022); one forward pass,
    remembered by the engine. ``None`` where attention cannot be read.
    """
    ids, start, length = probe_ids(engine.vocabulary)
    forward = engine.forward(ids)
    if forward.attention is None:
        return None
    scores = np.full((engine.info.layers, engine.info.heads), np.nan)
    queries = start + length + np.arange(length)
    for layer in range(engine.info.layers):
        found = layer_map([forward], layer)
        if found is not None:
            scores[layer] = found[:, queries, queries - length + 1].mean(axis=1)
    return scores
