"""What the walk through a model is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from core.model_info import Part

Structure = Literal["sequential", "sandwich", "behind", "parallel", "unknown"]
"""Where the norms of a layer stand: before each half, on both sides, behind; or one for both."""
Shape = tuple[tuple[str, int], ...]
"""(letter, size) of each axis: (("T", 5), ("D", 576))."""


@dataclass(frozen=True)
class Sizes:
    """This run's numbers."""

    read: int
    """T: positions read at once, the prompt's."""
    seen: int
    """S: positions that one more step attends to, itself included."""


@dataclass(frozen=True)
class Operation:
    """One line of the walk."""

    kind: str
    """Stable name: ``queries``, ``rope``, ``residual`` …; ``other`` for an unknown part."""
    formula: str
    """LaTeX; empty for an unknown part."""
    shape: Shape
    """What comes out when the prompt is read."""
    parameters: int
    prefill: int
    """FLOPs for T positions at once."""
    step: int
    """FLOPs for one more position that attends to S."""
    parts: tuple[str, ...] = ()
    """Paths of the modules that do it."""


@dataclass(frozen=True)
class Walk:
    """The way from a token's id to the scores, with one layer in full."""

    layer: int
    structure: Structure
    before: tuple[Operation, ...]
    inside: tuple[Operation, ...]
    after: tuple[Operation, ...]


@dataclass(frozen=True)
class Totals:
    """Of the whole model."""

    layers: int
    parameters: int
    parameters_before: int
    parameters_layers: int
    parameters_after: int
    prefill: int
    step: int


def product_of(part: Part, rows: int) -> int:
    """FLOPs of ``rows`` vectors times the part's matrix; 0 for what has none."""
    shapes = [shape for name, shape, _ in part.weights if name == "weight" and len(shape) == 2]
    return sum(2 * rows * math.prod(shape) for shape in shapes)


def other(part: Part, read: int, step: int) -> Operation:
    is_matrix = part.kind.endswith(("Linear", "Conv1D"))
    shape = tuple(("", size) for size in part.weights[0][1]) if part.weights else ()
    return Operation(
        "other",
        "",
        shape,
        part.parameters,
        product_of(part, read) if is_matrix else 0,
        product_of(part, step) if is_matrix else 0,
        (part.name,),
    )
