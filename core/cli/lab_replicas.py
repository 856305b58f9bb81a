"""``lab replicas``: copies of the model and batches on them, throughput against latency."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from core.amounts import in_bytes
from core.cli import lab_common as common
from core.cli.lab_tensor_parallel import add_record, keep
from core.faults import Fault
from core.lab.parallel.records import ReplicaRun
from core.lab.parallel.replicas import replica_turns

FORMATS: Final = ("float32", "bfloat16")


def add(parser: argparse.ArgumentParser) -> None:
    common.add_prompt(parser)
    common.add_model(parser)
    add_record(parser)
    parser.add_argument(
        "--dtype", metavar="|".join(FORMATS), help="number format (default: the model's own)"
    )


def run(typed: argparse.Namespace) -> None:
    """Raises Fault where a worker fails."""
    if typed.dtype not in (None, *FORMATS):
        raise Fault("no_such_dtype", dtype=typed.dtype, allowed=", ".join(FORMATS))

    def make() -> dict[str, Any]:
        engine = common.engine_of(typed)
        ids = common.ids_of(engine, typed.prompt)
        found = common.to_the_end(replica_turns(engine, typed.model, ids, typed.dtype))
        if not found.done:
            raise KeyboardInterrupt
        keep(typed, found)
        return {"model": engine.info.name, **record(found)}

    common.written(typed, make, _lines)


def record(run: ReplicaRun) -> dict[str, Any]:
    """Plain values; bytes and milliseconds."""
    return {
        "measured_on": None if run.machine is None else asdict(run.machine),
        "weights_bytes_a_copy": run.weights,
        "context": run.context,
        "dtype": run.dtype,
        "servings": [
            {
                "replicas": one.replicas,
                "batch": one.batch,
                "step_ms": asdict(one.step),
                "tokens_per_second": one.per_second,
            }
            for one in run.servings
        ],
    }


def _lines(found: dict[str, Any]) -> Iterator[str]:
    size = in_bytes(found["weights_bytes_a_copy"])
    yield f"{found['model']} ({found['dtype']}), {size} a copy"
    yield f"{'copies':<8}{'texts on each':>14}{'a token takes':>15}{'tokens/s':>10}"
    for one in found["servings"]:
        yield (
            f"{one['replicas']:<8}{one['batch']:>14}{one['step_ms']['median']:>12,.1f} ms"
            f"{one['tokens_per_second']:>10,.1f}"
        )
