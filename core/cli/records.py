"""Records as plain values, in the shape that the command line promises."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from core.decode import choose
from core.decode.candidates import columns, top_ids
from core.decode.past import Past
from core.decode.rules import rules_for
from core.settings import PROCESSOR_NAMES, Settings
from core.tokens import Vocabulary
from core.trace import Choice, Generation, StepTrace, Token

FURTHER: Final = frozenset(("typical_p", "rolls", *PROCESSOR_NAMES))
"""Settings that a record names only where they are on."""


def run_record(run: Generation, vocabulary: Vocabulary, top: int) -> dict[str, Any]:
    """A whole run; each stage of each step lists its ``top`` likeliest survivors."""
    before = [token.id for token in run.prompt]
    rules = rules_for(run.spec.settings, vocabulary)
    steps = []
    for step in run.steps:
        choice = choose(
            step.forward.logits,
            run.spec.settings,
            step=step.index,
            past=Past.at(before, step.index),
            rules=rules,
        )
        full = dataclasses.replace(step, choice=choice)
        steps.append(step_record(full, before, vocabulary, top))
        before = [*before, step.choice.id]
    return {
        "model": run.spec.model,
        "settings": settings_record(run.spec.settings),
        "prompt": [token_record(token) for token in run.prompt],
        "steps": steps,
        "text": text_of(run, vocabulary),
        "stop": run.stop,
        "logprob": run.logprob,
        "perplexity": run.perplexity,
    }


def settings_record(settings: Settings) -> dict[str, Any]:
    """Those that every run has, and of the further ones those that are on."""
    off = Settings()
    given = {
        name: value
        for name, value in dataclasses.asdict(settings).items()
        if name not in FURTHER or value != getattr(off, name)
    }
    return {**given, "order": settings.filters}


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
    step: StepTrace, before: list[int], vocabulary: Vocabulary, top: int
) -> dict[str, Any]:
    """One step, whose choice has its stages."""
    choice = step.choice
    stages = [
        {
            "name": stage.name,
            "parameter": stage.parameter,
            "survivors": stage.survivors,
            "mass": stage.mass,
            "top": [
                {"id": token, "text": vocabulary.text([token]), "probability": float(column[token])}
                for token in top_ids(stage.logits, min(top, stage.survivors))
            ],
        }
        for stage, column in zip(choice.stages, columns(choice.stages), strict=True)
    ]
    return {
        "index": step.index,
        "ids_before": before,
        "stages": stages,
        "choice": choice_record(choice, vocabulary),
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
