"""What the experiments on pruning leave behind: plain values, no model, no tensor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from core.edits.masks import METHODS, Method
from core.edits.spec import Zeros
from core.lab.machine import Machine
from core.lab.timing import Spread

SHARES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Zeros of a sweep, as shares of all weights in the layers."""
SWEPT: Final = METHODS


@dataclass(frozen=True)
class Judged:
    """What an edit costs on the fixed texts: ``core.lab.quality.Quality``."""

    kl: float
    top1: float
    perplexity: float
    positions: int


@dataclass(frozen=True)
class Point:
    """One share of zeros, chosen in one way."""

    method: Method
    share: float
    two_of_four: bool
    judged: Judged

    @property
    def zeros(self) -> Zeros:
        return Zeros(self.share, self.method, self.two_of_four)


@dataclass(frozen=True)
class Sweep:
    """Many shares of zeros, each on the original's own weights."""

    points: tuple[Point, ...]
    perplexity: float
    """Of the original."""
    machine: Machine
    progress: float
    done: bool

    def at(self, zeros: Zeros) -> Point | None:
        """The point of one setting, if it was measured."""
        return next((point for point in self.points if point.zeros == zeros), None)


@dataclass(frozen=True)
class Size:
    """Counted from the tensors."""

    nbytes: int
    parameters: int
    zeros: int
    """Weights of the layers' matrices that are 0."""
    weights: int
    """All weights of the layers' matrices."""


@dataclass(frozen=True)
class Times:
    """One more token with a KV cache: the original and the edited model, in turns."""

    original: Spread
    edited: Spread
    ratio: float
    """The median of the edited model ÷ that of the original."""
    context: int
    """Tokens before the timed one."""


@dataclass(frozen=True)
class Effect:
    """One edit in full."""

    edit: str
    """As ``core.edits.spec`` spells it."""
    judged: Judged | None
    perplexity: float | None
    """Of the original."""
    before: tuple[int, ...]
    """What the original writes after the prompt, by greedy decoding."""
    after: tuple[int, ...]
    original: Size
    edited: Size | None
    times: Times | None
    """``None`` while it comes, and where nothing is taken out."""
    machine: Machine
    progress: float
    done: bool


@dataclass(frozen=True)
class Removal:
    """One way to take parts out."""

    edit: str
    judged: Judged
    size: Size
    times: Times


@dataclass(frozen=True)
class Removals:
    """Several ways to take parts out, one after the other."""

    rows: tuple[Removal, ...]
    original: Size
    perplexity: float
    machine: Machine
    progress: float
    done: bool


@dataclass(frozen=True, eq=False)
class Cut:
    """The weights of one matrix, and which of them go."""

    name: str
    rows: int
    columns: int
    edges: Float[np.ndarray, " edge"]
    """Of the bins, over the weights' values; larger ones are counted in the outermost bins."""
    kept: Int[np.ndarray, " bin"]
    dropped: Int[np.ndarray, " bin"]
    limit: float | None
    """|w| below which all go; ``None`` where something else than the size decides."""
    smallest_kept: float
    """Of |w|."""
    largest_dropped: float
    """Of |w|; 0 where none goes."""
    done: bool = True


@dataclass(frozen=True)
class Importance:
    """How much worse the text is predicted without each head, and without each layer."""

    texts: tuple[str, ...]
    tokens: int
    surprise: float
    """Of the original: nats a token."""
    layers: tuple[float, ...]
    """Nats a token more without the layer; NaN where not measured yet."""
    heads: tuple[tuple[float, ...], ...]
    """The same for each head of each layer; NaN in layers without attention, too."""
    machine: Machine
    progress: float
    done: bool

    @property
    def ranked_heads(self) -> list[tuple[int, int]]:
        """All (layer, head), the least important one first; of equals the first."""
        pairs = [
            (value, layer, head)
            for layer, row in enumerate(self.heads)
            for head, value in enumerate(row)
            if math.isfinite(value)
        ]
        return [(layer, head) for _, layer, head in sorted(pairs)]

    @property
    def ranked_layers(self) -> list[int]:
        """All layers, the least important one first."""
        return sorted(range(len(self.layers)), key=self.layers.__getitem__)


@dataclass(frozen=True)
class Sum:
    """The least important heads, or layers, off together."""

    count: int
    single: float
    """Sum of what each of them does alone, nats a token."""
    joint: float
    """What they do together."""


@dataclass(frozen=True)
class Together:
    """Importances do not add up."""

    kind: str
    """"heads" or "layers"."""
    sums: tuple[Sum, ...]
    surprise: float
    machine: Machine
    progress: float
    done: bool


@dataclass(frozen=True)
class Ranking:
    """Single importances, and then many together."""

    importance: Importance
    heads: Together | None
    layers: Together | None
    progress: float
    done: bool


@dataclass(frozen=True)
class Crossing:
    """One share of zeros, for so many tokens at once."""

    zeros: float
    tokens: int
    dense: Spread
    sparse: Spread
    difference: float
    """Largest |dense − sparse| of the products."""


@dataclass(frozen=True)
class Crossings:
    """One real matrix, kept dense and kept as a list of what is not zero (CSR)."""

    name: str
    rows: int
    columns: int
    points: tuple[Crossing, ...]
    dense_bytes: int
    sparse_bytes: tuple[tuple[float, int], ...]
    """(share of zeros, bytes of the list)."""
    machine: Machine
    progress: float
    done: bool

    def crossover(self, tokens: int) -> float | None:
        """The least share of zeros from which on the list is always quicker; ``None``: never."""
        best = None
        points = [point for point in self.points if point.tokens == tokens]
        for point in sorted(points, key=lambda p: -p.zeros):
            if point.sparse.median >= point.dense.median:
                break
            best = point.zeros
        return best
