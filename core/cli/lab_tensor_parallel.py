"""``lab tensor-parallel``: every layer cut lengthwise among real processes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from core.amounts import counted, in_bytes
from core.cli import lab_common as common
from core.cli.numbers import whole
from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.parallel import recorded
from core.lab.parallel.deal import WANTED, TensorPlan, plan_of
from core.lab.parallel.recorded import Run
from core.lab.parallel.records import PARTS, Rank, TensorRun, Traffic
from core.lab.parallel.tensor import tensor_turns

SHOWN: Final = 8
"""Components whose partial sums are listed: those with the largest summands."""


def add(parser: argparse.ArgumentParser) -> None:
    common.add_prompt(parser)
    common.add_model(parser)
    add_record(parser)
    put = parser.add_argument
    put("--ranks", metavar="W", default="3", help="worker processes (default: %(default)s)")
    put(
        "--attention",
        metavar="|".join(WANTED),
        default=WANTED[0],
        help="deal out its heads, or compute it whole on every rank (default: %(default)s)",
    )
    put("--layer", metavar="L", default="0", help="whose partial sums are listed (%(default)s)")
    put("--part", metavar="|".join(PARTS), default=PARTS[1], help="of it (default: %(default)s)")


def run(typed: argparse.Namespace) -> None:
    """Raises Fault where the model cannot be split so, or a worker fails."""
    ranks, layer = whole_of("ranks", typed.ranks), whole_of("layer", typed.layer)
    if typed.part not in PARTS:
        raise Fault("unknown_split", value=typed.part, allowed=", ".join(PARTS))

    def make() -> dict[str, Any]:
        engine = common.engine_of(typed)
        plan_of(engine.info, ranks, typed.attention)
        if not 0 <= layer < engine.info.layers:
            raise Fault("no_such_layer", layer=layer, last=engine.info.layers - 1)
        ids = common.ids_of(engine, typed.prompt)
        turns = tensor_turns(engine, typed.model, ids, ranks, typed.attention)
        found = common.to_the_end(turns)
        if not found.done:
            raise KeyboardInterrupt
        keep(typed, found)
        return record(found, engine, ids, layer, typed.part)

    common.written(typed, make, _lines)


def add_record(parser: argparse.ArgumentParser) -> None:
    """For whoever renews what the pages show at first."""
    parser.add_argument(
        "--record", action="store_true", help="also keep the result, for the page to show at first"
    )


def keep(typed: argparse.Namespace, found: Run) -> None:
    if typed.record:
        recorded.record(typed.model, found)


def whole_of(name: str, text: str) -> int:
    """Raises Fault for text that is no whole number."""
    found = whole(name, text)
    assert found is not None
    return found


def record(
    run: TensorRun, engine: Engine, ids: tuple[int, ...], layer: int, part: str
) -> dict[str, Any]:
    """Plain values; bytes, milliseconds, spans as [first, one after the last]."""
    assert run.single_step is not None
    slowest = max((r.step.median for r in run.ranks if r.step), default=0.0)
    measured = sum(t.bytes for t in run.step_traffic if t.kind in PARTS)
    return {
        "measured_on": None if run.machine is None else asdict(run.machine),
        "model": engine.info.name,
        "prompt": {"ids": list(ids), "tokens": len(ids)},
        "plan": plan_record(run.plan),
        "backend": run.backend,
        "ranks": [rank_record(rank) for rank in run.ranks],
        "single": {
            "weights_bytes": run.single_weights,
            "prefill_ms": run.single_prefill_ms,
            "step_ms": asdict(run.single_step),
        },
        "step_ratio": slowest / run.single_step.median,
        "layer_bytes_a_token": {"measured": measured, "theory": run.plan.layer_bytes()},
        "traffic": {
            "prefill": traffic_record(run.prefill_traffic),
            "step": traffic_record(run.step_traffic),
        },
        "difference": {
            "logits": run.difference,
            "logits_of_the_last_step": run.step_difference,
        },
        "favourites": [
            {"id": i, "token": engine.vocabulary.label(i), "single": p, "split": q}
            for i, p, q in run.favourites
        ],
        "partial_sums": sums_record(run, layer, part),
    }


def plan_record(plan: TensorPlan) -> dict[str, Any]:
    return {
        "ranks": plan.ranks,
        "attention": plan.attention,
        "layers": plan.layers,
        "heads": plan.heads,
        "kv_heads": plan.kv_heads,
        "neurons": plan.neurons,
        "vocabulary": plan.vocabulary,
        "width": plan.width,
        "sums_a_layer": plan.sums_a_layer,
        "hands": [asdict(hand) for hand in plan.hands],
    }


def rank_record(rank: Rank) -> dict[str, Any]:
    return {
        "rank": rank.rank,
        "weights_bytes": rank.weights,
        "kv_bytes": rank.kv,
        "process_bytes": rank.process,
        "threads": rank.threads,
        "read_ms": rank.read_ms,
        "prefill_ms": rank.prefill_ms,
        "step_ms": None if rank.step is None else asdict(rank.step),
        "waiting_ms": None if rank.waiting is None else asdict(rank.waiting),
    }


def traffic_record(found: tuple[Traffic, ...]) -> list[dict[str, Any]]:
    return [
        {"what": t.kind, "calls": t.calls, "bytes": t.bytes, "theory_bytes": t.theory}
        for t in found
    ]


def sums_record(run: TensorRun, layer: int, part: str) -> dict[str, Any]:
    """The components of one output at the last position to which the ranks add most."""
    assert run.partials is not None
    assert run.sums is not None
    assert run.dense is not None
    place = PARTS.index(part)
    summands = run.partials[:, layer, place, -1]
    total, dense = run.sums[layer, place, -1], run.dense[layer, place, -1]
    most = np.argsort(-np.abs(summands).max(axis=0), kind="stable")[:SHOWN]
    return {
        "layer": layer,
        "part": part,
        "position": run.positions[-1],
        "largest_difference": float(np.abs(total - dense).max()),
        "components": [
            {
                "component": int(i),
                "ranks": [float(x) for x in summands[:, i]],
                "sum": float(total[i]),
                "single": float(dense[i]),
            }
            for i in most
        ],
    }


def _lines(found: dict[str, Any]) -> Iterator[str]:
    plan, single = found["plan"], found["single"]
    yield f"{found['model']} on {counted(plan['ranks'], 'rank')} ({found['backend']})"
    yield (
        f"{counted(plan['heads'], 'head')}, {counted(plan['kv_heads'], 'KV head')}, "
        f"{counted(plan['neurons'], 'neuron')}: "
        f"attention {plan['attention']}"
    )
    yield ""
    yield (
        f"{'rank':<8}{'heads':>9}{'KV heads':>10}{'neurons':>12}{'weights':>11}{'step':>10}"
        f"{'waiting':>10}"
    )
    for hand, rank in zip(plan["hands"], found["ranks"], strict=True):
        yield (
            f"{rank['rank']:<8}{_span(hand['heads']):>9}{_span(hand['kv_heads']):>10}"
            f"{_span(hand['neurons']):>12}{in_bytes(rank['weights_bytes']):>11}"
            f"{rank['step_ms']['median']:>7.1f} ms{rank['waiting_ms']['median']:>7.1f} ms"
        )
    yield (
        f"{'single':<8}{'':>31}{in_bytes(single['weights_bytes']):>11}"
        f"{single['step_ms']['median']:>7.1f} ms"
    )
    yield ""
    for each in found["traffic"]["step"]:
        yield (
            f"{each['what']:<14}{each['calls']:>4} calls a token {each['bytes']:>10,} bytes "
            f"(formula: {each['theory_bytes']:,})"
        )
    a_token = found["layer_bytes_a_token"]
    yield f"all layers: {a_token['measured']:,} bytes a token, by formula {a_token['theory']:,}"
    yield ""
    yield from _sums(found["partial_sums"], plan["ranks"])
    yield (
        f"largest difference of the logits from one process: {found['difference']['logits']:.2g}"
        f", after the last step {found['difference']['logits_of_the_last_step']:.2g}"
    )


def _sums(found: dict[str, Any], ranks: int) -> Iterator[str]:
    yield f"layer {found['layer']}, {found['part']}, position {found['position']}"
    heads = "".join(f"{f'rank {rank}':>12}" for rank in range(ranks))
    yield f"{'component':<10}{heads}{'sum':>12}{'single':>12}"
    for row in found["components"]:
        parts = "".join(f"{value:>12.5f}" for value in row["ranks"])
        yield f"{row['component']:<10}{parts}{row['sum']:>12.5f}{row['single']:>12.5f}"
    yield f"largest difference of all components: {found['largest_difference']:.2g}"
    yield ""


def _span(span: tuple[int, int]) -> str:
    return f"{span[0]}–{span[1] - 1}"
