"""Numbers as they are typed."""

from __future__ import annotations

from core.faults import Fault


def number(name: str, text: str | None) -> float | None:
    """Raises Fault for text that is no number."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise Fault("setting_not_a_number", name=name, value=text) from None


def whole(name: str, text: str | None) -> int | None:
    """Raises Fault for text that is no whole number."""
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise Fault("setting_not_whole", name=name, value=text) from None


def listed(text: str, option: str, example: str) -> list[float]:
    """``[0.5, 0.3]``, brackets optional. Raises Fault for anything else."""
    body = text.strip()
    if body.startswith("[") and body.endswith("]"):
        body = body[1:-1]
    try:
        return [float(part) for part in body.split(",")]
    except ValueError:
        raise Fault("numbers_not_a_list", option=option, example=example) from None
