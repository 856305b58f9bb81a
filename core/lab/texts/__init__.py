"""The texts on which edited models are judged. They were written for this project, so no model
has learned them by heart."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from core.edits import CALIBRATION_TEXT

NAMES: Final = ("prose", "facts", "code", "chinese")
CALIBRATION: Final = "calibration"
"""Another text, for methods that look at data; none of the judging texts is in it."""


@cache
def text(name: str) -> str:
    """The text ``name``, one of NAMES or CALIBRATION."""
    if name not in (*NAMES, CALIBRATION):
        raise KeyError(name)
    if name == CALIBRATION:
        return CALIBRATION_TEXT.read_text(encoding="utf-8").strip()
    return (Path(__file__).parent / f"{name}.txt").read_text(encoding="utf-8").strip()
