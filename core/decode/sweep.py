"""One parameter over a range: a strategy as many columns.

Written ``temperature:0:2:9``: the parameter, its lowest and highest value, and how many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from core.compare_records import Column
from core.decode.columns import spell_number
from core.faults import Fault
from core.settings import BeamSettings, Settings

MOST: Final = 25
"""Values of one sweep."""


class Range(NamedTuple):
    """How a parameter is swept when nothing else is said."""

    field: str
    low: float
    high: float
    values: int
    whole: bool = False
    even: bool = True
    """Equal steps; else equal ratios."""


RANGES: Final = MappingProxyType(
    {
        "temperature": Range("temperature", 0, 2, 9),
        "top_k": Range("top_k", 1, 1000, 10, whole=True, even=False),
        "top_p": Range("top_p", 0.1, 1, 10),
        "min_p": Range("min_p", 0, 0.5, 6),
        "typical_p": Range("typical_p", 0.1, 1, 10),
        "repetition_penalty": Range("repetition_penalty", 1, 2, 6),
        "presence_penalty": Range("presence_penalty", 0, 2, 5),
        "frequency_penalty": Range("frequency_penalty", 0, 2, 5),
        "beams": Range("width", 1, 8, 8, whole=True),
        "length_penalty": Range("length_penalty", -1, 2, 7),
    }
)
BEAMS: Final = ("beams", "length_penalty")
"""Those of a beam search."""


@dataclass(frozen=True)
class Sweep:
    """Raises Fault for an unknown parameter, a wrong order, or too many values."""

    name: str
    low: float
    high: float
    count: int

    def __post_init__(self) -> None:
        if self.name not in RANGES:
            raise Fault("sweep_unknown", name=self.name, allowed=", ".join(RANGES))
        if not 2 <= self.count <= MOST:
            raise Fault("sweep_count", count=self.count, most=MOST)
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise Fault("sweep_backwards", low=self.low, high=self.high)

    @property
    def values(self) -> tuple[float, ...]:
        """From low to high, in equal steps or, for top-k, in equal ratios.

        Rounded to what people would type; whole numbers each once, so they may be fewer.
        """
        kind = RANGES[self.name]
        even = kind.even or self.low <= 0
        places = [place / (self.count - 1) for place in range(self.count)]
        if even:
            found = [self.low + (self.high - self.low) * place for place in places]
        else:
            found = [self.low * (self.high / self.low) ** place for place in places]
        rounding: Callable[[float], float] = round if kind.whole else _tidy
        return tuple(dict.fromkeys(map(rounding, found)))


def _tidy(value: float) -> float:
    return round(value, 6) + 0.0  # no -0.0


def parse_sweep(text: str) -> Sweep:
    """``NAME:LOW:HIGH:COUNT``, or ``NAME`` alone for its usual range. Raises Fault."""
    name, *rest = (part.strip() for part in text.split(":"))
    name = name.replace("-", "_").lower()
    if name in RANGES and not rest:
        usual = RANGES[name]
        return Sweep(name, usual.low, usual.high, usual.values)
    try:
        low, high, count = float(rest[0]), float(rest[1]), int(rest[2])
        if len(rest) != 3:
            raise ValueError
    except (ValueError, IndexError):
        raise Fault("sweep_not_understood", value=text) from None
    return Sweep(name, low, high, count)


def spell_sweep(sweep: Sweep) -> str:
    """``parse_sweep`` gives the same sweep again."""
    ends = f"{spell_number(float(sweep.low))}:{spell_number(float(sweep.high))}"
    return f"{sweep.name}:{ends}:{sweep.count}"


def fits(settings: Settings | BeamSettings, name: str) -> bool:
    """Whether a strategy has what ``name`` changes: beams, dice, or scores to be punished."""
    if isinstance(settings, BeamSettings):
        return name in BEAMS
    return name not in BEAMS and (name.endswith("_penalty") or settings.strategy == "sample")


def sweep_columns(base: Column, sweep: Sweep) -> tuple[Column, ...]:
    """``base`` with each value. Raises Fault for a value that the parameter cannot have.

    A parameter of beam search needs a beam search, and the others need dice: where ``base`` is
    not of that kind, the usual one takes its place. Penalties also change greedy.
    """
    field, settings = RANGES[sweep.name].field, base.settings
    usable: Settings | BeamSettings
    if sweep.name in BEAMS:
        usable = settings if isinstance(settings, BeamSettings) else BeamSettings()
    elif isinstance(settings, BeamSettings):
        usable = Settings()
    elif sweep.name.endswith("_penalty"):
        usable = settings
    else:
        usable = replace(settings, strategy="sample")
    for end in (sweep.low, sweep.high):
        # Between ends that are legal there are no numbers too large to be computed with.
        _with(usable, field, round(end) if RANGES[sweep.name].whole else end)
    return tuple(replace(base, settings=_with(usable, field, value)) for value in sweep.values)


def _with(settings: Settings | BeamSettings, field: str, value: float) -> Settings | BeamSettings:
    changed: dict[str, Any] = {field: value}
    if field == "width" and isinstance(settings, BeamSettings):
        # Fewer beams cannot give more texts than there are.
        fits = settings.nbest is None or settings.nbest <= value
        changed |= {} if fits else {"nbest": None}
    return replace(settings, **changed)
