"""What ``lab quantize --record`` measured of the packaged models, kept in a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from core.edits.grid import Grid
from core.edits.spec import Rounding
from core.lab.machine import Machine
from core.lab.quantize_records import CURVES, OnGrid, Origin, Point, Speed, Stored, Sweep, line
from core.lab.timing import Spread

FILE: Final = Path(__file__).with_name("quantize_recorded.json")
COMMAND: Final = ".venv/bin/python -m core lab quantize --model {name} --record"
"""What measures all of it again."""
WITH_HEAD: Final = (Grid(span="channel"), Grid(span="group", group=64, symmetric=False))
"""The curves that are recorded with the LM head rounded, too."""


@dataclass(frozen=True)
class Recorded:
    """All that was recorded of one model."""

    origin: Origin
    sweep: Sweep
    speed: Speed


def recorded_settings() -> tuple[Rounding, ...]:
    """Every setting that is recorded, curve by curve."""
    plain = [setting for curve in CURVES for setting in line(curve)]
    return (*plain, *(setting for curve in WITH_HEAD for setting in line(curve, head=True)))


@cache
def recorded(model: str) -> Recorded | None:
    """What is known of a model by its name; ``None`` where nothing is."""
    found = _read(FILE).get(model)
    return None if found is None else _recorded(found)


def record(model: str, found: Recorded, path: Path = FILE) -> None:
    """Write the file; what is known of other models, and of other settings, is kept."""
    known = _read(path)
    sweep = _short(found.sweep)
    if model in known:
        measured = {point.edit for point in sweep.points}
        old = _recorded(known[model]).sweep.points
        kept = tuple(point for point in old if point.edit not in measured)
        sweep = replace(sweep, points=(*kept, *sweep.points))
    table = {**known, model: asdict(replace(found, sweep=sweep))}
    text = json.dumps(dict(sorted(table.items())), indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    recorded.cache_clear()


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _short(sweep: Sweep) -> Sweep:
    """Five digits of each number: the rest is another machine's rounding."""

    def cut(x: float) -> float:
        return float(f"{x:.5g}")

    points = (
        replace(p, kl=cut(p.kl), top1=cut(p.top1), perplexity=cut(p.perplexity), error=cut(p.error))
        for p in sweep.points
    )
    return replace(sweep, points=tuple(points), perplexity=cut(sweep.perplexity))


def _recorded(table: dict[str, Any]) -> Recorded:
    origin, sweep, speed = table["origin"], table["sweep"], table["speed"]
    grids = tuple(OnGrid(**{**one, "grid": Grid(**one["grid"])}) for one in origin["grids"])
    points = tuple(Point(**point) for point in sweep["points"])
    rows = tuple(
        Stored(**{**row, "step": Spread(**row["step"]), "prefill": Spread(**row["prefill"])})
        for row in speed["rows"]
    )
    return Recorded(
        origin=Origin(**{**origin, "grids": grids}),
        sweep=Sweep(**{**sweep, "points": points, "machine": Machine(**sweep["machine"])}),
        speed=Speed(
            **{
                **speed,
                "rows": rows,
                "missing": tuple(speed["missing"]),
                "machine": Machine(**speed["machine"]),
            }
        ),
    )
