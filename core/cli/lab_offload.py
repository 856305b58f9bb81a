"""``lab offload``: the model where memory does not hold all of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from core.amounts import in_bytes
from core.cli import lab_common as common
from core.cli.lab_tensor_parallel import add_record, keep
from core.cli.numbers import number
from core.lab.parallel.offload import offload_turns
from core.lab.parallel.records import OffloadRun


def add(parser: argparse.ArgumentParser) -> None:
    common.add_prompt(parser)
    common.add_model(parser)
    add_record(parser)
    parser.add_argument(
        "--share",
        metavar="S",
        default="0.5",
        help="of the weights that memory may hold, such as 0.25 (default: %(default)s)",
    )


def run(typed: argparse.Namespace) -> None:
    """Raises Fault for a share that is none, and where a worker fails."""
    share = number("share", typed.share) or 0.0

    def make() -> dict[str, Any]:
        engine = common.engine_of(typed)
        ids = common.ids_of(engine, typed.prompt)
        found = common.to_the_end(offload_turns(engine, typed.model, ids, share))
        if not found.done:
            raise KeyboardInterrupt
        keep(typed, found)
        return {"model": engine.info.name, **record(found)}

    common.written(typed, make, _lines)


def record(run: OffloadRun) -> dict[str, Any]:
    """Plain values; bytes and milliseconds."""
    assert run.step is not None
    assert run.whole_step is not None
    return {
        "measured_on": None if run.machine is None else asdict(run.machine),
        "share": run.share,
        "weights_bytes": run.whole_bytes,
        "in_memory_bytes": run.held_bytes,
        "places": [asdict(place) for place in run.places],
        "whole_step_ms": asdict(run.whole_step),
        "step_ms": asdict(run.step),
        "step_ratio": run.step.median / run.whole_step.median,
        "difference": run.difference,
    }


def _lines(found: dict[str, Any]) -> Iterator[str]:
    yield (
        f"{found['model']}: {in_bytes(found['in_memory_bytes'])} of "
        f"{in_bytes(found['weights_bytes'])} in memory"
    )
    for place in found["places"]:
        yield (
            f"{place['where']:<6}{in_bytes(place['bytes']):>9}  {place['first']} … "
            f"{place['last']} (modules: {place['modules']})"
        )
    yield (
        f"a step: {found['step_ms']['median']:,.1f} ms, with all in memory "
        f"{found['whole_step_ms']['median']:,.1f} ms: × {found['step_ratio']:.2f}"
    )
    yield f"largest difference of the logits: {found['difference']:.2g}"
