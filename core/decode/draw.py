"""The dice: one number per step, and the token on which it falls.

Randomness enters as one value, so a run can be repeated, stepped back and compared: the same
seed and step give the same ``u`` on every machine and for every strategy.
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

MANTISSA: Final = 53
"""Bits of a float64: every value of ``u`` is exact."""


def uniform(seed: int, step: int, roll: int = 0) -> float:
    """The random number of ``step``, in [0, 1): the first 53 bits of SHA-256("seed/step").

    When the dice of a step were thrown again, ``roll`` times, of SHA-256("seed/step/roll").
    """
    name = f"{seed}/{step}/{roll}" if roll else f"{seed}/{step}"
    digest = hashlib.sha256(name.encode()).digest()
    return float((int.from_bytes(digest[:8], "big") >> (64 - MANTISSA)) * 2.0**-MANTISSA)


def needle(cumulative: Float[np.ndarray, " survivors"], u: float) -> int:
    """The position whose stretch of the bar, ``[c[i-1], c[i])``, contains ``u`` · total.

    ``cumulative`` are running sums of positive weights, normalised or not.
    """
    position = int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))
    # Rounding can put u · total on the very end of the bar, and never beyond the last token.
    return min(position, cumulative.size - 1)


def draw(probabilities: ArrayLike, u: float) -> int:
    """The token id at ``u`` on the bar that lines the tokens up from likely to unlikely.

    Equal probabilities stand in the order of their ids; a token of probability 0 has no
    stretch on the bar and is never drawn. ``probabilities`` [V] need at least one above 0.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    alive = np.flatnonzero(p > 0)
    order = alive[np.argsort(-p[alive], kind="stable")]
    return int(order[needle(np.cumsum(p[order]), u)])
