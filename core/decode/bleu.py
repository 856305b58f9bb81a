"""Self-BLEU: how much the texts of one column resemble each other.

BLEU-4 (Papineni et al. 2002) of each text against all the others, and the mean (Zhu et al.
2018, Texygen). High means: all samples say the same. Tokens are the model's. Where a text
shares no n-gram at all, 0.1 is counted instead of 0 (method 1 of Chen & Cherry 2014), as in
Texygen; sharing no single token gives 0.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

Ids = Sequence[int]
LONGEST: Final = 4
EPSILON: Final = 0.1


def self_bleu(texts: Sequence[Ids]) -> float | None:
    """The mean of all texts, 0 … 1; ``None`` with fewer than two texts."""
    if len(texts) < 2:
        return None
    grams = [[_count(ids, n) for ids in texts] for n in range(1, LONGEST + 1)]
    most = [_most(counts) for counts in grams]
    lengths = [len(ids) for ids in texts]
    scores = []
    for index in range(len(texts)):
        parts = [
            _matches(counts[index], best, index) for counts, best in zip(grams, most, strict=True)
        ]
        scores.append(_bleu(parts, lengths, index))
    return sum(scores) / len(scores)


def _count(ids: Ids, n: int) -> Counter[tuple[int, ...]]:
    return Counter(zip(*(ids[start:] for start in range(n)), strict=False))


Best = dict[tuple[int, ...], tuple[int, int, int]]
"""Of each n-gram: which text has it most often, how often, and how often the next one has it."""


def _most(counts: Sequence[Counter[tuple[int, ...]]]) -> Best:
    """So that the largest count among all *other* texts is known without looking at them."""
    best: Best = defaultdict(lambda: (-1, 0, 0))
    for index, own in enumerate(counts):
        for gram, count in own.items():
            owner, first, second = best[gram]
            if count > first:
                best[gram] = (index, count, first)
            else:
                best[gram] = (owner, first, max(second, count))
    return best


def _matches(own: Counter[tuple[int, ...]], best: Best, index: int) -> tuple[int, int]:
    """(n-grams of one text that some other text has, as often at most; all of its n-grams)."""
    found = 0
    for gram, count in own.items():
        owner, first, second = best[gram]
        found += min(count, second if owner == index else first)
    return found, max(1, own.total())


def _bleu(parts: Sequence[tuple[int, int]], lengths: Sequence[int], index: int) -> float:
    if parts[0][0] == 0:
        return 0.0
    mean = sum(math.log((found or EPSILON) / total) for found, total in parts) / len(parts)
    length = lengths[index]
    others = [other for place, other in enumerate(lengths) if place != index]
    # The closest one in length; of two equally close, the shorter.
    reference = min(others, key=lambda other: (abs(other - length), other))
    brevity = 1.0 if length > reference else math.exp(1 - reference / length)
    return brevity * math.exp(mean)
