"""Who gets which heads, neurons and rows of the vocabulary. Whole numbers only, no torch."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from core.faults import Fault
from core.lab.machine import cores
from core.model_info import ModelInfo

Attention = Literal["even", "copied", "uneven", "whole"]
"""How the heads are dealt out: alike; alike with copies of KV heads; unlike; not at all."""
Wanted = Literal["split", "whole"]
WANTED: Final[tuple[Wanted, ...]] = ("split", "whole")
Span = tuple[int, int]
"""First, and one after the last."""


def most_ranks() -> int:
    """Worker processes that one experiment may start on this machine."""
    return max(4, min(8, cores()))


def deal(count: int, ranks: int) -> tuple[Span, ...]:
    """``count`` things in their order to ``ranks`` hands; the first ones get what is over."""
    each, over = divmod(count, ranks)
    edges = [0]
    for rank in range(ranks):
        edges.append(edges[-1] + each + (rank < over))
    return tuple(pairwise(edges))


def deal_heads(heads: int, kv_heads: int, ranks: int) -> tuple[tuple[Span, Span], ...]:
    """(query heads, KV heads) of each rank.

    Query heads that share a KV head stay together while there are KV heads for everybody;
    otherwise a group is cut and each of its ranks holds a copy of its KV head. So within a rank
    every KV head serves equally many query heads, which is all that attention asks for. Raises
    Fault where there are more ranks than heads.
    """
    if ranks > heads:
        raise Fault("ranks_beyond_heads", ranks=ranks, heads=heads)
    group = heads // kv_heads
    if ranks <= kv_heads:
        return tuple(((a * group, b * group), (a, b)) for a, b in deal(kv_heads, ranks))
    found = []
    for kv, (first, last) in enumerate(deal(ranks, kv_heads)):
        for a, b in deal(group, last - first):
            found.append(((kv * group + a, kv * group + b), (kv, kv + 1)))
    return tuple(found)


@dataclass(frozen=True)
class Hand:
    """What one rank holds of every layer, and of the vocabulary."""

    rank: int
    heads: Span
    kv_heads: Span
    neurons: Span
    rows: Span
    """Of the embedding matrix and the LM head."""


@dataclass(frozen=True)
class TensorPlan:
    """How a model is split, before anything is started."""

    ranks: int
    attention: Attention
    hands: tuple[Hand, ...]
    layers: int
    heads: int
    kv_heads: int
    neurons: int
    """Of a feed-forward part; 0 where the layers differ, and each is dealt out for itself."""
    vocabulary: int
    width: int
    number_bytes: int

    @property
    def sums_a_layer(self) -> int:
        """All-reduces: one after the feed-forward part, one after attention unless it is whole."""
        return 1 if self.attention == "whole" else 2

    def layer_bytes(self, tokens: int = 1) -> int:
        """What is added up in all layers for so many tokens: sums · L · D · bytes a number."""
        return self.sums_a_layer * self.layers * self.width * self.number_bytes * tokens

    @property
    def balance(self) -> tuple[float, ...]:
        """Share of the query heads that each rank computes; ranks wait for the largest."""
        return tuple((h.heads[1] - h.heads[0]) / self.heads for h in self.hands)


def plan_of(info: ModelInfo, ranks: int, wanted: Wanted = "split") -> TensorPlan:
    """Raises Fault for too few or too many ranks, or parts too small to be dealt out."""
    if wanted not in WANTED:
        raise Fault("unknown_split", value=wanted, allowed=", ".join(WANTED))
    most = most_ranks()
    if not 2 <= ranks <= most:
        raise Fault("ranks_out_of_range", ranks=ranks, low=2, high=most)
    if info.layers == 0:
        raise Fault("lab_needs_weights")
    if 0 < info.intermediate < ranks:
        raise Fault("ranks_beyond_heads", ranks=ranks, heads=info.intermediate)
    whole: Span = (0, info.heads)
    if wanted == "whole":
        attention: Attention = "whole"
        dealt = tuple((whole, (0, info.kv_heads)) for _ in range(ranks))
    else:
        dealt = deal_heads(info.heads, info.kv_heads, ranks)
        attention = kind_of(info.heads, info.kv_heads, ranks)
    neurons, rows = deal(info.intermediate, ranks), deal(info.vocabulary, ranks)
    hands = tuple(
        Hand(rank, *dealt[rank], neurons=neurons[rank], rows=rows[rank]) for rank in range(ranks)
    )
    return TensorPlan(
        ranks=ranks,
        attention=attention,
        hands=hands,
        layers=info.layers,
        heads=info.heads,
        kv_heads=info.kv_heads,
        neurons=info.intermediate,
        vocabulary=info.vocabulary,
        width=info.width,
        number_bytes=4 if info.dtype == "float32" else 2,
    )


def kind_of(heads: int, kv_heads: int, ranks: int) -> Attention:
    """What becomes of the heads on so many ranks. Raises Fault for more ranks than heads."""
    dealt = deal_heads(heads, kv_heads, ranks)
    if len({b - a for (a, b), _ in dealt}) > 1:
        return "uneven"
    return "even" if ranks <= kv_heads else "copied"


def even_ranks(heads: int, kv_heads: int, most: int) -> tuple[int, ...]:
    """Numbers of ranks from 2 to ``most`` that all get equally many heads, and no copies."""
    return tuple(n for n in range(2, most + 1) if n <= kv_heads and kv_heads % n == 0)
