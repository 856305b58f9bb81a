"""Limits that the owner of the machine may set, as environment variables."""

from __future__ import annotations

import os

from core.faults import Fault


def limit(variable: str, default: float) -> float:
    """The number in the environment, or ``default``. Raises Fault for what is no number above 0."""
    text = os.environ.get(variable, "").strip()
    try:
        number = float(text) if text else default
    except ValueError:
        number = 0.0
    if not 0 < number < 10**9:
        raise Fault("bad_limit", variable=variable, value=text)
    return number


def megabytes(variable: str, default: float) -> int:
    """The same in megabytes, as bytes."""
    return int(limit(variable, default) * 1_000_000)
