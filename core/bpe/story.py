"""The story of one word: how its tokens came about, as far as it can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from core.bpe.cut import Word
from core.bpe.merges import Replay, replay
from core.bpe.rules import Rules
from core.bpe.unigram import Lattice, best_path

MOST_SYMBOLS: Final = 96
"""A longer word is told up to the last finished token within so many symbols."""

Why = Literal["added", "dropout", "wordpiece", "wordlevel", "other", "unexplained"]
"""Why there is nothing to play: keys of the page's sentences."""


@dataclass(frozen=True)
class Story:
    """What is told of ``word``: merges, or a lattice, or neither and why."""

    word: Word
    told: str
    """The part of ``word.normal`` that is told; all of it, unless it is too long."""
    ids: tuple[int, ...]
    """The tokens of that part."""
    replay: Replay | None = None
    lattice: Lattice | None = None
    why_not: Why | None = None

    @property
    def capped(self) -> bool:
        return self.word.normal is not None and len(self.told) < len(self.word.normal)


def story(rules: Rules, word: Word, *, most: int | None = MOST_SYMBOLS) -> Story:
    """Play ``word`` again; ``most`` symbols of it at most (``None``: all).

    Whatever does not end in the tokenizer's own tokens is not told.
    """
    if word.added:
        return Story(word, "", word.ids, why_not="added")
    if word.normal is None:
        return Story(word, "", word.ids, why_not="unexplained")
    if rules.kind == "bpe":
        return _merges(rules, word, word.normal, most)
    if rules.kind == "unigram":
        return _lattice(rules, word, word.normal, most)
    return Story(word, "", word.ids, why_not=rules.kind)


def _merges(rules: Rules, word: Word, normal: str, most: int | None) -> Story:
    if rules.dropout:
        return Story(word, "", word.ids, why_not="dropout")
    told, count = normal, len(word.ids)
    at_once = rules.ignore_merges and word.whole and len(word.ids) == 1
    if most is not None and len(normal) > most and not at_once:
        told, count = _shortened(word, normal, most)
    found = replay(rules, told)
    if found.ids != word.ids[:count]:
        return Story(word, "", word.ids, why_not="unexplained")
    return Story(word, told, found.ids, replay=found)


def _lattice(rules: Rules, word: Word, normal: str, most: int | None) -> Story:
    told, count = normal, len(word.ids)
    if most is not None and len(normal) > most:
        told, count = _shortened(word, normal, most)
    found = best_path(rules, told)
    if found.ids != word.ids[:count]:
        return Story(word, "", word.ids, why_not="unexplained")
    return Story(word, told, found.ids, lattice=found)


def _shortened(word: Word, normal: str, most: int) -> tuple[str, int]:
    """The beginning of a long word up to a border between finished tokens, and its tokens.

    Nothing crosses such a border, so the beginning alone is cut as it is in the whole word.
    """
    ends = [(end, index + 1) for index, end in enumerate(word.ends) if end > 0]
    short = [pair for pair in ends if pair[0] <= most]
    end, count = short[-1] if short else ends[0]
    return normal[:end], count
