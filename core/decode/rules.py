"""What a run prepares once from its settings and the vocabulary: banned texts, the pattern."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from core.decode.pattern import Pattern
from core.settings import Settings
from core.tokens import Vocabulary

KEPT: Final = 16
"""Prepared lists and patterns that are remembered."""


@dataclass(frozen=True)
class Rules:
    """Immutable; two runs with the same settings and vocabulary may share one."""

    banned: tuple[tuple[int, ...], ...] = ()
    """Sequences of ids whose last one is impossible wherever the text ends with the others."""
    pattern: Pattern | None = None


NO_RULES: Final = Rules()


def rules_for(settings: Settings, vocabulary: Vocabulary) -> Rules:
    """The rules of ``settings`` in the ids of ``vocabulary``; remembered, so cheap to ask for.

    Raises Fault for a pattern that cannot be understood or is too heavy.
    """
    if not settings.banned and not settings.pattern:
        return NO_RULES
    return _rules(settings.banned, settings.pattern, vocabulary)


@lru_cache(maxsize=KEPT)
def _rules(banned: tuple[str, ...], pattern: str, vocabulary: Vocabulary) -> Rules:
    compiled = Pattern(pattern, vocabulary) if pattern else None
    return Rules(tuple(dict.fromkeys(_sequences(banned, vocabulary))), compiled)


def _sequences(texts: Sequence[str], vocabulary: Vocabulary) -> Iterator[tuple[int, ...]]:
    """Each text as the tokenizer writes it with and without a space before it.

    Written another way (``Par`` + ``is`` where ``Paris`` is one token) a text is not noticed,
    as in transformers. A sequence that ends in a token which cannot be generated bans nothing.
    """
    for text in texts:
        bare = text.removeprefix(" ")
        for ids in (
            *_behind(bare, vocabulary),
            _ids(bare, vocabulary),
            _ids(f" {bare}", vocabulary),
        ):
            if ids and ids[-1] < vocabulary.size:
                yield ids


def _behind(text: str, vocabulary: Vocabulary) -> Iterator[tuple[int, ...]]:
    """The text as it goes on a line, where the tokenizer puts a space before a whole text."""
    if vocabulary.drops_first_space:
        line, both = _ids("\n", vocabulary), _ids(f"\n{text}", vocabulary)
        if both[: len(line)] == line:
            yield both[len(line) :]


def _ids(text: str, vocabulary: Vocabulary) -> tuple[int, ...]:
    """Without those that the tokenizer adds to every text."""
    opening, closing = vocabulary.frame
    ids = vocabulary.encode(text, literal=True).ids
    return ids[len(opening) : len(ids) - closing]
