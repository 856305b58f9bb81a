"""``lab kv-cache``: the same text with and without a cache, what it holds, smaller caches."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from typing import Any, Final

from core.cli import lab_common as common
from core.cli.lab_kv_lines import lines
from core.cli.numbers import whole
from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.kv_others import others
from core.lab.kv_records import (
    ContextPoint,
    Held,
    KvRun,
    KvStep,
    Reuse,
    Rows,
    Trick,
    Tricks,
    Work,
)
from core.lab.kv_words import read_trick, trick_text
from core.lab.models import local
from core.lab.timing import Spread
from core.tokens import Vocabulary

STEPS: Final = 8
REPEATS: Final = 3
MOST_REPEATS: Final = 100
OTHERS_AT: Final = 8192
"""Tokens of the text for which the caches of other models are computed."""


def add(parser: argparse.ArgumentParser) -> None:
    common.add_prompt(parser)
    common.add_model(parser)
    put = parser.add_argument
    put("--steps", metavar="N", default=str(STEPS), help="tokens to write (default: %(default)s)")
    put("--repeats", metavar="N", default=str(REPEATS), help="of each timed pass (%(default)s)")
    put("--layer", metavar="L", help="list the keys and values of one layer, counted from 0")
    put("--head", metavar="H", default="0", help="its KV head (default: %(default)s)")
    put(
        "--trick",
        metavar="LINE",
        action="append",
        help="a smaller cache, such as bits=4,keys=channel or window=64,sinks=4; repeatable",
    )
    put("--tricks", action="store_true", help="the page's smaller caches, side by side")
    put("--second", metavar="PROMPT", help="a second prompt that begins like the first one")
    put("--lengths", metavar="LIST", help="one step at the end of texts of these many tokens")


@dataclass(frozen=True)
class Asked:
    """What was typed, checked."""

    steps: int
    repeats: int
    layer: int | None
    head: int
    tricks: tuple[Trick, ...]
    second: str | None
    lengths: tuple[int, ...]


def run(typed: argparse.Namespace) -> None:
    """Raises Fault where the experiment cannot be done."""
    asked = _asked(typed)

    def make() -> dict[str, Any]:
        engine = common.engine_of(typed)
        return _record(engine, common.ids_of(engine, typed.prompt), asked)

    common.written(typed, make, lines)


def _asked(typed: argparse.Namespace) -> Asked:
    repeats = _number("repeats", typed.repeats)
    if not 1 <= repeats <= MOST_REPEATS:
        raise Fault("setting_out_of_range", name="repeats", value=repeats, low=1, high=MOST_REPEATS)
    return Asked(
        steps=_number("steps", typed.steps),
        repeats=repeats,
        layer=whole("layer", typed.layer),
        head=_number("head", typed.head),
        tricks=_tricks_of(typed),
        second=typed.second,
        lengths=_lengths_of(typed.lengths),
    )


def _record(engine: Engine, prompt: tuple[int, ...], asked: Asked) -> dict[str, Any]:
    from core.lab import kv_contexts, kv_held, kv_reuse, kv_steps, kv_tricks  # noqa: PLC0415

    model = local(engine)
    run = common.to_the_end(kv_steps.written_twice(model, prompt, asked.steps, asked.repeats))
    read = run.ids[: max(len(prompt), len(run.ids) - 1)]
    record = {
        "model": engine.info.name,
        **run_record(run, engine.vocabulary),
        "cache": held_record(kv_held.held(model, read, len(prompt))),
        "others": others(OTHERS_AT),
    }
    if asked.layer is not None:
        found = kv_held.rows(model, read, asked.layer, asked.head, len(prompt))
        record["rows"] = rows_record(found)
    if asked.lengths:
        points = common.to_the_end(kv_contexts.at_lengths(model, asked.lengths, asked.repeats))
        record["lengths"] = [point_record(point) for point in points.points]
    if asked.tricks:
        record["tricks"] = tricks_record(common.to_the_end(kv_tricks.tried(model, asked.tricks)))
    if asked.second is not None:
        second = common.ids_of(engine, asked.second)
        turns = kv_reuse.reused(model, prompt, second, asked.repeats)
        record["reuse"] = reuse_record(common.to_the_end(turns))
    return record


def _tricks_of(typed: argparse.Namespace) -> tuple[Trick, ...]:
    named = tuple(map(read_trick, typed.trick or ()))
    if not typed.tricks:
        return named
    from core.lab.kv_tricks import LADDER  # noqa: PLC0415 - imports torch

    return (*LADDER, *named)


def _number(name: str, text: str) -> int:
    found = whole(name, text)
    assert found is not None
    return found


def _lengths_of(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    found = tuple(_number("lengths", part) for part in text.split(","))
    for length in found:
        if not 1 <= length <= 2**17:
            raise Fault("setting_out_of_range", name="lengths", value=length, low=1, high=2**17)
    return tuple(sorted(set(found)))


# ---------------------------------------------------------------- records as JSON


def _work(work: Work, ms: Spread) -> dict[str, Any]:
    return {"ms": asdict(ms), **asdict(work), "bytes": work.bytes}


def _step(step: KvStep, vocabulary: Vocabulary) -> dict[str, Any]:
    return {
        "step": step.index,
        "length": step.length,
        "id": step.chosen,
        "token": vocabulary.label(step.chosen),
        "id_without": step.other,
        "with_cache": _work(step.cached, step.cached_ms),
        "without": _work(step.whole, step.whole_ms),
        "ratio": step.whole_ms.median / step.cached_ms.median,
        "difference": step.difference,
        "cache_bytes": step.cache_bytes,
        "logits": [
            {
                "id": score.id,
                "token": vocabulary.label(score.id),
                "with_cache": score.cached,
                "without": score.whole,
                "difference": abs(score.cached - score.whole),
            }
            for score in step.scores
        ],
    }


def run_record(run: KvRun, vocabulary: Vocabulary) -> dict[str, Any]:
    """The generation done twice; lists of steps in their order."""
    return {
        "machine": asdict(run.machine),
        "prompt": {"ids": list(run.prompt), "tokens": len(run.prompt)},
        "text": vocabulary.text(run.ids),
        "same_tokens": run.equal,
        "largest_difference": run.difference,
        "steps": [_step(step, vocabulary) for step in run.steps],
    }


def held_record(found: Held) -> dict[str, Any]:
    """Sizes read off the cache's tensors, in bytes."""
    return {
        "tokens": found.length,
        "bytes": found.nbytes,
        "bytes_a_token": found.token_bytes,
        "bytes_of_the_next_token": found.next_bytes,
        "bytes_a_number": found.value_bytes,
        "layers": [asdict(layer) for layer in found.layers],
    }


def rows_record(found: Rows) -> dict[str, Any]:
    """Keys and values as numbers, a row for each position."""
    return {
        "layer": found.layer,
        "kv_head": found.head,
        "first_position": found.first,
        "keys": found.keys.tolist(),
        "values": found.values.tolist(),
    }


def point_record(point: ContextPoint) -> dict[str, Any]:
    return {
        "length": point.length,
        "with_cache": _work(point.cached, point.cached_ms),
        "without": _work(point.whole, point.whole_ms),
        "ratio": point.ratio,
        "difference": point.difference,
        "cache_bytes": point.cache_bytes,
    }


def tricks_record(found: Tricks) -> dict[str, Any]:
    """kl in nats over ``positions`` positions behind a cache of ``prefix`` tokens."""
    return {
        "prefix": found.prefix,
        "positions": found.positions,
        "results": [
            {
                "trick": trick_text(one.trick),
                "bytes": one.nbytes,
                "bytes_full": one.full_bytes,
                "saved": one.saved,
                "kl": one.kl,
                "top1": one.top1,
                "key_error": one.key_error,
                "value_error": one.value_error,
            }
            for one in found.results
        ],
    }


def reuse_record(found: Reuse) -> dict[str, Any]:
    return {
        "first_tokens": found.first,
        "second_tokens": found.second,
        "reused": found.common,
        "whole": _work(found.whole, found.whole_ms),
        "continued": _work(found.reused, found.reused_ms),
        "difference": found.difference,
        "shared_bytes": found.shared_bytes,
    }
