"""``lab plan``: what would fit where, and how fast it could be at best."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

from core.amounts import counted, in_bytes, in_time, needed, two_digits
from core.cli.lab_common import add_json, written
from core.cli.lab_roofline import restless
from core.cli.numbers import whole
from core.cli.output import check_target, say
from core.faults import Fault
from core.lab.plan import WEIGHT_BYTES, Device, Load, Precision, devices
from core.lab.plan_advice import HERE, advise, device_named, of_machine, published
from core.lab.plan_table import as_csv, combinations, row
from core.lab.roofline import Roof
from core.lab.roofline_store import stored_roof
from core.lab.shape import ModelShape
from core.lab.shape_presets import (
    NAMED,
    TYPED,
    fetch_config,
    fetched,
    hub_entry,
    named_shape,
    presets,
)
from core.models.catalog import HUB_ID

NEEDED: Final = ("layers", "width", "heads", "feed_forward", "vocabulary")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        metavar="NAME|OWNER/NAME|FOLDER",
        help=f"a model: {', '.join(presets())}; a hub id, whose config.json is fetched; a folder",
    )
    typed = parser.add_argument_group("a model by its numbers, instead of --config")
    for name in TYPED:
        typed.add_argument(f"--{name.replace('_', '-')}", metavar="N")
    many = parser.add_argument_group("what it runs on; each may be a list with commas")
    many.add_argument(
        "--device", metavar="NAME,…", help=f"a name, or a part of it (all); also “{HERE}”"
    )
    many.add_argument("--precision", metavar="P,…", help=f"{', '.join(WEIGHT_BYTES)} (bf16)")
    many.add_argument("--batch", metavar="N,…", help="texts at once (1)")
    many.add_argument("--tp", metavar="N,…", help="tensor-parallel devices (1)")
    many.add_argument("--pp", metavar="N,…", help="pipeline stages (1)")
    parser.add_argument("--prompt", default="512", metavar="N", help="tokens read (%(default)s)")
    parser.add_argument("--new", default="128", metavar="N", help="tokens written (%(default)s)")
    add_json(parser)
    parser.add_argument("--csv", metavar="-|FILE", nargs="?", const="-", help="rows as CSV")


def run(typed: argparse.Namespace) -> None:
    """Plan every combination. Raises Fault for what cannot be read, and for too many."""
    check_target(typed.csv)

    def make() -> dict[str, Any]:
        shape, roof = _shape(typed), stored_roof()
        among = _devices(typed.device, roof)
        load = Load(prompt=_number("prompt", typed.prompt), new=_number("new", typed.new))
        found = combinations(
            shape,
            among,
            load,
            precisions=cast(Sequence[Precision], _parts(typed.precision)),
            batches=_numbers("batch", typed.batch),
            tensor=_numbers("tensor_parallel", typed.tp),
            pipeline=_numbers("pipeline_parallel", typed.pp),
        )
        for each in found:
            if each.fault is not None and len(found) == 1:
                raise each.fault
        advice = None
        if len(found) == 1:
            known = advise(shape, found[0].device, found[0].load)
            advice = {"precision": known.precision, "ranks": known.ranks, "batch": known.batch}
        return {
            "shape": {"name": shape.name, "parameters": shape.parameters}
            | {name: getattr(shape, name) for name in TYPED},
            "kind": "theory: lower bounds of time",
            "plans": [row(each) for each in found],
            "sources": {device.name: f"{device.source}, {device.date}" for device in among},
            "advice": advice,
            "warning": _warning(among, roof),
        }

    if typed.csv and not typed.json:
        made = make()
        _to(typed.csv, as_csv(made["plans"]))
        if made["warning"]:  # a table has no place for it
            say(made["warning"])
        return
    written(typed, make, _lines)


def _shape(typed: argparse.Namespace) -> ModelShape:
    given = {name: getattr(typed, name) for name in TYPED if getattr(typed, name) is not None}
    if not given:
        name = typed.config or "llama-3-70b"
        if name not in presets() and HUB_ID.fullmatch(name):
            entry = hub_entry(name)
            if not fetched(entry):
                fetch_config(entry)
        return named_shape(name)
    missing = [name.replace("_", "-") for name in NEEDED if name not in given]
    if missing:
        options = " ".join(f"--{name} N" for name in missing)
        raise Fault("setting_missing", missing=", ".join(missing), options=options)
    numbers: dict[str, Any] = {name: _number(name, text) for name, text in given.items()}
    heads = numbers["heads"]
    return ModelShape(
        NAMED,
        **{
            "kv_heads": heads,
            "head_dim": max(1, numbers["width"] // max(1, heads)),
            **numbers,
        },
    )


def _parts(text: str | None) -> tuple[str, ...]:
    """``1,4,16``, without spaces around."""
    return () if text is None else tuple(part.strip() for part in text.split(","))


def _warning(among: Sequence[Device], roof: Roof | None) -> str | None:
    """What is to be said of this machine's own figures, where they are in the plan."""
    if roof is None or not roof.disturbed or not any(device.name == HERE for device in among):
        return None
    return f"{HERE}, measured {roof.machine.date}: {restless(roof.unrest)}"


def _devices(text: str | None, roof: Roof | None) -> tuple[Device, ...]:
    names = _parts(text)
    here = of_machine(roof) if roof is not None else None
    if text is None:
        return (*devices(), *([here] if here else []))
    if here is None and any(name.lower() == HERE for name in names):
        raise Fault("roof_not_measured")
    return tuple(device_named(name, here) for name in names)


def _number(name: str, text: str) -> int:
    found = whole(name, text)
    assert found is not None
    return found


def _numbers(name: str, text: str | None) -> tuple[int, ...]:
    return tuple(_number(name, part) for part in _parts(text))


def _to(target: str, text: str) -> None:
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        # utf-8-sig: spreadsheets take the file for Latin-1 without its mark
        Path(target).write_text(text, encoding="utf-8-sig")
    except OSError as error:
        raise Fault("json_unwritable", name=target, reason=error.strerror) from None


def _lines(found: dict[str, Any]) -> Iterator[str]:
    shape = found["shape"]
    yield f"{shape['name']}: {shape['parameters']:,} parameters. Times are lower bounds (theory)."
    yield (
        f"{'device':<28} {'numbers':>7} {'batch':>5} {'TP×PP':>6} {'needs':>9} {'has':>8}  "
        f"{'fits':<4} {'first':>9} {'token':>9} {'tokens/s':>9}  bound by"
    )
    for each in found["plans"]:
        ranks = f"{each['tensor_parallel']}×{each['pipeline_parallel']}"
        where = f"{each['device']:<28} {each['precision']:>7} {each['batch']:>5} {ranks:>6}"
        if each["why_not"]:
            yield f"{where}  {each['why_not']}"
            continue
        yield (
            f"{where} {needed(each['needed_gb'] * 1e9, each['device_gb'] * 1e9):>9} "
            f"{in_bytes(each['device_gb'] * 1e9):>8}  {'yes' if each['fits'] else 'no':<4} "
            f"{in_time(each['first_token_ms']):>9} {in_time(each['per_token_ms']):>9} "
            f"{two_digits(each['tokens_per_second']):>9}  {each['bound']}"
        )
    if found["advice"] is not None:
        yield from _advice(found["plans"][0], found["advice"])
    if found["warning"]:
        yield found["warning"]
    ratios = [each.ratio for each in published()]
    yield (
        f"published measurements took {min(ratios):.1f} to {max(ratios):.1f} times the bound "
        "(core/lab/plan_published.toml)"
    )


def _advice(plan: dict[str, Any], advice: dict[str, Any]) -> Iterator[str]:
    waits = f"at batch {plan['batch']} the arithmetic waits {plan['waiting_share']:.1%} of a step"
    yield waits
    if plan["fits"]:
        yield f"it fits; up to {counted(advice['batch'], 'text')} at once would"
        return
    has, alone = in_bytes(plan["device_gb"] * 1e9), plan["weights_gb"] > plan["device_gb"]
    needs = needed(plan["weights_gb" if alone else "needed_gb"] * 1e9, plan["device_gb"] * 1e9)
    yield f"it does not fit: {'weights alone take ' if alone else ''}{needs} of {has}"
    if advice["precision"]:
        yield f"with {advice['precision']} it would"
    if advice["ranks"]:
        yield f"on {advice['ranks']} devices, tensor parallel, it would"
