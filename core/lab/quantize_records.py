"""What the experiments on precision leave behind: plain values, no model, no tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from core.edits.grid import Grid
from core.edits.spec import ModelEdit, Packing, Rounding, spell
from core.lab.machine import Machine
from core.lab.timing import Spread

BITS: Final = (8, 7, 6, 5, 4, 3, 2)
CURVES: Final = (
    Grid(span="tensor"),
    Grid(span="channel"),
    Grid(span="group", group=128),
    Grid(span="group", group=64),
    Grid(span="group", group=32),
    Grid(span="tensor", symmetric=False),
    Grid(span="channel", symmetric=False),
    Grid(span="group", group=128, symmetric=False),
    Grid(span="group", group=64, symmetric=False),
    Grid(span="group", group=32, symmetric=False),
)
"""Ways to share a scale; the bits are another matter."""
PACKINGS: Final = (
    Packing("bf16"),
    Packing("int8"),
    Packing("int8", head=True),
    Packing("int4", 32),
    Packing("int4", 64),
    Packing("int4", 128),
    Packing("int4", 64, head=True),
    Packing("nf4"),
    Packing("bnb8"),
)
"""Ways to really store weights in fewer bytes."""


def at_bits(curve: Grid, bits: int) -> Grid:
    """The same way to share a scale, with so many bits."""
    return Grid(bits, curve.span, curve.group, curve.symmetric)


def repeats(known: Grid, setting: Grid) -> bool:
    """Whether every value of weights that sit on ``known`` is also one of ``setting``, so that
    rounding changes nothing: the same spans, and steps that divide the known ones evenly."""
    same = (known.span, known.symmetric) == (setting.span, setting.symmetric)
    if not same or (known.span == "group" and known.group != setting.group):
        return False
    sign = 1 if known.symmetric else 0
    steps, of = 2 ** (known.bits - sign) - 1, 2 ** (setting.bits - sign) - 1
    return bool(of % steps == 0)


def line(curve: Grid, *, head: bool = False, bits: Sequence[int] = BITS) -> tuple[Rounding, ...]:
    """One curve of the sweep: the same grid with fewer and fewer bits."""
    return tuple(Rounding(at_bits(curve, n), head) for n in bits)


def named(setting: Rounding | Packing | None) -> str:
    """A setting as ``core.edits.spec`` spells it; "" for the weights as they are."""
    if setting is None:
        return ""
    if isinstance(setting, Rounding):
        return spell(ModelEdit(rounding=setting))
    return spell(ModelEdit(packing=setting))


@dataclass(frozen=True)
class Point:
    """What one setting costs, measured on the fixed texts; ``core.lab.quality.Quality``, flat."""

    edit: str
    kl: float
    top1: float
    perplexity: float
    positions: int
    error: float
    """‖W − Ŵ‖ ÷ ‖W‖ over all matrices that the setting changes."""
    nbytes: int
    """Of all tensors: those that are really held, or those that such codes would take."""


@dataclass(frozen=True)
class Sweep:
    """Many settings, one after the other, on one private copy."""

    points: tuple[Point, ...]
    perplexity: float
    """Of the original."""
    nbytes: int
    """Of the original's tensors."""
    machine: Machine
    progress: float
    done: bool

    def at(self, setting: Rounding | Packing | str) -> Point | None:
        """The point of one setting, if it was measured."""
        name = setting if isinstance(setting, str) else named(setting)
        return next((point for point in self.points if point.edit == name), None)


@dataclass(frozen=True)
class Candidate:
    """One next token: how likely before and after."""

    id: int
    before: float
    after: float


@dataclass(frozen=True)
class LayerError:
    """How far one layer is off."""

    weights: float
    """‖W − Ŵ‖ ÷ ‖W‖ over the layer's matrices."""
    stream: float
    """‖h − ĥ‖ ÷ ‖h‖ of the residual stream after it, mean over the positions of a fixed text."""


@dataclass(frozen=True)
class Effect:
    """One setting in full."""

    edit: str
    packed: bool
    """Whether the weights are really stored so, or rounded and computed as before."""
    point: Point | None
    perplexity: float | None
    """Of the original."""
    candidates: tuple[Candidate, ...]
    """The likeliest next tokens of either, the original's order."""
    before: tuple[int, ...]
    """What the original writes after the prompt, by greedy decoding."""
    after: tuple[int, ...]
    layers: tuple[LayerError, ...]
    nbytes: int
    """Of the original's tensors."""
    machine: Machine
    progress: float
    done: bool


@dataclass(frozen=True)
class Stored:
    """The model really stored in one way."""

    edit: str
    """"" is the original as it was loaded."""
    nbytes: int
    step: Spread
    """One token more, with a KV cache; ms."""
    prefill: Spread
    """A text at once; ms."""
    kernel: bool
    """Whether the product is made from the codes; otherwise the weights are unpacked each time."""
    kl: float | None = None
    """From the original, on the fixed texts; ``None`` before it is measured."""
    top1: float | None = None


@dataclass(frozen=True)
class Speed:
    """Ways to store the weights, timed in turns."""

    rows: tuple[Stored, ...]
    missing: tuple[str, ...]
    """Edits that cannot be done here: the library is not installed."""
    context: int
    """Tokens before the timed step."""
    read: int
    """Tokens of the timed prefill."""
    threads: int
    machine: Machine
    progress: float
    done: bool


@dataclass(frozen=True)
class OnGrid:
    """Tensors whose weights already sit on one grid."""

    grid: Grid
    tensors: int
    weights: int


@dataclass(frozen=True)
class Origin:
    """Whether the loaded weights were rounded before they came."""

    grids: tuple[OnGrid, ...]
    """That of most tensors first."""
    tensors: int
    weights: int
    progress: float
    done: bool

    @property
    def main(self) -> OnGrid | None:
        """The grid on which at least half of all tensors sit: a large table of embeddings alone
        says little about the layers."""
        first = self.grids[0] if self.grids else None
        return first if first and 2 * first.tensors >= self.tensors else None


@dataclass(frozen=True, eq=False)
class Hand:
    """The first weights of one row, rounded by hand; ``offset + scale · code``."""

    row: int
    start: int
    """First column of the span that is shown."""
    weights: Float[np.ndarray, " column"]
    codes: Int[np.ndarray, " column"]
    values: Float[np.ndarray, " column"]
    scale: float
    offset: float
    low: float
    """Smallest weight of the span that shares this scale."""
    high: float
    span: int
    """How many weights share it."""

    @property
    def error(self) -> Float[np.ndarray, " column"]:
        off: np.ndarray = np.abs(self.weights - self.values)
        return off


@dataclass(frozen=True)
class Outlier:
    """One of the largest weights of a matrix."""

    row: int
    column: int
    value: float
    deviations: float
    """|value| ÷ the standard deviation of the matrix."""


@dataclass(frozen=True)
class SpanScale:
    """What one way to share a scale makes of a matrix."""

    grid: Grid
    smallest: float
    median: float
    largest: float
    """Of the scales."""
    error: float
    """‖W − Ŵ‖ ÷ ‖W‖."""
    zeroed: float
    """Share of the weights that become 0 and were not."""


@dataclass(frozen=True, eq=False)
class Look:
    """One matrix, looked at closely."""

    name: str
    shape: tuple[int, int]
    grid: Grid
    edges: Float[np.ndarray, " bin_edge"]
    counts: Int[np.ndarray, " bin"]
    rounded: Int[np.ndarray, " bin"]
    """The same bins after rounding."""
    points: Float[np.ndarray, " point"]
    """The grid of the span in view: every value that a weight of it can become."""
    hand: Hand
    outliers: tuple[Outlier, ...]
    scales: tuple[SpanScale, ...]
    without: float
    """The tensor's scale if its largest weight were not there."""
