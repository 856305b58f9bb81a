"""The logit lens: what the model would say if it stopped after each layer.

Each row of the residual stream goes through the final norm and the LM head, unadjusted
(nostalgebraist 2020, "interpreting GPT: the logit lens"). Early layers were never trained
to be read this way; the last row is the model's own distribution.
"""

from __future__ import annotations

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


def logit_lens(engine: Engine, forward: Forward, followed: int, *, top: int = 3) -> Lens:
    """The lens at the last position; raises Fault where the final norm cannot be found."""
    logits = engine.unembed(forward.residual[:, -1]).astype(np.float64)
    logits -= logits.max(axis=-1, keepdims=True)
    weights = np.exp(logits)
    shares = weights / weights.sum(axis=-1, keepdims=True)
    top = min(top, shares.shape[-1])
    near = np.argpartition(-logits, top - 1, axis=-1)[:, :top]
    ranked = np.lexsort((near, -np.take_along_axis(logits, near, axis=-1)), axis=-1)
    best = np.take_along_axis(near, ranked, axis=-1)
    own = logits[:, followed][:, None]
    return Lens(
        ids=best.astype(np.int64),
        probabilities=np.take_along_axis(shares, best, axis=-1),
        followed=followed,
        followed_probability=shares[:, followed],
        followed_rank=1 + (logits > own).sum(axis=-1),
    )
