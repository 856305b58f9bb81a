"""`inspect`: one part of what happens to a prompt, as a record or as lines for people.

A part is a line of the table below: a function that makes the record (plain values, to be
written as JSON), and one that turns the record into lines.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from core.cli import (
    inspect_attention,
    inspect_embeddings,
    inspect_layers,
    inspect_merges,
    inspect_tokens,
)
from core.cli.output import check_target, write_json
from core.cli.question import Question
from core.faults import Fault

Record = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """Both functions raise Fault for what the reader can mend."""

    record: Callable[[Question], Record]
    lines: Callable[[Record], Iterable[str]]


PARTS: Final[dict[str, Part]] = {
    "tokens": Part(inspect_tokens.tokens, inspect_tokens.token_lines),
    "merges": Part(inspect_merges.merges, inspect_merges.merge_lines),
    "embeddings": Part(inspect_embeddings.embeddings, inspect_embeddings.embedding_lines),
    "attention": Part(inspect_attention.attention, inspect_attention.attention_lines),
    "lens": Part(inspect_layers.lens, inspect_layers.lens_lines),
    "residual": Part(inspect_layers.residual, inspect_layers.residual_lines),
}


def inspect(typed: argparse.Namespace) -> None:
    part = PARTS.get(typed.what)
    if part is None:
        raise Fault("unknown_part", value=typed.what, allowed=", ".join(PARTS))
    check_target(typed.json)
    record = part.record(Question(typed))
    if typed.json:
        write_json(record, typed.json)
        return
    for line in part.lines(record):
        print(line)
