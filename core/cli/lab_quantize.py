"""``lab quantize``: what fewer bits a weight cost and save."""

from __future__ import annotations

import argparse
from collections.abc import Generator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, cast

from core.cli import lab_common as common
from core.cli.lab_quantize_lines import lines
from core.cli.numbers import whole
from core.edits.grid import Grid, Span
from core.edits.spec import ModelEdit, Packing, Rounding, parse_edit, spell, split
from core.faults import Fault
from core.lab.models import local
from core.lab.quantize_records import (
    BITS,
    PACKINGS,
    Effect,
    Origin,
    Point,
    Speed,
    Sweep,
    line,
)
from core.tokens import Vocabulary

if TYPE_CHECKING:
    from core.engine.local import LocalEngine

USUAL: Final = "4"


def add(parser: argparse.ArgumentParser) -> None:
    common.add_prompt(parser)
    common.add_model(parser)
    put = parser.add_argument
    put("--bits", metavar="N", default=USUAL, help="2 … 8 (default: %(default)s)")
    put(
        "--span",
        metavar="tensor|channel|group",
        default="channel",
        help="the weights that share a scale (default: %(default)s)",
    )
    put("--group", metavar="N", help="weights in a group (default: 64)")
    put("--asym", action="store_true", help="from the smallest to the largest weight")
    put("--head", action="store_true", help="the LM head, too")
    put(
        "--storage",
        metavar="bf16|int8|int4|nf4|bnb8",
        help="really store the weights so, instead of rounding them",
    )
    put("--sweep", action="store_true", help="8 … 2 bits on the same grid instead of one setting")
    put("--speed", action="store_true", help="bytes and times of all ways to store the weights")
    put("--repeats", metavar="N", default="7", help="of each timed pass (default: %(default)s)")
    put(
        "--record",
        action="store_true",
        help="measure all (or what --sweep and --speed name), and store it with the program",
    )


def run(typed: argparse.Namespace) -> None:
    """Raises Fault where the experiment cannot be done."""
    setting, repeats = _setting(typed), whole("repeats", typed.repeats) or 0
    if not 1 <= repeats <= 100:
        raise Fault("setting_out_of_range", name="repeats", value=repeats, low=1, high=100)
    before = parse_edit(split(typed.model)[1])
    if before.rounding or before.packing:
        raise Fault("edit_twice", part=spell(setting))

    def make() -> dict[str, Any]:
        engine = common.engine_of(typed)
        model = local(engine)
        if typed.record:
            return _recorded(model, typed, repeats)
        return {"model": engine.info.name, **_made(model, typed, setting, repeats)}

    common.written(typed, make, lines)


def _setting(typed: argparse.Namespace) -> ModelEdit:
    """What was asked for. Raises Fault where it is impossible."""
    group = whole("group", typed.group)
    if typed.storage is not None:
        middle = f":{group}" if typed.storage == "int4" and group is not None else ""
        found = parse_edit(typed.storage + middle + (":head" if typed.head else ""))
        if not found.packing:
            raise Fault(
                "edit_unreadable", part=typed.storage, allowed="bf16, int8, int4, nf4, bnb8"
            )
        return found
    bits = whole("bits", typed.bits)
    assert bits is not None
    span = "group" if group is not None and typed.span == "channel" else typed.span
    # The grid refuses what is no span.
    grid = Grid(bits, cast(Span, span), 64 if group is None else group, not typed.asym)
    return ModelEdit(rounding=Rounding(grid, typed.head))


def _made(
    engine: LocalEngine, typed: argparse.Namespace, setting: ModelEdit, repeats: int
) -> dict[str, Any]:
    from core.lab import quantize, quantize_look, quantize_speed  # noqa: PLC0415

    origin = common.to_the_end(quantize_look.origin(engine))
    record: dict[str, Any] = {"origin": origin_record(origin)}
    if typed.sweep:
        grid = setting.rounding.grid if setting.rounding else Grid()
        found = common.to_the_end(quantize.sweep(engine, line(grid, head=typed.head)))
        record["sweep"] = sweep_record(found)
    elif not typed.speed:
        wanted: Rounding | Packing | None = setting.rounding or setting.packing
        assert wanted is not None
        prompt = common.ids_of(engine, typed.prompt)
        done = common.to_the_end(quantize.effect(engine, wanted, prompt))
        record["setting"] = effect_record(done, engine.vocabulary)
    if typed.speed:
        timed = common.to_the_end(quantize_speed.speed(engine, PACKINGS, repeats=repeats))
        record["speed"] = speed_record(timed)
    return record


def _recorded(engine: LocalEngine, typed: argparse.Namespace, repeats: int) -> dict[str, Any]:
    """Measure all, or the part that was asked for where the other is known already."""
    from core.lab import quantize, quantize_look, quantize_speed  # noqa: PLC0415
    from core.lab import quantize_recorded as file  # noqa: PLC0415

    known = file.recorded(engine.info.name)
    origin = common.to_the_end(quantize_look.origin(engine))
    if known and typed.sweep and not typed.speed:
        timed = known.speed
    else:
        timed = common.to_the_end(quantize_speed.speed(engine, PACKINGS, repeats=repeats))
    if not (origin.done and timed.done):
        raise KeyboardInterrupt
    if known and typed.speed and not typed.sweep:
        found = known.sweep
    else:
        turns = quantize.sweep(engine, file.recorded_settings())
        found = common.to_the_end(_kept(turns, engine.info.name, origin, timed))
    file.record(engine.info.name, file.Recorded(origin, found, timed))
    return {
        "model": engine.info.name,
        "origin": origin_record(origin),
        "sweep": sweep_record(found),
        "speed": speed_record(timed),
    }


def _kept(
    turns: Generator[Sweep, None, None], name: str, origin: Origin, timed: Speed
) -> Generator[Sweep, None, None]:
    """The same sweep, stored after each curve: it takes long, and may be stopped."""
    from core.lab import quantize_recorded as file  # noqa: PLC0415

    stored = 0
    for found in turns:
        if len(found.points) >= stored + len(BITS):
            stored = len(found.points)
            file.record(name, file.Recorded(origin, found, timed))
        yield found


# ---------------------------------------------------------------- records as JSON


def origin_record(found: Origin) -> dict[str, Any]:
    """Tensors whose weights already sit on a grid."""
    return {
        "tensors": found.tensors,
        "weights": found.weights,
        "on_grids": [
            {
                "grid": spell(ModelEdit(rounding=Rounding(one.grid))),
                "tensors": one.tensors,
                "weights": one.weights,
            }
            for one in found.grids
        ],
    }


def point_record(found: Point) -> dict[str, Any]:
    return {
        "edit": found.edit,
        "kl": found.kl,
        "top1": found.top1,
        "perplexity": found.perplexity,
        "positions": found.positions,
        "weight_error": found.error,
        "bytes": found.nbytes,
    }


def sweep_record(found: Sweep) -> dict[str, Any]:
    """kl in nats; ``bytes`` is what such codes would take."""
    return {
        "machine": asdict(found.machine),
        "perplexity_before": found.perplexity,
        "bytes_before": found.nbytes,
        "points": [point_record(one) for one in found.points],
    }


def effect_record(found: Effect, vocabulary: Vocabulary) -> dict[str, Any]:
    return {
        "edit": found.edit,
        "really_stored": found.packed,
        "machine": asdict(found.machine),
        "perplexity_before": found.perplexity,
        "bytes_before": found.nbytes,
        "quality": None if found.point is None else point_record(found.point),
        "next_tokens": [
            {
                "id": one.id,
                "token": vocabulary.label(one.id),
                "before": one.before,
                "after": one.after,
            }
            for one in found.candidates
        ],
        "text_before": vocabulary.text(found.before),
        "text_after": vocabulary.text(found.after),
        "layers": [
            {"layer": i, "weight_error": one.weights, "stream_error": one.stream}
            for i, one in enumerate(found.layers)
        ],
    }


def speed_record(found: Speed) -> dict[str, Any]:
    """Times in ms; ratios to the original of the same run."""
    first = found.rows[0]
    return {
        "machine": asdict(found.machine),
        "context": found.context,
        "prefill_tokens": found.read,
        "not_installed": list(found.missing),
        "rows": [
            {
                "edit": row.edit,
                "bytes": row.nbytes,
                "bytes_ratio": row.nbytes / first.nbytes,
                "step_ms": asdict(row.step),
                "step_ratio": _ratio(row.step.median, first.step.median),
                "prefill_ms": asdict(row.prefill),
                "prefill_ratio": _ratio(row.prefill.median, first.prefill.median),
                "kernel": row.kernel,
                "kl": row.kl,
                "top1": row.top1,
            }
            for row in found.rows
        ],
    }


def _ratio(time: float, first: float) -> float | None:
    return time / first if first else None
