"""The whole measurement: the machine's roof, then the loaded model's passes, kept for next time."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from core.lab.models import local
from core.lab.roofline import Roof, measure_roof
from core.lab.roofline_steps import Steps, measure_steps
from core.lab.roofline_store import (
    recorded,
    save_roof,
    save_steps,
    standing_roof,
    stored_roof,
    stored_steps,
)

if TYPE_CHECKING:
    from core.engine.protocol import Engine

ROOF_SHARE: Final = 0.2
"""Of the progress; about its share of the time."""


@dataclass(frozen=True)
class Measured:
    """What is known so far."""

    roof: Roof | None = None
    steps: Steps | None = None
    """``None`` also where no model is measured."""
    progress: float = 0.0
    instead_of: Roof | None = None
    """What was measured just now, where ``roof`` is an earlier one that stands: the new one was
    disturbed."""

    @property
    def done(self) -> bool:
        return self.progress >= 1


def measure(
    engine: Engine | None, *, context: int | None = None, batches: tuple[int, ...] = (),
    repeats: int | None = None,
) -> Generator[Measured, None, None]:  # fmt: skip
    """Measure this machine and, where there is one, the model; keep what is complete.

    Yields after each call and pass. Raises Fault for an engine without weights, and where the
    disk refuses.
    """
    asked = {"context": context, "batches": batches, "repeats": repeats}
    given = {name: value for name, value in asked.items() if value}
    if engine is not None:
        local(engine)  # said before anything is measured
    now = Measured()
    for turn in measure_roof(engine.info.device if engine else "cpu"):
        whole = ROOF_SHARE if engine else 1.0
        # The last word is said below, when everything is on the disk.
        now = Measured(turn.roof, progress=min(turn.progress * whole, 0.99))
        yield now
    if now.roof is not None:
        now = _standing(now.roof)
    if engine is not None:
        for steps in measure_steps(engine, **given):  # type: ignore[arg-type]
            share = ROOF_SHARE + (1 - ROOF_SHARE) * steps.progress
            now = replace(now, steps=steps, progress=min(share, 0.99))
            yield now
        # Passes of a busy moment don't replace those of the calm one that stands, either.
        if now.steps is not None and not (now.instead_of and _known(now.steps)):
            save_steps(now.steps)
    yield replace(now, progress=1.0)


def _standing(new: Roof) -> Measured:
    """The roof that stands from now on, on the disk. Raises Fault where the disk refuses."""
    stands = standing_roof(new)
    if stands is new:
        save_roof(new)
    return Measured(stands, progress=ROOF_SHARE, instead_of=None if stands is new else new)


def _known(steps: Steps) -> bool:
    found = stored_steps(steps.model)
    return found is not None and found.dtype == steps.dtype


@dataclass(frozen=True)
class Known:
    """The latest measurement at hand: roof and passes of one machine, never of two."""

    roof: Roof
    steps: Steps | None
    here: bool
    """Measured on this machine; otherwise it comes with the project."""


def known(model: str | None, dtype: str = "fp32") -> Known:
    """What this machine measured of itself and ``model``, or else what was recorded."""
    roof = stored_roof()
    if roof is not None:
        found = stored_steps(model) if model else None
        return Known(roof, found if found and found.dtype == dtype else None, True)
    return known_before(model, dtype)


def known_before(model: str | None, dtype: str = "fp32") -> Known:
    """What comes with the project."""
    roof, every = recorded()
    steps = every.get(model or "")
    return Known(roof, steps if steps and steps.dtype == dtype else None, False)
