"""What the KV cache experiments leave behind: plain values, no model, no tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float

from core.faults import Fault
from core.lab.machine import Machine
from core.lab.timing import Spread

KeySpan = Literal["token", "channel"]
"""The 64 neighbouring numbers of the keys that share a scale: of one token, or of one channel."""
KEY_SPANS: Final[tuple[KeySpan, ...]] = ("token", "channel")
CACHE_BITS: Final = (8, 4, 2)
MOST_POSITIONS: Final = 2**20


@dataclass(frozen=True)
class Work:
    """What one forward pass computes and moves. All of it is counted, not measured."""

    positions: int
    """Positions that go through the model."""
    flops: int
    """Of matrix products, a multiplication and an addition each."""
    weight_bytes: int
    """Weights that are read."""
    kv_read: int
    """Keys and values that attention reads, in bytes: the new ones too."""
    kv_written: int

    @property
    def bytes(self) -> int:
        return self.weight_bytes + self.kv_read + self.kv_written


@dataclass(frozen=True)
class Score:
    """One token's logit, computed in both ways."""

    id: int
    cached: float
    whole: float


@dataclass(frozen=True)
class KvStep:
    """One token, written with the cache and without it."""

    index: int
    length: int
    """Tokens of the text that this step reads."""
    chosen: int
    """The likeliest token with the cache; the text goes on with it."""
    other: int
    """The likeliest token without it."""
    cached: Work
    whole: Work
    """Without the cache: every position again."""
    cached_ms: Spread
    whole_ms: Spread
    difference: float
    """Largest difference between the two ways' logits, over the whole vocabulary."""
    scores: tuple[Score, ...]
    """Of the likeliest tokens."""
    cache_bytes: int
    """Of the cache's tensors after the step."""


@dataclass(frozen=True)
class KvRun:
    """A generation done twice."""

    prompt: tuple[int, ...]
    wanted: int
    """Steps asked for; an end token or a full context ends the run earlier."""
    steps: tuple[KvStep, ...]
    machine: Machine
    done: bool
    progress: float

    @property
    def ids(self) -> tuple[int, ...]:
        return (*self.prompt, *(step.chosen for step in self.steps))

    @property
    def difference(self) -> float:
        """The largest of all steps."""
        return max((step.difference for step in self.steps), default=0.0)

    @property
    def equal(self) -> bool:
        """Whether both ways write the same text."""
        return all(step.chosen == step.other for step in self.steps)

    @property
    def decode(self) -> tuple[KvStep, ...]:
        """The steps behind the first one, which reads the prompt."""
        return self.steps[1:]


@dataclass(frozen=True)
class ContextPoint:
    """One step at the end of a text of ``length`` tokens, in both ways."""

    length: int
    cached_ms: Spread
    whole_ms: Spread
    cached: Work
    whole: Work
    difference: float
    cache_bytes: int

    @property
    def ratio(self) -> float:
        return self.whole_ms.median / self.cached_ms.median


@dataclass(frozen=True)
class Contexts:
    model: str
    points: tuple[ContextPoint, ...]
    machine: Machine
    done: bool
    progress: float


@dataclass(frozen=True)
class LayerHeld:
    """What the cache holds of one layer, read off its tensors."""

    layer: int
    first: int
    """The oldest position that is still there."""
    positions: int
    kv_heads: int
    head_dim: int
    nbytes: int
    window: int | None
    """A sliding layer keeps one position less than its window: the next one completes it."""

    @property
    def row_bytes(self) -> int:
        """Keys and values of one position."""
        return self.nbytes // max(1, self.positions)

    @property
    def full(self) -> bool:
        """Whether one more token pushes an old one out."""
        return self.window is not None and self.positions >= self.window - 1


@dataclass(frozen=True)
class Held:
    """The cache of a text of ``length`` tokens."""

    length: int
    layers: tuple[LayerHeld, ...]
    value_bytes: int
    """Of one number: 4 in float32, 2 in bfloat16."""

    @property
    def nbytes(self) -> int:
        return sum(layer.nbytes for layer in self.layers)

    @property
    def token_bytes(self) -> int:
        """Keys and values of one token, in all layers."""
        return sum(layer.row_bytes for layer in self.layers)

    @property
    def next_bytes(self) -> int:
        """What one more token adds: nothing in sliding layers that are full."""
        return sum(layer.row_bytes for layer in self.layers if not layer.full)


@dataclass(frozen=True, eq=False)
class Rows:
    """Keys and values of one layer and KV head, the very numbers in the cache."""

    layer: int
    head: int
    first: int
    """Position of the first row: older ones have been dropped."""
    keys: Float[np.ndarray, "position head_dim"]
    """After RoPE, as attention compares them."""
    values: Float[np.ndarray, "position head_dim"]


@dataclass(frozen=True)
class Trick:
    """A way to make the cache smaller. Raises Fault with one sentence for illegal values."""

    bits: int | None = None
    """Of each number of keys and values; ``None``: as the model computes them."""
    keys: KeySpan = "channel"
    """Which keys share a scale. Values always share it within a token."""
    window: int | None = None
    """Each position sees itself and the ``window - 1`` before it; ``None``: all."""
    sinks: int = 0
    """First tokens that stay in spite of the window."""

    def __post_init__(self) -> None:
        if self.bits is not None and (isinstance(self.bits, bool) or self.bits not in CACHE_BITS):
            raise Fault("kv_bits", value=self.bits, allowed=", ".join(map(str, CACHE_BITS)))
        if self.keys not in KEY_SPANS:
            raise Fault("unknown_span", value=self.keys, allowed=", ".join(KEY_SPANS))
        for name, low in (("window", 1), ("sinks", 0)):
            value = getattr(self, name)
            if name == "window" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise Fault("setting_not_whole", name=name, value=value)
            if not low <= value <= MOST_POSITIONS:
                raise Fault(
                    "setting_out_of_range", name=name, value=value, low=low, high=MOST_POSITIONS
                )


@dataclass(frozen=True)
class TrickResult:
    """What a trick saves and costs. The rest of a text was read after a cached beginning."""

    trick: Trick
    nbytes: int
    """Of the cached beginning, packed as the trick packs it, scales included."""
    full_bytes: int
    """Of the same, untouched."""
    kl: float
    """KL(full cache ‖ trick) in nats, mean over the positions of the rest."""
    top1: float
    """Share of these positions at which both have the same likeliest token."""
    key_error: float
    """Size of the keys' rounding error ÷ size of the keys, over all layers; 0 without rounding."""
    value_error: float

    @property
    def saved(self) -> float:
        """Share of the bytes that is saved."""
        return 1 - self.nbytes / self.full_bytes


@dataclass(frozen=True)
class Tricks:
    model: str
    prefix: int
    """Tokens of the cached beginning."""
    positions: int
    """Tokens of the rest, on whose predictions kl and top1 are taken."""
    results: tuple[TrickResult, ...]
    done: bool
    progress: float
    machine: Machine | None = None
    """``None`` in what was stored: the file says it once for all of a model."""


@dataclass(frozen=True)
class Reuse:
    """A second prompt that begins like the first one."""

    first: int
    """Tokens of the first prompt."""
    second: int
    common: int
    """Positions taken from the first prompt's cache; the last one is always computed."""
    whole_ms: Spread
    """Reading the second prompt from its beginning."""
    reused_ms: Spread
    """Reading only what is new."""
    whole: Work
    reused: Work
    difference: float
    shared_bytes: int
    """Of the cache that both prompts use, held once."""
    machine: Machine
    done: bool
    progress: float
