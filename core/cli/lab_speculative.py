"""``lab speculative``: a draft proposes, the model judges; plain decoding beside it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from core.amounts import counted
from core.cli import lab_common as common
from core.cli import show
from core.cli.numbers import number, whole
from core.engine.store import build
from core.lab.models import local
from core.lab.speculative_records import DRAFT, GAMMA, Round, Speculation, draft_name
from core.models.catalog import resolve
from core.settings import STRATEGIES, Settings
from core.tokens import Vocabulary


def add(parser: argparse.ArgumentParser) -> None:
    common.add_prompt(parser)
    common.add_model(parser)
    put = parser.add_argument
    put(
        "--draft",
        metavar="MODEL|#EDIT",
        default=DRAFT,
        help="the model that proposes: any with the same tokenizer, or what is done to a copy of "
        "--model, such as #int4:64 (default: %(default)s)",
    )
    put("--gamma", metavar="N", default=str(GAMMA), help="tokens proposed a round (%(default)s)")
    put("--strategy", metavar="|".join(STRATEGIES), default="greedy", help="default: %(default)s")
    put("--temperature", metavar="T", help="divides the logits of both models; 0 is greedy")
    put("--top-k", metavar="K", help="keep the K highest tokens")
    put("--top-p", metavar="P", help="keep the smallest set that reaches P")
    put("--min-p", metavar="P", help="drop what has less than P of the highest")
    put("--seed", metavar="S", help="of the random numbers (default: 0)")
    put("--max-new", metavar="N", help="stop after N new tokens (default: 24)")


def run(typed: argparse.Namespace) -> None:
    """Raises Fault where it cannot be done."""
    gamma, settings = whole("gamma", typed.gamma), _settings(typed)
    assert gamma is not None

    def make() -> dict[str, Any]:
        from core.lab.speculative_run import speculated  # noqa: PLC0415 - imports torch

        entry = resolve(draft_name(typed.model, typed.draft))
        engine = common.engine_of(typed)
        model = draft = local(engine)
        prompt = common.ids_of(engine, typed.prompt)
        if entry.name != resolve(typed.model).name:
            with show.Progress(entry.name) as progress:
                draft = local(build(entry, progress))
        turns = speculated(model, draft, prompt, settings, gamma)
        return record(common.to_the_end(turns), engine.vocabulary)

    common.written(typed, make, _lines)


def _settings(typed: argparse.Namespace) -> Settings:
    given = {
        "strategy": typed.strategy,
        "temperature": number("temperature", typed.temperature),
        "top_k": whole("top-k", typed.top_k),
        "top_p": number("top-p", typed.top_p),
        "min_p": number("min-p", typed.min_p),
        "seed": whole("seed", typed.seed),
        "max_new": whole("max-new", typed.max_new),
    }
    return Settings(**{name: value for name, value in given.items() if value is not None})


# ---------------------------------------------------------------- as JSON


def record(found: Speculation, vocabulary: Vocabulary) -> dict[str, Any]:
    """Times in milliseconds; p and q are after the settings, over the whole vocabulary."""
    spreads = {
        "plain_pass": found.plain_ms,
        "draft_pass": found.draft_ms,
        "check_pass": found.check_ms,
        "round": found.round_ms,
    }
    return {
        "model": found.model,
        "draft": found.draft,
        "bytes": {"model": found.model_bytes, "draft": found.draft_bytes},
        "machine": None if found.machine is None else asdict(found.machine),
        "gamma": found.gamma,
        "greedy": found.greedy,
        "prompt": {"ids": list(found.prompt), "text": vocabulary.text(found.prompt)},
        "ids": list(found.ids),
        "text": vocabulary.text(found.ids),
        "plain_ids": list(found.plain_ids),
        "plain_text": vocabulary.text(found.plain_ids),
        "same_text": found.same_text,
        "rounds": [_round(each, vocabulary) for each in found.rounds],
        "proposed": found.proposed,
        "judged": found.judged,
        "accepted": found.accepted,
        "acceptance": found.acceptance,
        "mean_overlap": found.mean_overlap,
        "tokens_per_pass": found.tokens_per_pass,
        "expected_tokens_per_pass": found.expected,
        "ms": {n: None if spread is None else asdict(spread) for n, spread in spreads.items()},
        "ms_a_token": found.ms_a_token,
        "plain_ms_a_token": found.plain_ms_a_token,
        "times_as_fast": found.speed,
        "expected_times_as_fast": found.expected_speed,
        "complete": found.done,
    }


def _round(found: Round, vocabulary: Vocabulary) -> dict[str, Any]:
    return {
        "start": found.start,
        "drafted": [
            {**asdict(token), "token": vocabulary.label(token.id)} for token in found.drafted
        ],
        "ending": found.ending,
        "extra": None
        if found.extra is None
        else {
            "id": found.extra,
            "token": vocabulary.label(found.extra),
            "probability": found.extra_p,
        },
        "accepted": found.accepted,
        "positions": found.positions,
        "draft_ms": list(found.draft_ms),
        "check_ms": found.check_ms,
        "choose_ms": found.choose_ms,
    }


# ---------------------------------------------------------------- in lines


def _lines(found: dict[str, Any]) -> Iterator[str]:
    many = counted(found["gamma"], "token")
    yield f"{found['draft']} drafts for {found['model']}, {many} a round"
    yield "✓ kept  ✗ rejected → its replacement  + one more for nothing  · not judged"
    for number_, each in enumerate(found["rounds"], 1):
        yield f"{number_:>3}  {'  '.join(_shown(each))}"
    yield f"with the draft: {found['text']!r}"
    yield f"without:        {found['plain_text']!r}"
    if found["acceptance"] is not None:
        yield (
            f"kept {found['accepted']} of {found['judged']} judged ({found['acceptance']:.1%}; "
            f"Σ min(p, q) on average {found['mean_overlap']:.1%})"
        )
    if found["tokens_per_pass"] is not None:
        yield (
            f"{found['tokens_per_pass']:.2f} tokens a pass, by the formula "
            f"{found['expected_tokens_per_pass']:.2f}"
        )
    if found["times_as_fast"] is not None:
        yield (
            f"measured: {found['ms_a_token']:.1f} ms a token, without a draft "
            f"{found['plain_ms_a_token']:.1f} ms: {_speed(found['times_as_fast'])}"
        )
    if found["expected_times_as_fast"] is not None:
        yield f"by the formula and the measured passes: {found['expected_times_as_fast']:.2f} times"
    if not found["complete"]:
        yield "stopped before the end"


def _speed(times: float) -> str:
    return f"{times:.2f} times as fast" + (", so slower" if times < 1 else "")


def _shown(each: dict[str, Any]) -> Iterator[str]:
    signs = {True: "✓", False: "✗", None: "·"}
    for token in each["drafted"]:
        yield f"{token['token']}{signs[token['kept']]}"
    if each["extra"] is not None:
        yield f"{'→ ' if each['ending'] == 'replaced' else '+ '}{each['extra']['token']}"
