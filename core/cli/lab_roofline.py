"""``lab roofline``: what this machine can do, and what a model's passes make of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from core.cli.lab_common import add_model, engine_of, to_the_end, written
from core.cli.numbers import whole
from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.models import local
from core.lab.roofline import DISTURBED, Roof
from core.lab.roofline_ops import Case, complete, counts_of, step_limit, total, waiting_share
from core.lab.roofline_run import measure
from core.lab.roofline_steps import BATCHES, CONTEXT, Steps, StepTime, value_bytes

MOST: Final = 1024


def add(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--batches",
        default=",".join(map(str, BATCHES)),
        metavar="N,N,…",
        help="texts at once in a decode step (default: %(default)s)",
    )
    parser.add_argument(
        "--context",
        default=str(CONTEXT),
        metavar="N",
        help="positions read, and seen by a step (default: %(default)s)",
    )


def run(typed: argparse.Namespace) -> None:
    """Measure both, keep them for the pages, and write them. Raises Fault."""
    batches = tuple(_number("batches", part, MOST) for part in typed.batches.split(","))
    context = _number("context", typed.context, 2**20)

    def make() -> dict[str, Any]:
        engine = local(engine_of(typed))
        one = Case("decode", 1, 2)
        if not complete(counts_of(engine, one, 4), engine.info, one):
            raise Fault("passes_not_counted")
        found = to_the_end(measure(engine, context=context, batches=batches))
        if found.roof is None or found.steps is None:
            raise KeyboardInterrupt
        return record(found.roof, found.steps, engine, found.instead_of)

    written(typed, make, _lines)


def _number(name: str, text: str, high: int) -> int:
    found = whole(name, text)
    if found is None or not 1 <= found <= high:
        raise Fault("setting_out_of_range", name=name, value=text, low=1, high=high)
    return found


def record(
    roof: Roof, steps: Steps, engine: Engine, instead_of: Roof | None = None
) -> dict[str, Any]:
    """Plain values; times in milliseconds, and each pass with its limit. ``instead_of`` is what
    was measured where an earlier roof stands."""
    return {
        "measured_on": asdict(roof.machine),
        "roof": {
            "bandwidth_gb_s": roof.bandwidth,
            "gflop_s": {name: roof.rate(name) for name in ("fp32", "bf16")},
            "slowest_by_quickest": roof.unrest,
            "ridge_flops_a_byte": {name: roof.ridge(name) for name in ("fp32", "bf16")},
            "probes": [
                {**asdict(probe), "gb_s": probe.bandwidth, "gflop_s": probe.rate}
                for probe in roof.probes
            ],
        },
        "kept_instead_of": None
        if instead_of is None
        else {
            "date": instead_of.machine.date,
            "bandwidth_gb_s": instead_of.bandwidth,
            "slowest_by_quickest": instead_of.unrest,
        },
        "model": steps.model,
        "dtype": steps.dtype,
        "complete": steps.done,
        "passes": [_pass(time, roof, steps.dtype, engine) for time in steps.times],
    }


def _pass(time: StepTime, roof: Roof, dtype: str, engine: Engine) -> dict[str, Any]:
    found = counts_of(engine, time.case, value_bytes(engine.info))
    limit = step_limit(found, roof, dtype)
    flops, moved = total(found)
    return {
        **asdict(time.case),
        "flops": flops,
        "bytes": moved,
        "measured_ms": asdict(time.time),
        "limit_ms": limit,
        "share_of_limit": limit / time.time.median,
        "measured_by_limit": time.time.median / limit,
        "waiting_share": waiting_share(found, roof, dtype),
        "tokens_per_second": time.tokens_per_second,
        "operations": [
            {
                "kind": count.kind,
                "flops": count.flops,
                "bytes": count.bytes,
                "weights_bytes": count.weights,
                "kv_bytes": count.kv,
                "activation_bytes": count.activations,
                "flops_a_byte": count.intensity,
                "attainable_gflop_s": roof.attainable(count.intensity, dtype),
                "limit_ms": count.limit(roof, dtype),
            }
            for count in found
        ],
        "measured_parts_ms": dict(time.parts),
    }


def _lines(found: dict[str, Any]) -> Iterator[str]:
    here, roof = found["measured_on"], found["roof"]
    yield f"measured on {here['processor']}, {here['threads']} threads, {here['date']}"
    yield (
        f"memory {roof['bandwidth_gb_s']:,.1f} GB/s · matrix products "
        f"{roof['gflop_s']['fp32']:,.0f} GFLOP/s (fp32), {roof['gflop_s']['bf16']:,.0f} (bf16)"
    )
    yield ""
    yield f"{found['model']} ({found['dtype']})"
    yield (
        f"{'pass':<9}{'batch':>6}{'tokens':>8}{'measured':>12}{'limit':>10}{'share':>8}"
        f"{'waiting':>9}{'tokens/s':>11}"
    )
    for each in found["passes"]:
        yield (
            f"{each['phase']:<9}{each['batch']:>6}{each['tokens']:>8}"
            f"{each['measured_ms']['median']:>9.1f} ms{each['limit_ms']:>7.1f} ms"
            f"{each['share_of_limit']:>8.0%}{each['waiting_share']:>9.0%}"
            f"{each['tokens_per_second']:>11,.0f}"
        )
    yield ""
    yield "measured: median of repeats in turns; limit: no program can be faster; waiting: the"
    yield "share of the limit in which the arithmetic waits for memory"
    if found["kept_instead_of"]:
        yield from _kept(here["date"], roof, found["kept_instead_of"])
    if roof["slowest_by_quickest"] > DISTURBED:
        yield restless(roof["slowest_by_quickest"])
    if not found["complete"]:
        yield "stopped before the end"


def restless(unrest: float) -> str:
    """The warning of a disturbed measurement."""
    return (
        f"something else was running (one call took {unrest:.1f} times as long as its quickest "
        "repeat); the machine can do more than this"
    )


def _kept(date: str, roof: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    yield (
        f"kept the earlier roof of {date}, because something else was running now: one call took "
        f"{new['slowest_by_quickest']:.1f} times as long as its quickest repeat "
        f"({new['bandwidth_gb_s']:,.1f} GB/s instead of {roof['bandwidth_gb_s']:,.1f});"
    )
    yield "the passes above were taken now, so they may be slower than they need to be"
