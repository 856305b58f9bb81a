"""Byte-pair encoding of one word, merge by merge, with the pairs that competed."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from core.bpe.rules import Rules


@dataclass(frozen=True)
class Pair:
    """Two neighbours that the table of merges knows."""

    at: int
    """Index of the left one among the symbols."""
    left: int
    right: int
    result: int
    """Ids of both, and of what they become."""
    rank: int
    """The smallest rank wins; among equals the leftmost."""


@dataclass(frozen=True)
class Merge:
    """One merge: the winner, and all pairs that stood there, best first (the winner too)."""

    won: Pair
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Replay:
    """A word on its way from single characters (or bytes) to tokens."""

    start: tuple[int, ...]
    """Ids of the symbols that it is taken apart into."""
    merges: tuple[Merge, ...]
    ids: tuple[int, ...]
    """What is left when no pair has a rule any more."""
    whole: bool = False
    """No merges were needed: the word is an entry, and this tokenizer then takes it at once."""


def replay(rules: Rules, word: str) -> Replay:
    """The merges that turn ``word`` (as the pre-tokenizer left it) into tokens.

    ``rules`` must be of kind "bpe" without dropout.
    """
    entry = rules.id_of(word) if rules.ignore_merges else None
    if entry is not None:
        return Replay((entry,), (), (entry,), whole=True)
    symbols = symbols_of(rules, word)
    start = tuple(symbols)
    known = [rules.rule(a, b) for a, b in itertools.pairwise(symbols)]
    merges: list[Merge] = []
    while any(known):
        pairs = sorted(
            (
                Pair(at, symbols[at], symbols[at + 1], rule.result, rule.rank)
                for at, rule in enumerate(known)
                if rule is not None
            ),
            key=lambda pair: (pair.rank, pair.at),
        )
        won = pairs[0]
        merges.append(Merge(won, tuple(pairs)))
        at = won.at
        symbols[at : at + 2] = [won.result]
        # only the pairs with the new symbol can have changed
        left = [rules.rule(symbols[at - 1], symbols[at])] if at else []
        right = [rules.rule(symbols[at], symbols[at + 1])] if at + 1 < len(symbols) else []
        known[max(at - 1, 0) : at + 2] = [*left, *right]
    return Replay(start, tuple(merges), tuple(symbols))


def symbols_of(rules: Rules, word: str) -> list[int]:
    """Ids of the characters; of the bytes of those that the vocabulary lacks."""
    made: list[int] = []
    unknown = False
    for index, char in enumerate(word):
        piece = char if index == 0 else rules.prefix + char
        if index == len(word) - 1:
            piece += rules.suffix
        id = rules.id_of(piece)
        if id is not None:
            made.append(id)
            unknown = False
            continue
        fallen = rules.fallback(piece)
        if fallen is not None:
            made += fallen
            unknown = False
        elif rules.unknown is not None:
            if not (unknown and rules.fuse_unknown):
                made.append(rules.unknown)
            unknown = True
    return made
