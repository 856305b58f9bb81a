"""The records: what travels from core to the pages, and nothing else does.

Letters, everywhere: L layers, H (query) heads, G KV heads, Q new positions (query rows),
S positions so far (keys), D width, d head width, V vocabulary.

Every record is a frozen dataclass of plain values and read-only NumPy arrays. There is no
model, tokenizer, tensor or widget inside, so a record can be cached, compared, exported and
shared between users. Causality makes the trace append-only: a step holds only its own
query rows, and the T × T attention map is a stitch of the rows of all steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from core.settings import RunSpec, StageName

Source = Literal["prompt", "generated"]
Rule = Literal["greedy", "sample", "forced"]
Stop = Literal["end_token", "output_limit", "context_limit", "no_token_left", "user"]
"""``no_token_left``: a pattern, banned texts or n-grams leave no token that could follow."""


def _arrays(record: Any) -> Iterator[np.ndarray]:
    for spec in dataclasses.fields(record):
        value = getattr(record, spec.name)
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, tuple):
            for item in value:
                if dataclasses.is_dataclass(item):
                    yield from _arrays(item)
        elif dataclasses.is_dataclass(value):
            yield from _arrays(value)


def nbytes(record: Any) -> int:
    """Bytes held by the arrays of a record, each array counted once."""
    return sum({id(array): array.nbytes for array in _arrays(record)}.values())


@dataclass(frozen=True)
class Token:
    """One piece of text, as the model reads it."""

    id: int
    position: int
    """Index in the whole sequence, from 0."""
    text: str
    """What this token alone decodes to; empty when it is only part of a character."""
    label: str
    """The same made visible: ␣ for space, ↵ for newline, ‹E5 9B› for part of a character."""
    piece: str
    """The raw vocabulary entry (``Ġcapital``, ``▁capital``, ``<0xE5>``)."""
    bytes: bytes
    """The bytes this token stands for (UTF-8)."""
    special: bool
    """A control token such as ``<|im_end|>``: an instruction, not text."""
    source: Source
    group: tuple[int, int]
    """Positions ``start, stop`` of the tokens that together make the same character(s)."""
    span: tuple[int, int]
    """Code points ``start, stop`` of the group within the decoded text."""


@dataclass(frozen=True)
class Capture:
    """What a forward pass keeps besides the embedding, the residual stream and the logits."""

    attention: bool = True
    """Attention weights, L·H·Q·S values."""
    scores: bool = False
    """Scaled, masked scores before the softmax, and the q, k, v they came from."""
    parts: bool = False
    """What attention and the feed-forward part each add to the residual stream."""
    neurons: bool = False
    """The feed-forward part's activations."""
    layer: int | None = None
    """Keep attention, scores and neurons of this layer only; ``None``: of all."""


Positions = Literal["kept", "none"]


@dataclass(frozen=True)
class Edit:
    """A change to the model that holds for one forward pass, and touches nobody else's."""

    heads_off: tuple[tuple[int, int], ...] = ()
    """(layer, head): the head's output is set to zero before the output projection."""
    layers_off: tuple[int, ...] = ()
    """Such a layer passes its input on unchanged."""
    positions: Positions = "kept"
    """"none": every token is read as if it stood at position 0."""


@dataclass(frozen=True, eq=False)
class Forward:
    """The slow half of a step: what the model computed for the new positions.

    ``start`` is the first new position, so Q = len(ids) - start and S = len(ids).
    """

    ids: tuple[int, ...]
    """All token ids read so far, the new ones included."""
    start: int
    embedding: Float[np.ndarray, "query width"]
    """What enters the first layer."""
    residual: Float[np.ndarray, "layer query width"]
    """The residual stream after every layer, *before* the final norm."""
    normed: Float[np.ndarray, " width"]
    """The last position after the final norm: what the LM head reads."""
    logits: Float[np.ndarray, " vocabulary"]
    """Scores of every token of the vocabulary to come next, after the last position."""
    attention: Float[np.ndarray, "layer head query key"] | None = None
    """Softmax weights; row = the position that attends, column = the one attended to."""
    scores: Float[np.ndarray, "layer head query key"] | None = None
    """q·k/√d with -inf where the mask forbids."""
    queries: Float[np.ndarray, "layer head query head_dim"] | None = None
    """After RoPE."""
    keys: Float[np.ndarray, "layer kv_head key head_dim"] | None = None
    """After RoPE, of all positions so far."""
    values: Float[np.ndarray, "layer kv_head key head_dim"] | None = None
    layers: tuple[int, ...] = ()
    """The layers that the neurons hold, in their order."""
    attending: tuple[int, ...] = ()
    """The layers that attention, scores, q, k and v hold, in their order; ``()``: all of them.
    (A layer may have no attention: it convolves, or keeps a running state.)"""
    attention_part: Float[np.ndarray, "layer query width"] | None = None
    """What attention adds to the stream, after any norm behind it."""
    feed_forward_part: Float[np.ndarray, "layer query width"] | None = None
    """What the feed-forward part adds; with the other part it makes up the layer's change."""
    neurons: Float[np.ndarray, "layer query neuron"] | None = None
    """What enters the down projection."""
    gate: Float[np.ndarray, "layer query neuron"] | None = None
    """The gate before its activation; ``None`` without gates (GPT-2, Phi)."""
    up: Float[np.ndarray, "layer query neuron"] | None = None
    """What the gate is multiplied with; ``None`` without gates."""
    edit: Edit = Edit()
    """The change under which all this was computed."""
    cached: int = 0
    """Positions whose keys and values were reused instead of computed."""
    ms: float = 0.0
    """Measured wall time of this pass in milliseconds."""

    def __post_init__(self) -> None:
        for array in _arrays(self):
            array.setflags(write=False)

    @property
    def nbytes(self) -> int:
        return nbytes(self)

    @property
    def change(self) -> Float[np.ndarray, "layer query"]:
        """How much each layer changed each new position's vector: ‖Δ‖ ÷ ‖h‖, h before the layer."""
        before = np.concatenate([self.embedding[None], self.residual[:-1]])
        size = np.linalg.norm(before, axis=-1)
        delta = np.linalg.norm(self.residual - before, axis=-1)
        share: np.ndarray = np.divide(delta, size, out=np.zeros_like(delta), where=size > 0)
        return share


@dataclass(frozen=True, eq=False)
class Stage:
    """One processor or filter, and the distribution it leaves."""

    name: StageName
    parameter: float | int | str | None
    """``None``: the stage is off and passes everything through."""
    logits: Float[np.ndarray, " vocabulary"] = field(repr=False)
    """Logits after the stage; -inf for removed tokens."""
    survivors: int
    """Tokens with a probability above 0 left after the stage."""
    mass: float
    """Probability, under the distribution that *entered* the stage, of the tokens it kept."""

    def __post_init__(self) -> None:
        self.logits.setflags(write=False)

    @property
    def keeps(self) -> Bool[np.ndarray, " vocabulary"]:
        return self.logits > -np.inf


@dataclass(frozen=True)
class Choice:
    """The fast half of a step: from logits to one token."""

    id: int
    rule: Rule
    probability_model: float
    """Of the chosen token, under the model's own softmax (temperature 1, no filter)."""
    probability_filtered: float
    """Of the chosen token, after all stages; 0 for a forced token that they removed, and for
    greedy's where typical-p dropped it."""
    rank: int
    """1 = the model's favourite; equal logits are ranked by id."""
    u: float | None
    """The random number in [0, 1) of this step; ``None`` where no dice were thrown."""
    entropy_model: float
    """Of the model's distribution, in nats."""
    entropy_filtered: float
    """Of the distribution after all stages, in nats."""
    stages: tuple[Stage, ...] = ()
    """In the order applied. Empty in a listed run: ``core.decode.choose`` recomputes them."""

    def slim(self) -> Choice:
        """The same choice without the stages' arrays."""
        return dataclasses.replace(self, stages=())


@dataclass(frozen=True, eq=False)
class StepTrace:
    """One turn of the loop: read everything so far, choose one token."""

    index: int
    forward: Forward
    choice: Choice


@dataclass(frozen=True, eq=False)
class Generation:
    """A run: the prompt, the steps made so far, and why it stopped (``None``: it has not)."""

    spec: RunSpec
    prompt: tuple[Token, ...]
    steps: tuple[StepTrace, ...]
    stop: Stop | None = None

    @property
    def ids(self) -> tuple[int, ...]:
        """Token ids of the prompt and of all chosen tokens."""
        return tuple(t.id for t in self.prompt) + tuple(s.choice.id for s in self.steps)

    @property
    def logprob(self) -> float:
        """Σ ln p of the chosen tokens under the model's own distribution, in nats."""
        with np.errstate(divide="ignore"):
            return float(sum(np.log(s.choice.probability_model) for s in self.steps))

    @property
    def perplexity(self) -> float | None:
        """exp(-logprob ÷ number of tokens); ``None`` before the first step."""
        return float(np.exp(-self.logprob / len(self.steps))) if self.steps else None

    @property
    def nbytes(self) -> int:
        return nbytes(self)
