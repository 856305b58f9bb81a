"""Amounts as people say them, the same on pages and in the terminal. Pure."""

from __future__ import annotations


def two_digits(x: float) -> str:
    """A time or a size beside others, with two digits at least: 1,527, 84, 1.3, 0.072."""
    return f"{x:,.0f}" if x >= 10 else f"{x:.2g}"


def in_bytes(count: float, digits: int = 3) -> str:
    """Bytes for people, in decimal units and three digits: 538 MB, 1.07 GB, 46.1 kB, 12 B."""
    units = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
    for unit, width in units:
        # 999.6 kB is written as 1 MB.
        if count >= 0.9995 * width:
            value = count / width
            return f"{value:.{digits}g} {unit}" if value < 999.5 else f"{value:,.0f} {unit}"
    return f"{count:.0f} B"


def counted(count: int, noun: str) -> str:
    """1 token, 2 tokens."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def needed(count: float, limit: float) -> str:
    """Bytes for people beside what there is: with as many digits as tell the two apart."""
    both = ((in_bytes(count, digits), in_bytes(limit, digits)) for digits in range(3, 8))
    return next((said for said, there in both if said != there), in_bytes(count))


def in_time(ms: float) -> str:
    """Milliseconds for people, in three digits: 0.77 ms, 41.6 ms, 519 ms, 13.5 s."""
    if ms >= 999.5:
        return f"{ms / 1000:,.1f} s"
    return f"{ms:.0f} ms" if ms >= 100 else f"{ms:.3g} ms"
