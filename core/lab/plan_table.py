"""Plans as rows: one for each combination that was asked for, with the same keys everywhere."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from core.faults import Fault
from core.lab.plan import Device, Load, Plan, Precision, plan
from core.lab.shape import ModelShape

MOST_ROWS: Final = 2000
COLUMNS: Final = (
    "model", "device", "precision", "batch", "prompt", "new", "tensor_parallel",
    "pipeline_parallel", "weights_gb", "kv_gb", "activations_gb", "needed_gb", "device_gb",
    "fits", "first_token_ms", "per_token_ms", "tokens_per_second", "bound",
    "waiting_share", "communication_ms", "communication_mb", "kind", "why_not",
)  # fmt: skip


@dataclass(frozen=True)
class Planned:
    """One combination: its plan, or why there is none."""

    shape: ModelShape
    device: Device
    load: Load
    plan: Plan | None
    fault: Fault | None = None


def planned(shape: ModelShape, device: Device, load: Load) -> Planned:
    """The plan, or its fault. Raises nothing."""
    try:
        return Planned(shape, device, load, plan(shape, device, load))
    except Fault as fault:
        return Planned(shape, device, load, None, fault)


def combinations(
    shape: ModelShape,
    among: Sequence[Device],
    load: Load,
    *,
    precisions: Sequence[Precision] = (),
    batches: Sequence[int] = (),
    tensor: Sequence[int] = (),
    pipeline: Sequence[int] = (),
) -> tuple[Planned, ...]:
    """Every device with every value; what is left out stays as in ``load``.

    Raises Fault for more than MOST_ROWS, and for values that are not allowed.
    """
    widths, counts = precisions or (load.precision,), batches or (load.batch,)
    ranks, stages = tensor or (load.tensor_parallel,), pipeline or (load.pipeline_parallel,)
    count = len(among) * len(widths) * len(counts) * len(ranks) * len(stages)
    if count > MOST_ROWS:
        raise Fault("too_many_plans", count=count, most=MOST_ROWS)
    loads = [
        replace(load, precision=p, batch=b, tensor_parallel=t, pipeline_parallel=s)
        for p in widths
        for b in counts
        for t in ranks
        for s in stages
    ]
    return tuple(planned(shape, device, each) for device in among for each in loads)


def row(found: Planned) -> dict[str, Any]:
    """Plain values under COLUMNS; sizes of one device, times in milliseconds. All is theory."""
    load, made = found.load, found.plan
    known: dict[str, Any] = {
        "model": found.shape.name, "device": found.device.name, "precision": load.precision,
        "batch": load.batch, "prompt": load.prompt, "new": load.new,
        "tensor_parallel": load.tensor_parallel, "pipeline_parallel": load.pipeline_parallel,
        "device_gb": found.device.memory, "kind": "theory",
        "why_not": str(found.fault) if found.fault else None,
    }  # fmt: skip
    if made is not None:
        known |= {
            "weights_gb": made.weights / 1e9, "kv_gb": made.kv / 1e9,
            "activations_gb": made.activations / 1e9, "needed_gb": made.memory / 1e9,
            "fits": made.fits, "first_token_ms": made.first_token * 1e3,
            "per_token_ms": made.per_token * 1e3, "tokens_per_second": made.tokens_per_second,
            "bound": made.bound, "waiting_share": made.waiting_share,
            "communication_ms": made.communication * 1e3,
            "communication_mb": made.communication_bytes / 1e6,
        }  # fmt: skip
    return {name: known.get(name) for name in COLUMNS}


def as_csv(rows: Iterable[dict[str, Any]]) -> str:
    """The rows with a header, as spreadsheets read them; numbers with six digits."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for each in rows:
        writer.writerow({name: _cell(value) for name, value in each.items()})
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str) and value[:1] in "=+-@\t\r":
        # A spreadsheet would run it as a formula.
        return "'" + value
    return value
