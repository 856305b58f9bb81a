"""Numbers about what a column wrote: how likely, how varied, how repetitive.

n-grams are sequences of n tokens of one text; none runs from one text into the next. Control
tokens (an end token) count like any other token, but have no bytes of text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from core.compare_records import Figures, Text, Written
from core.decode.bleu import self_bleu
from core.decode.measure import bits
from core.tokens import Vocabulary

__all__ = [
    "distinct",
    "figures",
    "longest_repeat",
    "perplexity",
    "repeated",
    "self_bleu",
    "zipf",
]

Ids = Sequence[int]
REPEATED: Final = 4
"""The n of the share of repeated n-grams."""


def figures(written: Written, vocabulary: Vocabulary) -> Figures:
    """All figures of a column, over those of its texts that have begun.

    ``vocabulary`` is that of the column's model.
    """
    texts = [text for text in written.texts if text.choices]
    ids = [text.ids for text in texts]
    choices = [choice for text in texts for choice in text.choices]
    count = len(choices)
    total = sum(map(logprob, texts))
    return Figures(
        tokens=count,
        logprob=total / len(texts) if texts else 0.0,
        perplexity=perplexity(total, count),
        bits_per_byte=_bits_per_byte(total, ids, vocabulary),
        entropy=sum(choice.entropy_model for choice in choices) / count if count else None,
        rank=sum(choice.rank for choice in choices) / count if count else None,
        distinct=(distinct(ids, 1), distinct(ids, 2), distinct(ids, 3)),
        longest_repeat=max(map(longest_repeat, ids), default=0),
        repeated_4grams=repeated(ids, REPEATED),
        zipf=zipf(ids),
        self_bleu=self_bleu(ids),
        forwards=written.forwards,
        tokens_per_second=1000 * count / written.ms if count and written.ms > 0 else None,
    )


def logprob(text: Text) -> float:
    """Σ ln p of the tokens under the model's own distribution, in nats; -inf if one of them
    was forced although it is impossible."""
    with np.errstate(divide="ignore"):
        return float(sum(np.log(choice.probability_model) for choice in text.choices))


def perplexity(total: float, tokens: int) -> float | None:
    """exp(-Σ ln p ÷ tokens): among how many equally likely tokens the model would be as unsure.

    (Jelinek et al. 1977.) ``None`` without tokens; infinite for an impossible one.
    """
    if not tokens:
        return None
    nats = -total / tokens
    return math.exp(nats) if nats < math.log(np.finfo(np.float64).max) else math.inf


def _bits_per_byte(total: float, texts: Sequence[Ids], vocabulary: Vocabulary) -> float | None:
    """-Σ log2 p ÷ bytes of text (UTF-8), end tokens' surprise included. (Gao et al. 2020.)"""
    size = sum(
        len(vocabulary.bytes_of(id)) for ids in texts for id in ids if not vocabulary.is_special(id)
    )
    return bits(-total) / size if size else None


def _grams(ids: Ids, n: int) -> list[tuple[int, ...]]:
    return list(zip(*(ids[start:] for start in range(n)), strict=False))


def distinct(texts: Sequence[Ids], n: int) -> float | None:
    """Different n-grams of all texts ÷ all their n-grams. (Li et al. 2016, distinct-n.)"""
    grams = [gram for ids in texts for gram in _grams(ids, n)]
    return len(set(grams)) / len(grams) if grams else None


def repeated(texts: Sequence[Ids], n: int) -> float | None:
    """Share of the n-grams that came before in the same text: 1 - different ÷ all, counted
    text by text. (Welleck et al. 2020, seq-rep-n.)"""
    grams = [_grams(ids, n) for ids in texts]
    total = sum(map(len, grams))
    return 1 - sum(len(set(own)) for own in grams) / total if total else None


def zipf(texts: Sequence[Ids]) -> float | None:
    """The slope s of ln frequency = c - s · ln rank, by least squares over all different tokens.

    About 1 for written language (Zipf 1949; Holtzman et al. 2020, section 5.2): larger where
    few tokens do all the work. Ties share no rank. ``None`` with fewer than two different
    tokens.
    """
    counts = Counter(token for ids in texts for token in ids)
    if len(counts) < 2:
        return None
    frequency = np.log(np.array(sorted(counts.values(), reverse=True), dtype=np.float64))
    rank = np.log(np.arange(1, len(counts) + 1, dtype=np.float64))
    away = rank - rank.mean()
    slope = float(away @ (frequency - frequency.mean()) / (away @ away))
    return -slope + 0.0  # no -0.0 where all are equally frequent


def longest_repeat(ids: Ids) -> int:
    """Tokens of the longest sequence that stands at two places of the text, which may overlap.

    Read from a suffix automaton (Blumer et al. 1985) in linear time: each state is a set of
    sequences that end at the same places, and one is repeated as soon as a second place is
    seen.
    """
    following: list[dict[int, int]] = [{}]
    link, length = [-1], [0]
    last = longest = 0
    for token in ids:
        new = len(length)
        length.append(length[last] + 1)
        link.append(0)
        following.append({})
        state = last
        while state >= 0 and token not in following[state]:
            following[state][token] = new
            state = link[state]
        if state >= 0:
            link[new] = _split(state, token, following, link, length)
            longest = max(longest, length[link[new]])
        last = new
    return longest


def _split(
    state: int, token: int, following: list[dict[int, int]], link: list[int], length: list[int]
) -> int:
    """The state of the longest suffix that was seen before; made anew where it shared one."""
    target = following[state][token]
    if length[target] == length[state] + 1:
        return target
    twin = len(length)
    length.append(length[state] + 1)
    following.append(dict(following[target]))
    link.append(link[target])
    link[target] = twin
    while state >= 0 and following[state].get(token) == target:
        following[state][token] = twin
        state = link[state]
    return twin
