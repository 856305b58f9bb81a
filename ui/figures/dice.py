"""The dice of a step as data for the component that throws them. Pure."""

from __future__ import annotations

from typing import Any, Final

from core.decode.draw import uniform
from core.settings import MAX_SEED, Settings
from core.trace import Choice

EARLIER: Final = 8
"""Earlier throws of a step that are still shown."""


def dice_data(choice: Choice, settings: Settings, step: int) -> dict[str, Any]:
    """The seed, and every number that the dice of ``step`` have shown so far (the last few)."""
    roll = settings.roll_at(step)
    return {
        # A text: browsers round large numbers.
        "seed": str(settings.seed),
        "most": str(MAX_SEED),
        "roll": roll,
        "u": choice.u,
        "before": []
        if choice.u is None
        else [uniform(settings.seed, step, r) for r in range(max(0, roll - EARLIER), roll)],
    }
