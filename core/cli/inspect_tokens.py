"""`inspect --what tokens`: the prompt as the model reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from core.cli.question import Question
from core.cli.records import token_record


def tokens(question: Question) -> dict[str, Any]:
    """The tokens of the prompt; ``--position`` picks one of them."""
    made = question.tokens
    at = question.place("position", question.position, len(made))
    chosen = made if at is None else made[at : at + 1]
    return {
        "model": question.spec.model,
        "prompt": question.spec.prompt,
        "text": question.encoded.text,
        "tokens": [
            {**token_record(token), "piece": token.piece, "span": list(token.span)}
            for token in chosen
        ],
        "notes": list(question.encoded.notes),
    }


def token_lines(record: dict[str, Any]) -> Iterator[str]:
    yield f"{'':>4}  {'id':>7}  {'token':<20}{'piece':<20}{'bytes':<26}characters"
    for token in record["tokens"]:
        start, stop = token["span"]
        yield (
            f"{token['position']:>4}  {token['id']:>7}  {token['label']:<20}"
            f"{token['piece']:<20}{token['bytes']:<26}{start}–{stop}"
            + ("  special" if token["special"] else "")
        )
