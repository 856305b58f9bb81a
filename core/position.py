"""How the order of tokens gets into a model: rotary positions (RoPE), and a shuffle as a test.

RoPE takes the numbers of a query or key in pairs and turns each pair, as a point of the plane,
by an angle of its own times the position. The dot product of a query turned for position m and
a key turned for position n depends on m - n alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from core.model_info import Rope


def members(rope: Rope) -> Int[np.ndarray, "pair two"]:
    """Which two numbers of a head make each pair: (0, d/2), (1, d/2 + 1) … or (0, 1), (2, 3) …"""
    index = np.arange(rope.dims)
    return index.reshape(2, -1).T if rope.layout == "halves" else index.reshape(-1, 2)


def wavelengths(rope: Rope) -> Float[np.ndarray, " pair"]:
    """Tokens after which each pair has made a whole turn; infinite for one that never turns."""
    speed = np.abs(np.asarray(rope.frequencies, dtype=np.float64))
    return np.divide(2 * np.pi, speed, out=np.full_like(speed, np.inf), where=speed > 0)


def rotate(
    vectors: Float[np.ndarray, "*rows head_dim"],
    positions: Int[np.ndarray, "*rows"] | Sequence[int] | int,
    rope: Rope,
) -> Float[np.ndarray, "*rows head_dim"]:
    """Queries or keys as the model uses them at ``positions`` (one a row), in float64.

    Numbers beyond ``rope.dims`` are not turned and stay as they are.
    """
    return _turned(vectors, positions, rope, 1.0)


def unrotate(
    vectors: Float[np.ndarray, "*rows head_dim"],
    positions: Int[np.ndarray, "*rows"] | Sequence[int] | int,
    rope: Rope,
) -> Float[np.ndarray, "*rows head_dim"]:
    """The inverse of :func:`rotate`: what queries or keys were before their position came in."""
    return _turned(vectors, positions, rope, -1.0)


def _turned(vectors: np.ndarray, positions: Any, rope: Rope, sign: float) -> np.ndarray:
    first, second = members(rope).T
    speeds = np.asarray(rope.frequencies, dtype=np.float64)
    angles = sign * np.asarray(positions, dtype=np.float64)[..., None] * speeds
    size = rope.scaling**sign
    cos, sin = size * np.cos(angles), size * np.sin(angles)
    turned = np.array(vectors, dtype=np.float64)
    x, y = turned[..., first], turned[..., second]
    turned[..., first], turned[..., second] = x * cos - y * sin, x * sin + y * cos
    return turned


@dataclass(frozen=True, eq=False)
class Relative:
    """The dot product of a query and a key as a function of their distance."""

    pairs: Float[np.ndarray, "distance pair"]
    """What each pair adds."""
    fixed: float
    """What the numbers add that are not turned: the same at every distance."""

    @property
    def whole(self) -> Float[np.ndarray, " distance"]:
        """The dot product of the whole head."""
        total: np.ndarray = self.pairs.sum(axis=1) + self.fixed
        return total


def relative(
    query: Float[np.ndarray, " head_dim"],
    key: Float[np.ndarray, " head_dim"],
    rope: Rope,
    distances: Sequence[float] | Float[np.ndarray, " distance"],
) -> Relative:
    """q·k, both without position, for "the key stands ``distance`` tokens before the query"."""
    q, k = np.asarray(query, dtype=np.float64), np.asarray(key, dtype=np.float64)
    first, second = members(rope).T
    along = q[first] * k[first] + q[second] * k[second]
    across = q[first] * k[second] - q[second] * k[first]
    angles = np.asarray(distances, dtype=np.float64)[:, None] * np.asarray(rope.frequencies)
    pairs = rope.scaling**2 * (along * np.cos(angles) + across * np.sin(angles))
    return Relative(pairs, float(q[rope.dims :] @ k[rope.dims :]))


def shuffled(ids: Sequence[int], stay: Collection[int], seed: int) -> tuple[int, ...] | None:
    """The same tokens in another order, always the same one for a seed.

    Tokens whose id is in ``stay`` (control tokens) keep their places, and so does the last
    one, so that the question stays what follows it. ``None``: there is no other order.
    """
    free = [place for place in range(len(ids) - 1) if ids[place] not in stay]
    if len({ids[place] for place in free}) < 2:
        return None
    dice = np.random.default_rng(seed)
    while True:
        mixed = list(ids)
        for place, source in zip(free, dice.permutation(free), strict=True):
            mixed[place] = ids[source]
        if mixed != list(ids):
            return tuple(mixed)
