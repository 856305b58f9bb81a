"""A comparison as plain values, in the shape that the command line promises."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from core.cli.records import choice_record, token_record
from core.compare_records import Comparison, Difference, Question, Text, Written
from core.decode import difference, figures, seed_of, spell
from core.decode.compare import throws
from core.decode.figures import logprob
from core.engine.protocol import Engine
from core.faults import Fault
from core.settings import BeamSettings
from core.tokens import Vocabulary
from core.trace import Choice

Engines = Mapping[str, Engine | Fault]


def comparison_record(found: Comparison, engines: Engines, lines: Sequence[str]) -> dict[str, Any]:
    """Everything; ``lines`` are the strategies as they were typed."""
    question = found.question
    reference = reference_of(found)
    return {
        "model": question.model,
        "prompt": _prompt(question, engines),
        "samples": question.samples,
        "dice": question.dice,
        "max_new": question.max_new,
        "columns": [
            column_record(found, engines, place, reference, line)
            for place, line in enumerate(lines)
        ],
        "steps": found.steps,
        "ms": found.ms,
        "cancelled": found.cancelled,
    }


def reference_of(found: Comparison) -> int:
    """The first column that wrote something: the others are compared with it."""
    return next((i for i, written in enumerate(found.columns) if written.texts), 0)


def vocabulary_of(found: Comparison, engines: Engines, place: int) -> Vocabulary | None:
    """That of a column's model; ``None`` where the model is not there."""
    name = found.columns[place].column.model or found.question.model
    engine = engines.get(name)
    return None if engine is None or isinstance(engine, Fault) else engine.vocabulary


def _prompt(question: Question, engines: Engines) -> list[dict[str, Any]] | None:
    """The tokens of the question's own model; ``None`` where no column uses it."""
    engine = engines.get(question.model)
    if engine is None or isinstance(engine, Fault):
        return None
    read = engine.vocabulary.read(question.prompt, chat=question.chat, literal=question.literal)
    return [token_record(token) for token in engine.vocabulary.tokens(read.ids, len(read.ids))]


def column_record(
    found: Comparison, engines: Engines, place: int, reference: int, line: str
) -> dict[str, Any]:
    """One column. What failed before it could begin has no texts and no figures."""
    written, question = found.columns[place], found.question
    vocabulary = vocabulary_of(found, engines, place)
    known = vocabulary is not None and bool(written.texts)
    record: dict[str, Any] = {
        "strategy": spell(written.column) if known else line,
        "model": written.column.model or question.model,
        "settings": _settings(written, question) if known else None,
        "texts": [],
        "figures": None,
        "first_difference": None,
        "fault": None,
    }
    if vocabulary is not None and written.texts:
        record["texts"] = [
            text_record(text, vocabulary, _seed(question, place, text.sample))
            for text in written.texts
        ]
        record["figures"] = dataclasses.asdict(figures(written, vocabulary))
        if place != reference:
            parts = difference(found, engines, place, reference)
            names = (vocabulary, vocabulary_of(found, engines, reference))
            record["first_difference"] = difference_record(parts, reference, names)
    if written.fault is not None:
        record["fault"] = {"code": written.fault.code, "message": str(written.fault)}
    if written.search is not None and vocabulary is not None:
        record["hypotheses"] = [
            {
                "tokens": list(hypothesis.tokens),
                "text": vocabulary.text(hypothesis.tokens, skip_special=True),
                "logprob": hypothesis.logprob,
                "score": hypothesis.score,
                "finished": hypothesis.finished,
            }
            for hypothesis in written.search.hypotheses
        ]
    record["ms"] = written.ms
    return record


def _settings(written: Written, question: Question) -> dict[str, Any]:
    settings = written.column.settings
    name = "beam" if isinstance(settings, BeamSettings) else settings.strategy
    return {"strategy": name, **dataclasses.asdict(settings), "max_new": question.max_new}


def _seed(question: Question, place: int, sample: int) -> int | None:
    """The seed with which ``run`` writes this text; ``None`` where no dice are thrown."""
    settings = question.columns[place].settings
    return seed_of(question, place, sample) if throws(settings) else None


def text_record(text: Text, vocabulary: Vocabulary, seed: int | None) -> dict[str, Any]:
    return {
        "sample": text.sample,
        "seed": seed,
        "tokens": list(text.ids),
        "text": vocabulary.text(text.ids, skip_special=True),
        "logprob": logprob(text),
        "stop": text.stop,
        "steps": [
            step_record(index, choice, vocabulary) for index, choice in enumerate(text.choices)
        ],
    }


def step_record(index: int, choice: Choice, vocabulary: Vocabulary) -> dict[str, Any]:
    return {
        "index": index,
        **choice_record(choice, vocabulary),
        "entropy_model": choice.entropy_model,
        "entropy_filtered": choice.entropy_filtered,
    }


def difference_record(
    parts: Difference, reference: int, vocabularies: tuple[Vocabulary | None, Vocabulary | None]
) -> dict[str, Any]:
    """``reference`` is the column compared with, counted from 0."""
    ids = (parts.here, parts.there)
    here, there = (
        None if id is None or names is None else {"id": id, "text": names.text([id])}
        for id, names in zip(ids, vocabularies, strict=True)
    )
    return {
        "from": reference,
        "step": parts.step,
        "reason": parts.reason,
        "here": here,
        "there": there,
        "stage": parts.stage,
        "parameter": parts.parameter,
        "by": "this" if parts.removed_here else "other",
    }
