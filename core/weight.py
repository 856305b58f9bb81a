"""How one attention weight came about, computed again from q and k."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from core.faults import Fault
from core.heads import place_of
from core.trace import Forward


@dataclass(frozen=True, eq=False)
class Derivation:
    """How one attention weight came about, computed again in float64 from q and k."""

    layer: int
    head: int
    kv_head: int
    query: int
    """Position that attends."""
    key: int
    """Position attended to."""
    q: Float[np.ndarray, " head_dim"]
    k: Float[np.ndarray, " head_dim"]
    products: Float[np.ndarray, " head_dim"]
    dots: Float[np.ndarray, " key"]
    """q·k for every key; NaN where a sliding window has dropped the key."""
    scaling: float
    """What q·k is multiplied with, read off the model's own scores of this head."""
    visible: Bool[np.ndarray, " key"]
    scores: Float[np.ndarray, " key"]
    """q·k × scaling; -inf where the mask forbids."""
    weights: Float[np.ndarray, " key"]
    """Softmax of the scores, recomputed here."""
    captured: Float[np.ndarray, " key"]
    """The row as the model had it."""
    difference: float
    """Largest |recomputed - captured| of the row."""


def derive(forward: Forward, layer: int, head: int, query: int, key: int) -> Derivation:
    """Recompute row ``query`` of one head, from a pass that kept the scores of ``layer``.

    Keys after ``query`` belong to the row, too (masked), as far as the pass has read them.
    Raises Fault where the scores cannot be read, LookupError for a row outside the pass.
    """
    row = query - forward.start
    if not 0 <= row < len(forward.ids) - forward.start:
        raise LookupError(query)
    place = place_of(forward, layer)
    if place is None or forward.scores is None or forward.queries is None or forward.keys is None:
        raise Fault("scores_not_readable")
    total = len(forward.ids)
    heads, groups = forward.queries.shape[1], forward.keys.shape[1]
    kv_head = head * groups // heads
    queries = forward.queries[place, head].astype(np.float64)
    keys = forward.keys[place, kv_head].astype(np.float64)
    known = forward.scores[place, head]
    held = min(keys.shape[0], known.shape[1])
    first = total - held
    keys, known = keys[-held:], known[:, -held:]
    dots = np.full(total, np.nan)
    dots[first:] = keys @ queries[row]
    visible = np.zeros(total, dtype=bool)
    visible[first:] = np.isfinite(known[row])
    scaling = _scaling(queries @ keys.T, known)
    scores = np.where(visible, dots * scaling, -np.inf)
    weights = _softmax(scores)
    captured = np.zeros(total)
    if forward.attention is not None:
        found = forward.attention[place, head, row]
        captured[total - found.size :] = found
    k = keys[key - first] if key >= first else np.full(keys.shape[1], np.nan)
    return Derivation(
        layer=layer,
        head=head,
        kv_head=kv_head,
        query=query,
        key=key,
        q=queries[row],
        k=k,
        products=queries[row] * k,
        dots=dots,
        scaling=scaling,
        visible=visible,
        scores=scores,
        weights=weights,
        captured=captured,
        difference=float(np.abs(weights - captured).max()),
    )


def _scaling(dots: Float[np.ndarray, "query key"], scores: Float[np.ndarray, "query key"]) -> float:
    """The one factor that takes all q·k of a head to its scores, by least squares."""
    seen = np.isfinite(scores)
    products, found = dots[seen], scores[seen].astype(np.float64)
    size = float(products @ products)
    return float(products @ found) / size if size > 0 else 1.0


def _softmax(scores: Float[np.ndarray, " key"]) -> Float[np.ndarray, " key"]:
    raised = np.exp(scores - scores.max())
    return np.asarray(raised / raised.sum())


def plain_scaling(derivation: Derivation) -> bool:
    """Whether the scaling is 1/√d, to six digits."""
    return math.isclose(derivation.scaling, derivation.q.size**-0.5, rel_tol=1e-5)
