"""The same text through several tokenizers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.tokens import Vocabulary
from core.trace import Token


@dataclass(frozen=True)
class Reading:
    """What one tokenizer makes of a text."""

    tokens: tuple[Token, ...]
    """Without the tokens that the tokenizer adds to every text by itself."""
    entries: int
    """Size of its vocabulary."""
    changed: bool
    """Whether it reads something else than was typed: characters lost or rewritten."""


def reading(vocabulary: Vocabulary, text: str, *, literal: bool = False) -> Reading:
    """The tokens of ``text``. Raises Fault for a text that cannot be read."""
    encoded = vocabulary.encode(text, literal=literal)
    opening, closing = vocabulary.frame
    first = len(opening) if encoded.ids[: len(opening)] == opening else 0
    ids = encoded.ids[first : len(encoded.ids) - closing]
    notes = {"text_changed", "character_unreadable"} & set(encoded.notes)
    return Reading(vocabulary.tokens(ids, len(ids)), vocabulary.size, bool(notes))


def prices(vocabulary: Vocabulary, sentences: Sequence[str]) -> tuple[int, ...]:
    """How many tokens each sentence takes. Raises Fault as :func:`reading`."""
    return tuple(len(reading(vocabulary, sentence).tokens) for sentence in sentences)
