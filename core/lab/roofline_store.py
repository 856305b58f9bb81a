"""Measurements that outlast the program: a small file each in the folder of everything this
project keeps, checked when it is read.

A file that is missing, broken, or from another machine is as good as none.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from core.lab.machine import Machine, cores, processor
from core.lab.roofline import DTYPES, Probe, Roof
from core.lab.roofline_ops import PHASES, Case
from core.lab.roofline_steps import Steps, StepTime
from core.lab.timing import Spread
from core.models import cache

FORMAT: Final = 1
"""Raised when the probes change, so that older results are measured anew."""
RECORDED: Final = Path(__file__).with_name("roofline_recorded.json")
"""Results that come with the project, for a first look: measured with ``lab roofline``."""
LARGEST: Final = 200_000
"""Bytes of a file that is read at all."""


def folder() -> Path:
    return cache.home() / "lab"


def save_roof(roof: Roof) -> Path:
    """Keep the roof in place of an older one. Raises Fault where the disk refuses."""
    return _write("roofline", {"format": FORMAT, **asdict(roof)})


def standing_roof(new: Roof) -> Roof:
    """The roof that stands once ``new`` was measured: a disturbed one never replaces a calm one
    of the same device, because it tells what was left of the machine, not what it can do."""
    before = stored_roof()
    known = before is not None and before.machine.device == new.machine.device
    return before if before and known and new.disturbed and not before.disturbed else new


def save_steps(steps: Steps) -> Path:
    """Keep the times of one model in place of older ones. Raises Fault where the disk refuses."""
    return _write(_name(steps.model), {"format": FORMAT, **asdict(steps)})


def stored_roof() -> Roof | None:
    """The roof of this machine, if it was measured."""
    found = roof_of(_read(folder() / "roofline.json"))
    return found if found is not None and _here(found.machine) else None


def stored_steps(model: str) -> Steps | None:
    """The times of ``model`` on this machine, if they were measured."""
    found = steps_of(_read(folder() / f"{_name(model)}.json"))
    known = found is not None and found.model == model and _here(found.machine)
    return found if known else None


def recorded() -> tuple[Roof, dict[str, Steps]]:
    """What another machine measured: its roof, and the times of the packaged models."""
    table = _read(RECORDED)
    roof = roof_of(table.get("roof") if table else None)
    assert table is not None
    assert roof is not None
    every = [steps_of(entry) for entry in table["steps"]]
    return roof, {steps.model: steps for steps in every if steps is not None}


# ---------------------------------------------------------------- files


def _here(found: Machine) -> bool:
    return (found.processor, found.cores) == (processor(), cores())


def _name(model: str) -> str:
    """A file name; the hash keeps two models apart whose names are written alike."""
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", model).strip(".-")[:60]
    return f"steps-{plain}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"


def _write(name: str, content: dict[str, Any]) -> Path:
    target = folder() / f"{name}.json"
    with cache.disk_faults(name, LARGEST):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(prefix=f".{name}-", dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(content, file, ensure_ascii=False, indent=1, allow_nan=False)
            Path(partial).chmod(0o644)
            Path(partial).replace(target)
        finally:
            Path(partial).unlink(missing_ok=True)
    return target


def _read(path: Path) -> dict[str, Any] | None:
    try:
        if path.stat().st_size > LARGEST:
            return None
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


# ---------------------------------------------------------------- records


def roof_of(table: Any) -> Roof | None:
    """The record of a table as it was written; ``None`` for anything else."""
    try:
        if table["format"] != FORMAT:
            return None
        probes = tuple(_probe(entry) for entry in table["probes"])
        found = Roof(_machine(table["machine"]), probes)
        known = {(probe.kind, probe.dtype) for probe in probes}
        wanted = {("read", "fp32"), *(("gemm", dtype) for dtype in DTYPES)}
    except (KeyError, TypeError, ValueError):
        return None
    return found if wanted <= known else None


def steps_of(table: Any) -> Steps | None:
    """The same for the times of a model."""
    try:
        if table["format"] != FORMAT:
            return None
        times = tuple(_time(entry) for entry in table["times"])
        model, dtype = _text(table["model"]), _text(table["dtype"])
        return Steps(model, dtype, _machine(table["machine"]), times) if times else None
    except (KeyError, TypeError, ValueError):
        return None


def _probe(table: Any) -> Probe:
    kind, dtype = table["kind"], table["dtype"]
    if kind not in ("read", "gemv", "gemm") or dtype not in DTYPES:
        raise ValueError(kind)
    return Probe(
        kind, dtype, _whole(table["bytes"]), _whole(table["flops"]), _spread(table["time"])
    )


def _time(table: Any) -> StepTime:
    case = table["case"]
    if case["phase"] not in PHASES:
        raise ValueError(case)
    parts = tuple((_text(name), _number(value, 0.0)) for name, value in table["parts"])
    return StepTime(
        Case(case["phase"], _whole(case["batch"]), _whole(case["tokens"])),
        _spread(table["time"]),
        parts,
    )


def _machine(table: Any) -> Machine:
    return Machine(
        processor=_text(table["processor"]),
        cores=_whole(table["cores"]),
        threads=_whole(table["threads"]),
        memory=_whole(table["memory"]),
        torch=_text(table["torch"]),
        device=_text(table["device"]),
        date=_text(table["date"]),
    )


def _spread(table: Any) -> Spread:
    median, low, high = (_number(table[name], 1e-9) for name in ("median", "low", "high"))
    if not low <= median <= high:
        raise ValueError(table)
    return Spread(median, low, high, _whole(table["repeats"]))


def _number(value: Any, least: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(value)
    if not (math.isfinite(value) and least <= value < 1e12):
        raise ValueError(value)
    return float(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(value)
    if not 1 <= value < 1 << 62:
        raise ValueError(value)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 300:
        raise ValueError(value)
    return value
