"""The logit lens: what the model would say if it stopped after each layer.

Each row of the residual stream goes through the final norm and the LM head, unadjusted
(nostalgebraist 2020, "interpreting GPT: the logit lens"). Early layers were never trained
to be read this way; the last row is the model's own distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from core.engine.protocol import Engine
from core.trace import Forward


@dataclass(frozen=True, eq=False)
class Lens:
    """Read at the last position of one forward pass; highest probability first."""

    ids: Int[np.ndarray, "layer top"]
    probabilities: Float[np.ndarray, "layer top"]
    followed: int
    """The token whose way through the layers is followed (the one that was chosen)."""
    followed_probability: Float[np.ndarray, " layer"]
    followed_rank: Int[np.ndarray, " layer"]
    """1 = the favourite of that layer."""


@dataclass(frozen=True, eq=False)
class Column:
    """The lens at one position: each layer's best tokens, and the way of a few tokens."""

    ids: Int[np.ndarray, "layer top"]
    probabilities: Float[np.ndarray, "layer top"]
    followed: tuple[int, ...]
    """The tokens asked for, then the last layer's favourite if it is not among them."""
    followed_probability: Float[np.ndarray, "layer followed"]
    followed_rank: Int[np.ndarray, "layer followed"]
    """1 = the favourite of that layer; equal scores are ranked by id."""

    @property
    def favourite(self) -> int:
        """The last layer's favourite: what the model itself would say."""
        return int(self.ids[-1, 0])


def lens_column(
    engine: Engine, forward: Forward, row: int, followed: Sequence[int] = (), *, top: int = 5
) -> Column:
    """The lens at row ``row`` of a forward pass.

    Raises Fault where the final norm cannot be found, or nothing can be unembedded.
    """
    logits = np.array(engine.unembed(forward.residual[:, row]), dtype=np.float32)
    logits -= logits.max(axis=-1, keepdims=True)
    best = _best(logits, min(top, logits.shape[-1]))
    wanted = tuple(dict.fromkeys((*map(int, followed), int(best[-1, 0]))))
    total = np.exp(logits).sum(axis=-1, dtype=np.float64)[:, None]
    own = logits[:, list(wanted)]
    return Column(
        ids=best,
        probabilities=np.exp(np.take_along_axis(logits, best, axis=-1), dtype=np.float64) / total,
        followed=wanted,
        followed_probability=np.exp(own, dtype=np.float64) / total,
        followed_rank=np.stack(
            [_rank(logits, token, own[:, i]) for i, token in enumerate(wanted)], axis=1
        ),
    )


def logit_lens(engine: Engine, forward: Forward, followed: int, *, top: int = 3) -> Lens:
    """The lens at the last position; raises Fault where the final norm cannot be found."""
    column = lens_column(engine, forward, -1, (followed,), top=top)
    return Lens(
        ids=column.ids,
        probabilities=column.probabilities,
        followed=followed,
        followed_probability=column.followed_probability[:, 0],
        followed_rank=column.followed_rank[:, 0],
    )


def distance_to_own(column: Column, forward: Forward) -> float:
    """The largest difference between the lens' last row, read at the last position of
    ``forward``, and the model's own distribution over the tokens of that row and the followed.
    """
    logits = forward.logits.astype(np.float64)
    weights = np.exp(logits - logits.max())
    own = weights / weights.sum()
    told = np.concatenate([column.probabilities[-1], column.followed_probability[-1]])
    return float(np.abs(told - own[[*column.ids[-1].tolist(), *column.followed]]).max())


def _best(logits: Float[np.ndarray, "layer token"], top: int) -> Int[np.ndarray, "layer top"]:
    """Ids of the highest ``top`` scores in each row, best first, ties by id."""
    near = np.argpartition(-logits, top - 1, axis=-1)[:, :top]
    ranked = np.lexsort((near, -np.take_along_axis(logits, near, axis=-1)), axis=-1)
    return np.take_along_axis(near, ranked, axis=-1).astype(np.int64)


def _rank(
    logits: Float[np.ndarray, "layer token"], token: int, own: Float[np.ndarray, " layer"]
) -> Int[np.ndarray, " layer"]:
    before = (logits > own[:, None]).sum(axis=-1)
    ties = (logits[:, :token] == own[:, None]).sum(axis=-1)
    rank: np.ndarray = 1 + before + ties
    return rank
