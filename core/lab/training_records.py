"""What a few training steps leave behind: bytes, times, losses, predictions, what moved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from jaxtyping import Float

from core.faults import Fault
from core.lab.machine import Machine
from core.lab.timing import Spread
from core.tokens import Vocabulary

Optimizer = Literal["adamw", "sgd"]
OPTIMIZERS: Final[tuple[Optimizer, ...]] = get_args(Optimizer)
Phase = Literal["waiting", "original", "copy", "look", "kept", "steps", "after", "frozen"]
"""Waiting for another training; reading with the original; copying it; asking the copy before it
is trained; looking at what a step keeps; training; reading with the copy; freezing it, dropping
it and checking the original."""
Kind = Literal["embedding", "attention", "feed_forward", "norm", "head", "other"]

SENTENCE: Final = "The capital of France is Lyon."
OTHER: Final = "The capital of Italy is"
STEPS: Final = 20
RATE: Final = 1e-5
MOST_STEPS: Final = 50
MOST_TOKENS: Final = 128
LOWEST_RATE: Final = 1e-6
HIGHEST_RATE: Final = 1e-2


@dataclass(frozen=True)
class Ask:
    """What is to be learned, and how. Raises Fault with one sentence for what is not allowed."""

    sentence: tuple[int, ...]
    """What every step reads; 2 … MOST_TOKENS tokens."""
    prompt: tuple[int, ...]
    """How the sentence begins: what is predicted after it, before and after the training."""
    other: tuple[int, ...]
    """A prompt that has nothing to do with it, for the same."""
    steps: int = STEPS
    rate: float = RATE
    optimizer: Optimizer = "adamw"

    def __post_init__(self) -> None:
        if not self.sentence or not self.prompt or not self.other:
            raise Fault("empty_prompt")
        if len(self.sentence) < 2:
            raise Fault("training_too_short")
        longest = max(len(self.sentence), len(self.prompt), len(self.other))
        if longest > MOST_TOKENS:
            raise Fault("training_too_long", tokens=longest, limit=MOST_TOKENS)
        if not 1 <= self.steps <= MOST_STEPS:
            raise Fault(
                "setting_out_of_range", name="steps", value=self.steps, low=1, high=MOST_STEPS
            )
        if not (math.isfinite(self.rate) and LOWEST_RATE <= self.rate <= HIGHEST_RATE):
            raise Fault(
                "setting_out_of_range",
                name="rate",
                value=self.rate,
                low=LOWEST_RATE,
                high=HIGHEST_RATE,
            )
        if self.optimizer not in OPTIMIZERS:
            raise Fault("unknown_optimizer", value=self.optimizer, allowed=", ".join(OPTIMIZERS))


def beginning(sentence: str) -> str:
    """Where a sentence stops being given: all but its last word; for one without spaces, half."""
    whole = sentence.rstrip()
    return whole.rpartition(" ")[0].rstrip() or whole[: (len(whole) + 1) // 2]


def ask_of(  # noqa: PLR0917 - in the order in which they are typed
    vocabulary: Vocabulary,
    sentence: str,
    prompt: str,
    other: str,
    steps: int = STEPS,
    rate: float = RATE,
    optimizer: Optimizer = "adamw",
) -> Ask:
    """The question in a model's own tokens; without a ``prompt`` it is the sentence's beginning.

    Raises Fault for what is not allowed.
    """
    texts = (sentence, prompt or beginning(sentence), other)
    whole, first, second = (vocabulary.read(text).ids for text in texts)
    return Ask(whole, first, second, steps, rate, optimizer)


@dataclass(frozen=True)
class Kept:
    """What one step holds in memory, in bytes of real tensors, each counted once."""

    weights: int
    trained: int
    """Weights that move, as a count; in inference none does."""
    cache: int
    """Keys and values: all that inference keeps of the text."""
    activations: int
    """Results of the forward pass that the backward pass needs."""
    places: tuple[tuple[str, int], ...]
    """The activations by where they were kept: "embedding", the layer's number from 0, "head"."""
    gradients: int | None = None
    """``None`` until the first backward pass."""
    states: int | None = None
    """What the optimizer remembers of each weight; ``None`` until its first step."""

    @property
    def inference(self) -> int:
        return self.weights + self.cache

    @property
    def training(self) -> int:
        """Weights, gradients, states and activations, as far as they are known."""
        return self.weights + self.activations + (self.gradients or 0) + (self.states or 0)


@dataclass(frozen=True, eq=False)
class Step:
    """One step: the loss before its weights moved, and its times in milliseconds."""

    loss: float
    """Mean of -ln p over the tokens of the sentence but the first, in nats."""
    token_p: Float[np.ndarray, " target"]
    """p of each of these tokens, given the ones before it."""
    forward_ms: float
    backward_ms: float
    update_ms: float
    inference_ms: float
    """One pass over the same text that keeps only the KV cache, in turns with the steps."""

    @property
    def ms(self) -> float:
        return self.forward_ms + self.backward_ms + self.update_ms


@dataclass(frozen=True)
class Look:
    """What a model makes of a prompt."""

    top: tuple[tuple[int, float], ...]
    """The likeliest next tokens with their probabilities."""
    written: tuple[int, ...]
    """What it goes on to write, greedily."""


@dataclass(frozen=True)
class Prediction:
    """One prompt before and after."""

    prompt: tuple[int, ...]
    before: Look
    after: Look | None = None
    before_p: tuple[float, ...] = ()
    """Before the training: p of the tokens of ``after.top``, in its order."""
    after_p: tuple[float, ...] = ()
    """After it: p of the tokens of ``before.top``."""
    kl: float | None = None
    """KL(before ‖ after) of the next token, in nats."""

    def rows(self, most: int) -> tuple[tuple[int, float, float | None], ...]:
        """(token, p before, p after) of the likeliest ``most`` of both times, likeliest first."""
        before = dict(self.before.top)
        if self.after is None:
            return tuple((token, p, None) for token, p in self.before.top[:most])
        before |= dict(zip((token for token, _ in self.after.top), self.before_p, strict=True))
        after = dict(zip((token for token, _ in self.before.top), self.after_p, strict=True))
        after |= dict(self.after.top)
        wanted = dict.fromkeys(
            token for top in (self.before.top, self.after.top) for token, _ in top[:most]
        )
        found = [(token, before[token], after[token]) for token in wanted]
        return tuple(sorted(found, key=lambda row: -max(row[1], row[2])))


@dataclass(frozen=True)
class Forgotten:
    """One fixed text, before and after."""

    name: str
    kl: float
    """KL(original ‖ trained) in nats, mean over the positions."""
    top1: float
    before: float
    """Perplexity of the original."""
    after: float
    positions: int


@dataclass(frozen=True)
class Moved:
    """How far some weights have moved."""

    kind: Kind
    layer: int | None
    relative: float
    """‖ΔW‖ ÷ ‖W‖."""
    count: int
    """Weights."""


@dataclass(frozen=True)
class Frozen:
    """How it ended."""

    trained: int
    """Weights of the copy that could still move: 0."""
    gone: bool
    """Whether nothing of the copy is left in memory."""
    sum_before: str
    """SHA-256 over all weights of the served model."""
    sum_after: str
    logits_equal: bool
    """Whether the served model's scores after the prompt are the same to the bit."""

    @property
    def untouched(self) -> bool:
        return self.sum_before == self.sum_after and self.logits_equal


@dataclass(frozen=True, eq=False)
class Training:
    """A training run as far as it has come."""

    model: str
    ask: Ask
    needed: int
    """Bytes that it was expected to take, said before it began."""
    machine: Machine
    phase: Phase = "waiting"
    kept: Kept | None = None
    steps: tuple[Step, ...] = ()
    last: Step | None = None
    """The loss after the last step; no weights moved, so it has no times."""
    prompt: Prediction | None = None
    other: Prediction | None = None
    forgotten: tuple[Forgotten, ...] = ()
    moved: tuple[Moved, ...] = ()
    tensors: tuple[tuple[str, float], ...] = ()
    """The single tensors that moved most, with ‖ΔW‖ ÷ ‖W‖."""
    frozen: Frozen | None = None
    done: bool = False
    progress: float = 0.0

    @property
    def losses(self) -> tuple[float, ...]:
        """Before the first step, after each step."""
        last = () if self.last is None else (self.last.loss,)
        return (*(step.loss for step in self.steps), *last)

    @property
    def token_p(self) -> Float[np.ndarray, "step target"]:
        """p of the sentence's tokens before the first step and after each."""
        found = [*self.steps, *([] if self.last is None else [self.last])]
        if not found:
            return np.zeros((0, len(self.ask.sentence) - 1))
        return np.stack([step.token_p for step in found])

    def _spread(self, name: str) -> Spread | None:
        # The first step also makes the optimizer's tensors.
        timed = self.steps[1:] or self.steps
        return Spread.of([getattr(step, name) for step in timed]) if timed else None

    @property
    def inference_ms(self) -> Spread | None:
        return self._spread("inference_ms")

    @property
    def forward_ms(self) -> Spread | None:
        return self._spread("forward_ms")

    @property
    def backward_ms(self) -> Spread | None:
        return self._spread("backward_ms")

    @property
    def update_ms(self) -> Spread | None:
        return self._spread("update_ms")

    @property
    def step_ms(self) -> Spread | None:
        return self._spread("ms")
