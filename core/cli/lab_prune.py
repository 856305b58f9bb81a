"""``lab prune``: weights set to zero and parts taken out, beside the untouched original."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any, Final

from core.cli import lab_common as common
from core.cli.lab_prune_lines import lines
from core.cli.numbers import whole
from core.edits.masks import METHODS
from core.edits.spec import ModelEdit, parse_edit
from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.models import local

METHOD: Final = "wanda"
MOST: Final = 1000


def add(parser: argparse.ArgumentParser) -> None:
    common.add_prompt(parser)
    common.add_model(parser)
    put = parser.add_argument
    put("--zeros", metavar="SHARE|2of4", help="weights set to zero, such as 0.5")
    put("--method", default=METHOD, metavar="NAME",
        help=f"how they are chosen: {', '.join(METHODS)} (default: {METHOD})")  # fmt: skip
    put("--neurons", metavar="SHARE", help="feed-forward neurons taken out, such as 0.2")
    put("--layers", metavar="L,L,…", help="layers taken out, counted from 0")
    put("--groups", metavar="N", help="KV heads taken out of every layer, with their query heads")
    put("--heads", metavar="L.H,…", help="layer.head, counted from 0: what it writes becomes 0")
    put("--repeats", metavar="N", default="9", help="of each timed step (default: %(default)s)")
    for name, help in (
        ("sweep", "zeros from 10 to 90 %% in every way"),
        ("removals", "several ways to take parts out: size, time, quality"),
        ("importance", "the text without each head and each layer, and without many together"),
        ("crossings", "one matrix dense and as a list of what is not zero: time and memory"),
        ("all", "all four, as they are recorded for the packaged models"),
    ):
        put(f"--{name}", action="store_true", help=help)


def run(typed: argparse.Namespace) -> None:
    """Raises Fault where the experiment cannot be done."""
    edit, repeats = edit_of(typed), whole("repeats", typed.repeats)
    if repeats is None or not 1 <= repeats <= MOST:
        raise Fault("setting_out_of_range", name="repeats", value=typed.repeats, low=1, high=MOST)

    def make() -> dict[str, Any]:
        engine = common.engine_of(typed)
        return {"model": typed.model, **_made(engine, typed, edit, repeats)}

    common.written(typed, make, lines)


def edit_of(typed: argparse.Namespace) -> ModelEdit:
    """The edit that the options spell; half of all weights where they spell none.

    Raises Fault for what is none.
    """
    parts = []
    if typed.zeros is not None:
        parts.append(f"zeros:{typed.zeros}:{typed.method}")
    if typed.neurons is not None:
        parts.append(f"neurons:{typed.neurons}")
    if typed.layers is not None:
        parts.append("layers:" + typed.layers.replace(",", "."))
    if typed.groups is not None:
        parts.append(f"groups:{typed.groups}")
    if typed.heads is not None:
        parts.append("heads:" + typed.heads.replace(",", "_"))
    return parse_edit("+".join(parts) or f"zeros:0.5:{typed.method}")


def _made(
    engine: Engine, typed: argparse.Namespace, edit: ModelEdit, repeats: int
) -> dict[str, Any]:
    asked = [name for name in ("sweep", "removals", "importance", "crossings")
             if getattr(typed, name) or typed.all]  # fmt: skip
    if not asked:
        return _effect(engine, typed.prompt, edit, repeats)
    found: dict[str, Any] = {}
    if "sweep" in asked:
        found["sweep"] = _sweep(engine)
    if "importance" in asked or "removals" in asked:
        found |= _importance(engine)
    if "removals" in asked:
        ranked = found["importance"]
        found["removals"] = _removals(engine, typed.prompt, ranked, repeats)
    if "crossings" in asked:
        found["crossings"] = _crossings(engine)
    return found


def _effect(engine: Engine, prompt: str, edit: ModelEdit, repeats: int) -> dict[str, Any]:
    from core.lab.prune import effect  # noqa: PLC0415 - imports torch

    ids = common.ids_of(engine, prompt)
    found = common.to_the_end(effect(local(engine), edit, ids, repeats=repeats))
    label = engine.vocabulary.label
    return {
        "effect": asdict(found),
        "prompt": prompt,
        "before": [label(token) for token in found.before],
        "after": [label(token) for token in found.after],
    }


def _sweep(engine: Engine) -> dict[str, Any]:
    from core.lab.prune import sweep  # noqa: PLC0415 - imports torch

    return asdict(common.to_the_end(sweep(local(engine))))


def _importance(engine: Engine) -> dict[str, Any]:
    from core.lab.importance import importance, together  # noqa: PLC0415 - imports torch

    own = local(engine)
    found = common.to_the_end(importance(own))
    if not found.done:
        return {"importance": asdict(found)}
    return {
        "importance": asdict(found),
        "heads_together": asdict(common.to_the_end(together(own, found))),
        "layers_together": asdict(common.to_the_end(together(own, found, "layers"))),
    }


def _removals(engine: Engine, prompt: str, ranked: dict[str, Any], repeats: int) -> dict[str, Any]:
    from core.lab.prune import ladder, removals  # noqa: PLC0415 - imports torch

    order = sorted(range(len(ranked["layers"])), key=lambda layer: ranked["layers"][layer])
    ids = common.ids_of(engine, prompt)
    edits = ladder(engine.info, order)
    return asdict(common.to_the_end(removals(local(engine), edits, ids, repeats=repeats)))


def _crossings(engine: Engine) -> dict[str, Any]:
    from core.lab.sparse import crossings  # noqa: PLC0415 - imports torch

    return asdict(common.to_the_end(crossings(local(engine))))
