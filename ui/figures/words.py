"""Numbers in words and signs: probabilities, logarithms, powers of ten. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.amounts import in_bytes, in_time, needed, two_digits

__all__ = ["in_bytes", "in_time", "needed", "two_digits"]


def percent(p: float) -> str:
    """A probability for people, as the components write it: 77.3 %, 0.04 %, < 0.01 %, 0 %."""
    if not p > 0:
        return "0 %"
    if p < 1e-4:
        return "< 0.01 %"
    return f"{100 * p:.{2 if p < 0.01 else 1}f} %"


def whole_percent(p: float) -> str:
    """A share that needs no digits behind the point, as ``percent`` writes it: 57 %."""
    return f"{100 * p:.0f} %"


def unbroken(date: str) -> str:
    """A date that no line breaks: its own hyphens are places to break."""
    return date.replace("-", "\u2011")


def signed(x: float, digits: int = 3) -> str:
    """A number with a real minus sign; -inf as −∞."""
    text = f"{abs(x):.{digits}f}" if math.isfinite(x) else "∞"
    return f"−{text}" if x < 0 else text


def real_minus(number: str) -> str:
    """A formatted number with a real minus sign, also in its exponent."""
    return number.replace("-", "−")


def ranges(numbers: Sequence[int], comma: str) -> str:
    """Layers as people count them, from 1, neighbours joined: 1–3, 5, 7–8."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    ends = (str(r[0] + 1) if len(r) == 1 else f"{r[0] + 1}–{r[-1] + 1}" for r in runs)
    return comma.join(ends)


def tiny(x: float) -> str:
    """A difference that should be 0: 0, or 5.4 × 10⁻⁸."""
    if x == 0:
        return "0"
    mantissa, power = f"{x:.1e}".split("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa} × 10{raised}"


def digits_for(u: float, low: float, high: float) -> int:
    """Decimals (3 … 12) with which u, low ≤ u < high, still looks like lying between them."""
    for digits in range(3, 12):
        written = [f"{x:.{digits}f}" for x in (low, u, high)]
        if (written[0] != written[1] or low == u) and written[1] != written[2]:
            return digits
    return 12


def scientific(ln: float) -> tuple[str, int]:
    """exp(ln) as mantissa and power of ten, also where a float would underflow."""
    exponent = math.floor(ln / math.log(10))
    mantissa = f"{math.exp(ln - exponent * math.log(10)):.2f}"
    return ("1.00", exponent + 1) if mantissa == "10.00" else (mantissa, exponent)


def latex_probability(ln: float) -> str:
    """exp(ln) in LaTeX: 0.773, 4.40 × 10⁻⁶, or 0."""
    if ln == -math.inf:
        return "0"
    if ln > math.log(0.00995):
        return f"{math.exp(ln):.3f}"
    mantissa, exponent = scientific(ln)
    return rf"{mantissa}\times 10^{{{exponent}}}"
