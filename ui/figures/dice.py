"""The dice of a step as data for the component that throws them. Pure."""

from __future__ import annotations

from typing import Any, Final

from core.decode.draw import uniform
from core.settings import MAX_SEED, Settings
from core.trace import Choice
from ui.i18n import Catalog

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


def rolls_text(dice: dict[str, Any], t: Catalog) -> str:
    """u, and where it came from: "thrown again 2 times: u 0.412 → 0.834"."""
    u = f"{dice['u']:.3f}"
    if not dice["before"]:
        return t("generate.needle", u=u)
    before = [f"{x:.3f}" for x in dice["before"][-3:]]
    if dice["roll"] > len(before):
        before.insert(0, "…")
    key = "generate.rolls_one" if dice["roll"] == 1 else "generate.rolls_n"
    return t(key, n=f"{dice['roll']:,}", before=" → ".join(before), u=u)
