"""The tail of the χ² distribution, without a statistics library.

Q(a, x) = Γ(a, x) ÷ Γ(a) is the regularised upper incomplete gamma function. Below a + 1 the
power series of 1 - Q converges quickly, above it the continued fraction of Q does.
"""

from __future__ import annotations

import math
from typing import Final

_TERMS: Final = 100_000
"""Far more than the √a terms or so that either needs."""
_ENOUGH: Final = 1e-16
_TINY: Final = 1e-300


def chi_square_tail(statistic: float, freedom: int) -> float:
    """How likely a χ² variable with ``freedom`` ≥ 1 degrees is at least ``statistic``."""
    return upper_gamma(freedom / 2, statistic / 2)


def upper_gamma(a: float, x: float) -> float:
    """Q(a, x) for a > 0: 1 at x ≤ 0, falling to 0. Right to about 12 digits."""
    if x <= 0:
        return 1.0
    if math.isinf(x):
        return 0.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    return 1 - scale * _series(a, x) if x < a + 1 else scale * _fraction(a, x)


def _series(a: float, x: float) -> float:
    """Σ x^n ÷ (a (a + 1) … (a + n))."""
    term = total = 1 / a
    for n in range(1, _TERMS):
        term *= x / (a + n)
        total += term
        if term < total * _ENOUGH:
            break
    return total


def _fraction(a: float, x: float) -> float:
    """1 ÷ (x + 1 - a - 1 (1 - a) ÷ (x + 3 - a - …)), by Lentz's method."""
    b = x + 1 - a
    c, d = 1 / _TINY, 1 / b
    value = d
    for n in range(1, _TERMS):
        factor = -n * (n - a)
        b += 2
        d = 1 / _nonzero(factor * d + b)
        c = _nonzero(b + factor / c)
        value *= c * d
        if abs(c * d - 1) < _ENOUGH * 10:
            break
    return value


def _nonzero(x: float) -> float:
    return x if abs(x) > _TINY else _TINY
