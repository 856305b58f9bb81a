"""What the experiments leave behind. Frozen, without tensors or processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float

from core.lab.machine import Machine
from core.lab.parallel.deal import TensorPlan
from core.lab.parallel.stages import Bar, StagePlan
from core.lab.timing import Spread

Phase = Literal["wait", "write", "start", "load", "measure", "done"]
"""What is being done: others' workers run; the weights are written down for the workers; the
processes start; they read their shares; they compute."""
PARTS: Final = ("attention", "feed_forward")
Kind = Literal["attention", "feed_forward", "embedding", "logits", "activations"]
"""What was sent: partial sums of one of the two parts, the vectors of the tokens, slices of the
logits, or the stream from one stage to the next."""


@dataclass(frozen=True)
class Traffic:
    """Calls of one kind and the bytes that one rank handed to them, as torch saw them."""

    kind: Kind
    calls: int
    bytes: int
    theory: int
    """The bytes by formula."""


@dataclass(frozen=True)
class Rank:
    """One worker process."""

    rank: int
    weights: int
    """Bytes of the tensors that it holds."""
    kv: int
    """Bytes of its keys and values after the last step."""
    process: int
    """Bytes of memory that the process owns, Python and torch included."""
    threads: int
    read_ms: float
    """Reading its share of the weights."""
    prefill_ms: float
    step: Spread | None = None
    """One token, with everything."""
    waiting: Spread | None = None
    """The part of it that goes to sending and to waiting for the others."""


@dataclass(frozen=True, eq=False)
class TensorRun:
    """The model on several ranks beside the model in one process."""

    plan: TensorPlan
    done: bool = False
    progress: float = 0.0
    phase: Phase = "wait"
    positions: tuple[int, ...] = ()
    """Those of the prompt whose partial sums are kept: the last ones."""
    partials: Float[np.ndarray, "rank layer part position width"] | None = None
    """What each rank computed of each part's output, before the sum. With whole attention its
    part is 0 for all ranks but the first."""
    sums: Float[np.ndarray, "layer part position width"] | None = None
    """What the all-reduce made of them, on rank 0."""
    dense: Float[np.ndarray, "layer part position width"] | None = None
    """The same outputs in one process."""
    difference: float | None = None
    """Largest difference of the prompt's logits from those of one process."""
    step_difference: float | None = None
    """The same of the logits of the last step."""
    favourites: tuple[tuple[int, float, float], ...] = ()
    """(token, probability in one process, probability split), the likeliest first."""
    prefill_traffic: tuple[Traffic, ...] = ()
    step_traffic: tuple[Traffic, ...] = ()
    tokens: int = 0
    """Of the prompt."""
    ranks: tuple[Rank, ...] = ()
    backend: str = ""
    single_weights: int = 0
    single_prefill_ms: float = 0.0
    single_step: Spread | None = None
    machine: Machine | None = None


@dataclass(frozen=True)
class Timeline:
    """Passes of one batch through the stages; the bars are those of the pass of median length."""

    micro_batches: int
    bars: tuple[Bar, ...]
    bubble: float
    """Of these bars."""
    ideal: float
    unequal: float
    """By formula, with the stages' measured shares of the work."""
    took: Spread
    difference: float
    """Largest difference of the logits from one process."""


@dataclass(frozen=True)
class PipelineRun:
    """A batch of texts through stages, beside the model in one process."""

    plan: StagePlan
    done: bool = False
    progress: float = 0.0
    phase: Phase = "wait"
    texts: int = 0
    length: int = 0
    """Tokens of each text."""
    own: int = 0
    """Tokens at the beginning of each text that are the prompt's."""
    runs: tuple[Timeline, ...] = ()
    traffic: Traffic | None = None
    """Of one pass over all borders, for the whole batch."""
    weights: tuple[int, ...] = ()
    """Bytes of the tensors of each stage."""
    width: int = 0
    number_bytes: int = 4
    single_weights: int = 0
    single: Spread | None = None
    difference: float | None = None
    machine: Machine | None = None

    @property
    def border_bytes(self) -> int:
        """What crosses one border for the whole batch: one vector of each position."""
        return self.texts * self.length * self.width * self.number_bytes


@dataclass(frozen=True)
class Place:
    """A run of neighbouring modules that live in one place."""

    first: str
    last: str
    modules: int
    where: str
    """``cpu``, ``disk``, or an accelerator's name."""
    bytes: int


@dataclass(frozen=True)
class OffloadRun:
    """The model with less room than it needs, beside the same model with all of it."""

    share: float
    """Of the weights that memory was allowed to hold."""
    done: bool = False
    progress: float = 0.0
    phase: Phase = "wait"
    places: tuple[Place, ...] = ()
    whole_bytes: int = 0
    held_bytes: int = 0
    """Bytes of tensors in memory, of those with less room."""
    whole_step: Spread | None = None
    step: Spread | None = None
    difference: float | None = None
    machine: Machine | None = None


@dataclass(frozen=True)
class Serving:
    """A decode step of ``batch`` texts on each of ``replicas`` copies."""

    replicas: int
    batch: int
    step: Spread
    """Latency: what a reader waits for each token. Of several copies, the slowest."""

    @property
    def per_second(self) -> float:
        """Throughput: tokens of all texts in a second."""
        return 1000 * self.replicas * self.batch / self.step.median


@dataclass(frozen=True)
class ReplicaRun:
    """Throughput against latency."""

    done: bool = False
    progress: float = 0.0
    phase: Phase = "wait"
    servings: tuple[Serving, ...] = ()
    weights: int = 0
    """Bytes of one copy."""
    context: int = 0
    """Tokens of each text before the first step."""
    dtype: str = ""
    machine: Machine | None = None
