"""Records as plain values, in the shape that the command line promises."""

from __future__ import annotations

import dataclasses
from typing import Any

from core.decode import choose
from core.decode.candidates import columns, top_ids
from core.settings import Settings
from core.tokens import Vocabulary
from core.trace import Choice, Generation, StepTrace, Token


def run_record(run: Generation, vocabulary: Vocabulary, top: int) -> dict[str, Any]:
    """A whole run; each stage of each step lists its ``top`` likeliest survivors."""
    before = [token.id for token in run.prompt]
    steps = []
    for step in run.steps:
        steps.append(step_record(step, before, run.spec.settings, vocabulary, top))
        before = [*before, step.choice.id]
    return {
        "model": run.spec.model,
        "settings": dataclasses.asdict(run.spec.settings),
        "prompt": [token_record(token) for token in run.prompt],
        "steps": steps,
        "text": text_of(run, vocabulary),
        "stop": run.stop,
        "logprob": run.logprob,
        "perplexity": run.perplexity,
    }


def text_of(run: Generation, vocabulary: Vocabulary) -> str:
    """What was generated, without control tokens and without the prompt."""
    return vocabulary.text([step.choice.id for step in run.steps], skip_special=True)


def token_record(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "text": token.text,
        "label": token.label,
        "position": token.position,
        "bytes": token.bytes.hex(" ").upper(),
        "special": token.special,
        "group": list(token.group),
    }


def step_record(
    step: StepTrace, before: list[int], settings: Settings, vocabulary: Vocabulary, top: int
) -> dict[str, Any]:
    logits = step.forward.logits
    choice = choose(logits, settings, step=step.index)
    # No filter reorders, so the likeliest survivors of every stage are the model's likeliest.
    best = top_ids(logits, top)
    stages = [
        {
            "name": stage.name,
            "parameter": stage.parameter,
            "survivors": stage.survivors,
            "mass": stage.mass,
            "top": [
                {"id": token, "text": vocabulary.text([token]), "probability": float(column[token])}
                for token in best[: stage.survivors]
            ],
        }
        for stage, column in zip(choice.stages, columns(choice.stages), strict=True)
    ]
    return {
        "index": step.index,
        "ids_before": before,
        "stages": stages,
        "choice": choice_record(step.choice, vocabulary),
        "ms": step.forward.ms,
    }


def choice_record(choice: Choice, vocabulary: Vocabulary | None = None) -> dict[str, Any]:
    """Without a vocabulary (numbers typed by hand) there is no text."""
    text = {} if vocabulary is None else {"text": vocabulary.text([choice.id])}
    return {
        "id": choice.id,
        **text,
        "probability_model": choice.probability_model,
        "probability_filtered": choice.probability_filtered,
        "rank": choice.rank,
        "u": choice.u,
        "rule": choice.rule,
    }


def choose_record(choice: Choice) -> dict[str, Any]:
    """The stages of one choice: who survives each, and with what probability."""
    stages = [
        {
            "name": stage.name,
            "keeps": stage.keeps.nonzero()[0].tolist(),
            "probabilities": column.tolist(),
        }
        for stage, column in zip(choice.stages, columns(choice.stages), strict=True)
    ]
    return {"stages": stages, "choice": choice_record(choice)}
