"""What a stage works with, in a few letters. Pure."""

from __future__ import annotations

from typing import Final

LONGEST: Final = 24
"""Letters of a banned text or a pattern."""


def shortened(text: str, longest: int = LONGEST) -> str:
    """The beginning of a text, with an ellipsis where something is left out."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def stage_value(parameter: float | int | str | None, off: str) -> str:
    """0.9, 50, “foo · bar”; ``off`` for a stage that is off."""
    if parameter is None:
        return off
    if isinstance(parameter, str):
        return shortened(" · ".join(parameter.split("\n")))
    return f"{parameter:g}"
