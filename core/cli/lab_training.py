"""``lab training``: a few real steps on a private copy, beside inference."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from core.cli import lab_common as common
from core.cli.numbers import number, whole
from core.faults import Fault
from core.lab.models import local
from core.lab.training_records import (
    OPTIMIZERS,
    OTHER,
    RATE,
    SENTENCE,
    STEPS,
    Kept,
    Look,
    Prediction,
    Training,
    ask_of,
    beginning,
)
from core.tokens import Vocabulary


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text", metavar="TEXT", nargs="?", default=SENTENCE, help=f"to be learned ({SENTENCE})"
    )
    common.add_model(parser)
    put = parser.add_argument
    put("--steps", metavar="N", default=str(STEPS), help="default: %(default)s")
    put("--rate", metavar="R", default=str(RATE), help="learning rate (default: %(default)s)")
    put("--optimizer", metavar="|".join(OPTIMIZERS), default="adamw", help="default: %(default)s")
    put("--prompt", metavar="TEXT", help="its beginning, to be continued (all but its last word)")
    put("--other", metavar="TEXT", default=OTHER, help="another prompt (default: %(default)s)")


def run(typed: argparse.Namespace) -> None:
    """Raises Fault where it cannot be done."""
    steps, rate = whole("steps", typed.steps), number("rate", typed.rate)
    assert steps is not None
    assert rate is not None

    def make() -> dict[str, Any]:
        engine = common.engine_of(typed)
        from core.lab.training_run import trained  # noqa: PLC0415 - imports torch

        # Only a prompt that was not given is made from the sentence; an empty one is refused.
        prompt = beginning(typed.text) if typed.prompt is None else typed.prompt
        if not prompt:
            raise Fault("empty_prompt")
        read = (typed.text, prompt, typed.other)
        ask = ask_of(engine.vocabulary, *read, steps, rate, typed.optimizer)
        return record(common.to_the_end(trained(local(engine), ask)), engine.vocabulary)

    common.written(typed, make, _lines)


# ---------------------------------------------------------------- as JSON


def record(found: Training, vocabulary: Vocabulary) -> dict[str, Any]:
    """Bytes of real tensors, times in milliseconds, losses and KL in nats."""
    ask = found.ask
    return {
        "model": found.model,
        "machine": asdict(found.machine),
        "sentence": _tokens(ask.sentence, vocabulary),
        "steps": ask.steps,
        "rate": ask.rate,
        "optimizer": ask.optimizer,
        "expected_bytes": found.needed,
        "memory": None if found.kept is None else _memory(found.kept),
        "times": {
            name: None if spread is None else asdict(spread)
            for name, spread in (
                ("inference", found.inference_ms),
                ("forward", found.forward_ms),
                ("backward", found.backward_ms),
                ("update", found.update_ms),
                ("step", found.step_ms),
            )
        },
        "losses": list(found.losses),
        "token_probabilities": found.token_p.tolist(),
        "prompt": _prediction(found.prompt, vocabulary),
        "other": _prediction(found.other, vocabulary),
        "forgotten": [asdict(each) for each in found.forgotten],
        "moved": [asdict(each) for each in found.moved],
        "tensors_moved_most": [{"name": name, "relative": far} for name, far in found.tensors],
        "frozen": None
        if found.frozen is None
        else {**asdict(found.frozen), "untouched": found.frozen.untouched},
        "complete": found.done,
    }


def _tokens(ids: Sequence[int], vocabulary: Vocabulary) -> list[dict[str, Any]]:
    return [{"id": token, "token": vocabulary.label(token)} for token in ids]


def _memory(kept: Kept) -> dict[str, Any]:
    return {
        "inference": {
            "moving_weights": 0,
            "weights": kept.weights,
            "kv_cache": kept.cache,
            "bytes": kept.inference,
        },
        "training": {
            "moving_weights": kept.trained,
            "weights": kept.weights,
            "gradients": kept.gradients,
            "optimizer_states": kept.states,
            "activations": kept.activations,
            "activations_by_place": dict(kept.places),
            "bytes": kept.training,
        },
    }


def _prediction(found: Prediction | None, vocabulary: Vocabulary) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "ids": list(found.prompt),
        "before": _look(found.before, vocabulary),
        "after": None if found.after is None else _look(found.after, vocabulary),
        "before_probabilities_of_after": list(found.before_p),
        "kl": found.kl,
    }


def _look(found: Look, vocabulary: Vocabulary) -> dict[str, Any]:
    return {
        "next": [
            {"id": token, "token": vocabulary.label(token), "probability": p}
            for token, p in found.top
        ],
        "written": vocabulary.text(found.written),
        "written_ids": list(found.written),
    }


# ---------------------------------------------------------------- in lines


def _lines(found: dict[str, Any]) -> Iterator[str]:
    here = found["machine"]
    yield f"{found['model']} on {here['processor']}, {here['threads']} threads, {here['date']}"
    if found["memory"] is not None:
        yield from _memory_lines(found["memory"])
    if found["times"]["step"] is not None:
        yield "measured: " + " · ".join(
            f"{name} {each['median']:,.0f} ms" for name, each in found["times"].items()
        )
    yield "loss: " + " ".join(f"{loss:.3f}" for loss in found["losses"])
    for name in ("prompt", "other"):
        if found[name] is not None:
            yield from _prediction_lines(name, found[name])
    for each in found["forgotten"]:
        yield (
            f"{each['name']:<10} KL {each['kl']:.4f} · same favourite {each['top1']:.1%} · "
            f"perplexity {each['before']:.2f} → {each['after']:.2f}"
        )
    most = found["tensors_moved_most"]
    if most:
        yield "moved most: " + ", ".join(f"{t['name']} {t['relative']:.2%}" for t in most[:4])
    frozen = found["frozen"]
    if frozen is None:
        yield "stopped before the end"
        return
    yield (
        f"frozen again: {frozen['trained']} weights move · copy "
        f"{'gone' if frozen['gone'] else 'still held'} · served model "
        f"{'bit-equal' if frozen['untouched'] else 'CHANGED'} (SHA-256 {frozen['sum_after'][:16]}…)"
    )


def _memory_lines(memory: dict[str, Any]) -> Iterator[str]:
    yield f"{'bytes':<18}{'inference':>16}{'training':>16}"
    one, other = memory["inference"], memory["training"]
    for name in ("weights", "kv_cache", "gradients", "optimizer_states", "activations", "bytes"):
        values = [each.get(name) for each in (one, other)]
        shown = ["–" if value is None else f"{value:,}" for value in values]
        label = "together" if name == "bytes" else name.replace("_", " ")
        yield f"{label:<18}{shown[0]:>16}{shown[1]:>16}"
    yield f"{'weights that move':<18}{one['moving_weights']:>16,}{other['moving_weights']:>16,}"


def _prediction_lines(name: str, found: dict[str, Any]) -> Iterator[str]:
    for when in ("before", "after"):
        if found[when] is not None:
            top = " · ".join(
                f"{t['token']} {t['probability']:.1%}" for t in found[when]["next"][:4]
            )
            yield f"{name:<7}{when:<7} {top}  {found[when]['written']!r}"
