"""``lab pipeline``: the model cut crosswise, a batch on its way through real processes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from core.amounts import counted, in_bytes
from core.cli import lab_common as common
from core.cli.lab_tensor_parallel import add_record, keep, whole_of
from core.engine.protocol import Engine
from core.lab.parallel.pipeline import pipeline_turns
from core.lab.parallel.records import PipelineRun, Timeline
from core.lab.parallel.stages import BY, MICRO_BATCHES, check_micro_batches, stages_of


def add(parser: argparse.ArgumentParser) -> None:
    common.add_prompt(parser)
    common.add_model(parser)
    add_record(parser)
    put = parser.add_argument
    put("--ranks", metavar="W", default="2", help="stages, each a process (default: %(default)s)")
    put("--by", metavar="|".join(BY), default=BY[0], help="how layers are dealt (%(default)s)")
    put(
        "--micro-batches",
        metavar="N,N,…",
        default=",".join(map(str, MICRO_BATCHES)),
        help="pieces that the batch of 8 texts is cut into (default: %(default)s)",
    )


def run(typed: argparse.Namespace) -> None:
    """Raises Fault where the model cannot be cut so, or a worker fails."""
    stages = whole_of("ranks", typed.ranks)
    counts = tuple(
        check_micro_batches(whole_of("micro-batches", part))
        for part in typed.micro_batches.split(",")
    )

    def make() -> dict[str, Any]:
        engine = common.engine_of(typed)
        stages_of(engine.info, stages, typed.by)
        ids = common.ids_of(engine, typed.prompt)
        found = common.to_the_end(
            pipeline_turns(engine, typed.model, ids, stages, typed.by, tuple(dict.fromkeys(counts)))
        )
        if not found.done:
            raise KeyboardInterrupt
        keep(typed, found)
        return record(found, engine)

    common.written(typed, make, _lines)


def record(run: PipelineRun, engine: Engine) -> dict[str, Any]:
    """Plain values; bytes, milliseconds, layers as [first, one after the last]."""
    assert run.traffic is not None
    assert run.single is not None
    return {
        "measured_on": None if run.machine is None else asdict(run.machine),
        "model": engine.info.name,
        "by": run.plan.by,
        "stages": [
            {"layers": list(span), "multiplications_a_token": cost, "weights_bytes": held}
            for span, cost, held in zip(run.plan.layers, run.plan.cost, run.weights, strict=True)
        ],
        "batch": {"texts": run.texts, "tokens": run.length, "of_the_prompt": run.own},
        "single": {"weights_bytes": run.single_weights, "ms": asdict(run.single)},
        "traffic": {
            "calls": run.traffic.calls,
            "bytes": run.traffic.bytes,
            "theory_bytes": run.traffic.theory,
        },
        "difference": run.difference,
        "runs": [timeline_record(found) for found in run.runs],
    }


def timeline_record(found: Timeline) -> dict[str, Any]:
    return {
        "micro_batches": found.micro_batches,
        "ms": asdict(found.took),
        "bubble": found.bubble,
        "ideal_bubble": found.ideal,
        "bubble_of_these_stages": found.unequal,
        "difference": found.difference,
        "timeline": [
            {
                "stage": bar.stage,
                "micro_batch": bar.micro_batch,
                "start_ms": bar.start,
                "end_ms": bar.end,
            }
            for bar in found.bars
        ],
    }


def _lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found['model']} in {len(found['stages'])} stages, by {found['by']}"
    for place, stage in enumerate(found["stages"]):
        first, end = stage["layers"]
        yield (
            f"stage {place}: layers {first}–{end - 1}, {in_bytes(stage['weights_bytes'])}, "
            f"{stage['multiplications_a_token'] / 1e6:,.1f} M multiplications a token"
        )
    batch = found["batch"]
    yield (
        f"a batch of {counted(batch['texts'], 'text')} of {counted(batch['tokens'], 'token')}; "
        f"one process takes "
        f"{found['single']['ms']['median']:,.0f} ms"
    )
    yield ""
    yield f"{'micro-batches':<15}{'time':>10}{'bubble':>9}{'formula':>9}{'these stages':>14}"
    for run in found["runs"]:
        yield (
            f"{run['micro_batches']:<15}{run['ms']['median']:>7,.0f} ms{run['bubble']:>9.1%}"
            f"{run['ideal_bubble']:>9.1%}{run['bubble_of_these_stages']:>14.1%}"
        )
    yield ""
    sent = found["traffic"]
    yield f"sent: {sent['bytes']:,} bytes a batch (formula: {sent['theory_bytes']:,})"
    yield f"largest difference of the logits from one process: {found['difference']:.2g}"
