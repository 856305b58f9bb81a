"""What would fit, and how far the bounds are from what was measured: here, and elsewhere."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from core.faults import Fault
from core.lab.plan import WEIGHT_BYTES, Device, Load, Plan, Precision, devices, plan
from core.lab.roofline import Roof
from core.lab.roofline_steps import Steps
from core.lab.shape import ModelShape
from core.lab.shape_presets import presets

PUBLISHED: Final = Path(__file__).with_name("plan_published.toml")
HERE: Final = "this machine"
MOST_RANKS: Final = 64
MOST_BATCH: Final = 4096


def of_machine(roof: Roof) -> Device:
    """A machine as a device, by its own measurement; it stands alone."""
    found = roof.machine
    return Device(
        name=HERE,
        memory=found.memory / 1e9,
        bandwidth=roof.bandwidth,
        fp32=roof.rate("fp32") / 1000,
        bf16=roof.rate("bf16") / 1000,
        link=0.0,
        source=found.processor,
        date=found.date,
    )


def device_named(name: str, here: Device | None = None) -> Device:
    """The device of that name, or of one part of its name that no other has. Raises Fault."""
    known = [*devices(), *([here] if here else [])]
    wanted = name.strip().lower()
    exact = [device for device in known if device.name.lower() == wanted]
    near = exact or [device for device in known if wanted and wanted in device.name.lower()]
    if len(near) == 1:
        return near[0]
    raise Fault("unknown_device", value=name, allowed=", ".join(d.name for d in known))


# ---------------------------------------------------------------- what would fit


@dataclass(frozen=True)
class Advice:
    """Changes of one thing each, with everything else as it was asked."""

    precision: Precision | None
    """The widest numbers with which it fits; ``None``: none do."""
    ranks: int | None
    """The fewest tensor-parallel devices on which it fits."""
    batch: int
    """The most texts at once with which it fits; 0: not even one."""


def advise(shape: ModelShape, device: Device, load: Load) -> Advice:
    """What to change, or how much room is left. Raises nothing."""
    widths = [p for p in WEIGHT_BYTES if _fits(shape, device, replace(load, precision=p))]
    ranks = range(1, MOST_RANKS + 1)
    many = (n for n in ranks if _fits(shape, device, replace(load, tensor_parallel=n)))
    return Advice(widths[0] if widths else None, next(many, None), _batch(shape, device, load))


def _fits(shape: ModelShape, device: Device, load: Load) -> bool:
    try:
        return plan(shape, device, load).fits
    except Fault:
        return False


def _batch(shape: ModelShape, device: Device, load: Load) -> int:
    """By halving: memory only grows with the batch."""
    if not _fits(shape, device, replace(load, batch=1)):
        return 0
    low, high = 1, MOST_BATCH
    while low < high:
        middle = (low + high + 1) // 2
        if _fits(shape, device, replace(load, batch=middle)):
            low = middle
        else:
            high = middle - 1
    return low


# ---------------------------------------------------------------- measured ÷ theory

What = Literal["per_token", "first_token", "whole"]


@dataclass(frozen=True)
class Beside:
    """One measurement with its bound."""

    model: str
    device: str
    load: Load
    what: What
    milliseconds: float
    """Measured."""
    theory: float
    """Milliseconds at least."""
    source: str
    date: str

    @property
    def ratio(self) -> float:
        """Measured ÷ theory."""
        return self.milliseconds / self.theory


def bound(found: Plan, load: Load, what: What) -> float:
    """Milliseconds of the plan for one token, the first one, or the whole answer."""
    seconds = {
        "per_token": found.per_token,
        "first_token": found.first_token,
        "whole": found.first_token + (load.new - 1) * found.per_token,
    }
    return seconds[what] * 1000


@cache
def published() -> tuple[Beside, ...]:
    """What others measured, beside the bounds of this planner."""
    with PUBLISHED.open("rb") as file:
        entries = tomllib.load(file)["measured"]
    return tuple(_beside(entry) for entry in entries)


def _beside(entry: dict[str, Any]) -> Beside:
    keys = ("precision", "batch", "prompt", "new", "tensor_parallel")
    load = Load(**{key: entry[key] for key in keys if key in entry})
    device = device_named(entry["device"])
    found = plan(presets()[entry["model"]].shape, device, load)
    return Beside(
        entry["model"], device.name, load, entry["what"], float(entry["milliseconds"]),
        bound(found, load, entry["what"]), entry["source"], entry["date"],
    )  # fmt: skip


def measured_here(shape: ModelShape, roof: Roof, steps: Steps) -> Iterator[Beside]:
    """What this machine took for the loaded model, beside the bounds for it."""
    device = of_machine(roof)
    for step in steps.times:
        case = step.case
        decode = case.phase == "decode"
        # A decode step after ``new`` / 2 = 1 further token sees the prompt and itself.
        load = Load(
            precision="fp32" if steps.dtype == "fp32" else "bf16",
            batch=case.batch,
            prompt=max(1, case.tokens - 1) if decode else case.tokens,
            new=2 if decode else 1,
        )
        what: What = "per_token" if decode else "first_token"
        theory = bound(plan(shape, device, load), load, what)
        yield Beside(
            steps.model, device.name, load, what, step.time.median, theory,
            steps.machine.processor, steps.machine.date,
        )  # fmt: skip
