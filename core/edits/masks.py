"""Which weights are set to zero: masks by size, by use, by chance, and in the pattern 2:4.

Arithmetic on plain arrays; ``True`` keeps a weight. Ties are kept in the order of their places,
so equal inputs give equal masks.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float

from core.faults import Fault

Method = Literal["magnitude", "magnitude_row", "wanda", "random"]
METHODS: Final[tuple[Method, ...]] = ("magnitude", "magnitude_row", "wanda", "random")


def share_mask(
    scores: Float[np.ndarray, "row column"], zeros: float, *, by_row: bool
) -> Bool[np.ndarray, "row column"]:
    """Drop the share ``zeros`` (0 … 1) of the lowest scores, of all or of each row.

    The number dropped is rounded down. Raises Fault for a share outside 0 … 1.
    """
    if not 0 <= zeros <= 1:
        raise Fault("setting_out_of_range", name="zeros", value=zeros, low=0, high=1)
    table = scores if by_row else scores.reshape(1, -1)
    # 0.3 · 10 is a hair below 3 in floating point.
    count = int(zeros * table.shape[1] + 1e-9)
    keep = np.ones(table.shape, dtype=bool)
    lowest = np.argsort(table, axis=1, kind="stable")[:, :count]
    np.put_along_axis(keep, lowest, False, axis=1)
    return keep.reshape(scores.shape)


def two_of_four(scores: Float[np.ndarray, "row column"]) -> Bool[np.ndarray, "row column"]:
    """Keep the two highest scores of each four neighbours in a row (Mishra et al. 2021).

    A last group of fewer than four keeps its highest two. Raises nothing.
    """
    rows, columns = scores.shape
    padded = np.full((rows, -(-columns // 4) * 4), -np.inf)
    padded[:, :columns] = scores
    fours = padded.reshape(rows, -1, 4)
    best = np.argsort(-fours, axis=-1, kind="stable")[..., :2]
    keep = np.zeros(fours.shape, dtype=bool)
    np.put_along_axis(keep, best, True, axis=-1)
    return keep.reshape(rows, -1)[:, :columns]


def scores_of(
    weights: Float[np.ndarray, "row column"],
    method: Method,
    *,
    norms: Float[np.ndarray, " column"] | None = None,
    seed: int = 0,
) -> Float[np.ndarray, "row column"]:
    """How much each weight counts: |w|; for "wanda" |w| · ‖x‖ of the input that it meets (Sun et
    al. 2024), where ``norms`` are taken over a calibration text; for "random" the dice.

    Raises Fault for an unknown method, and for "wanda" without norms of the right length.
    """
    if method not in METHODS:
        raise Fault("unknown_method", value=method, allowed=", ".join(METHODS))
    if method == "random":
        return np.random.default_rng(seed).random(weights.shape)
    size: Float[np.ndarray, "row column"] = np.abs(weights)
    if method != "wanda":
        return size
    if norms is None or norms.shape != (weights.shape[1],):
        raise Fault("wanda_without_norms")
    return np.asarray(size * norms)


def zero_share(keep: Bool[np.ndarray, "row column"]) -> float:
    """Zeros ÷ weights."""
    return 1 - float(keep.mean())
