"""Which layers a pipeline stage gets, and how long stages stand idle. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from core.faults import Fault
from core.lab.parallel.deal import Span, deal, most_ranks
from core.model_info import ModelInfo

By = Literal["layers", "cost"]
BY: Final[tuple[By, ...]] = ("layers", "cost")
MICRO_BATCHES: Final = (1, 2, 4, 8)
TEXTS: Final = 8
"""Texts in a batch; micro-batches divide it."""


@dataclass(frozen=True)
class StagePlan:
    """The layers of each stage, and what a token costs it."""

    by: By
    layers: tuple[Span, ...]
    cost: tuple[int, ...]
    """Multiplications of each stage for one token that is scored: its layers, and the LM head."""

    @property
    def stages(self) -> int:
        return len(self.layers)


def layer_cost(info: ModelInfo) -> int:
    """Multiplications by weights in one layer for one token."""
    attention = info.width * info.head_dim * (2 * info.heads + 2 * info.kv_heads)
    return attention + (3 if info.gated else 2) * info.width * info.intermediate


def head_cost(info: ModelInfo) -> int:
    """The same for the LM head."""
    return info.width * info.vocabulary


def stages_of(info: ModelInfo, stages: int, by: By = "layers") -> StagePlan:
    """Raises Fault for too few or too many stages, and for an unknown way to cut."""
    if by not in BY:
        raise Fault("unknown_split", value=by, allowed=", ".join(BY))
    if info.layers == 0:
        raise Fault("lab_needs_weights")
    if info.layers == 1:
        raise Fault("one_layer_no_stages")
    most = min(most_ranks(), info.layers)
    if not 2 <= stages <= most:
        raise Fault("ranks_out_of_range", ranks=stages, low=2, high=most)
    each, last = layer_cost(info), head_cost(info)
    cuts = deal(info.layers, stages)
    if by == "cost":
        cuts = _cheapest(info.layers, stages, each, last)
    cost = [(b - a) * each for a, b in cuts]
    cost[-1] += last
    return StagePlan(by, cuts, tuple(cost))


def _cheapest(layers: int, stages: int, each: int, last: int) -> tuple[Span, ...]:
    """The cut whose dearest stage is cheapest; every stage has a layer.

    All layers cost the same, so the stages before the last one share evenly what it leaves.
    """

    def costs(cuts: tuple[Span, ...]) -> tuple[int, int]:
        each_stage = [(b - a) * each for a, b in cuts]
        each_stage[-1] += last
        return max(each_stage), sum(cost * cost for cost in each_stage)

    cuts = (
        (*deal(layers - keeps, stages - 1), (layers - keeps, layers))
        for keeps in range(1, layers - stages + 2)
    )
    return min(cuts, key=costs)


def check_micro_batches(count: int) -> int:
    """Raises Fault for a number that does not divide the batch."""
    if count not in MICRO_BATCHES:
        allowed = ", ".join(map(str, MICRO_BATCHES))
        raise Fault("bad_micro_batches", value=count, allowed=allowed, texts=TEXTS)
    return count


def ideal_bubble(stages: int, micro_batches: int) -> float:
    """Share of idle time with equal stages and nothing else to wait for: (W − 1) ÷ (n + W − 1)."""
    return (stages - 1) / (micro_batches + stages - 1)


def unequal_bubble(cost: Sequence[float], micro_batches: int) -> float:
    """The same with stages of these costs: the dearest one sets the pace.

    The last piece leaves after Σ cost + (n − 1) · dearest, in units of one piece.
    """
    lasts = sum(cost) + (micro_batches - 1) * max(cost)
    return 1 - micro_batches * sum(cost) / (len(cost) * lasts)


@dataclass(frozen=True)
class Bar:
    """One stage working on one micro-batch: start and end in ms since the first start."""

    stage: int
    micro_batch: int
    start: float
    end: float


def bubble(bars: Sequence[Bar]) -> float:
    """Share of the stages' time between the first start and the last end in which they idle."""
    stages = 1 + max(bar.stage for bar in bars)
    whole = max(bar.end for bar in bars) - min(bar.start for bar in bars)
    busy = sum(bar.end - bar.start for bar in bars)
    return 1 - busy / (stages * whole)
