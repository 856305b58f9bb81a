"""A walk through one layer: each operation with its formula, shapes, parameters and FLOPs.

FLOPs are those of matrix products: m × k times k × n counts 2·m·n·k (a multiplication and an
addition each); norms, softmax, rotations and sums are not counted. A layer's attention is
counted over the whole square, masked half included, because that is what is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from core.anatomy import formulas
from core.anatomy.layer import Layer, roles_of, structure_of
from core.anatomy.records import (
    Operation,
    Shape,
    Sizes,
    Structure,
    Totals,
    Walk,
    other,
    product_of,
)
from core.model_info import ModelInfo, Part, Rope

SCALED: Final = "ScaledWordEmbedding"
__all__ = ["Operation", "Shape", "Sizes", "Structure", "Totals", "Walk", "totals", "walk"]


def walk(
    parts: Sequence[Part],
    info: ModelInfo,
    layer: int,
    sizes: Sizes,
    *,
    window: int | None = None,
    rope: Rope | None = None,
    scaling: float | None = None,
) -> Walk:
    """The walk through ``layer``; ``scaling`` is the factor on q·k, where it is known."""
    own = [part for part in parts if part.layer == layer]
    roles = roles_of(own)
    structure = structure_of(info, roles)
    build = Layer(info, roles, structure, sizes, window, rope, scaling)
    inside = tuple(build.operations())
    named = {name for operation in inside for name in operation.parts}
    rest = tuple(other(part, sizes.read, 1) for part in own if part.name not in named)
    outside = [part for part in parts if part.layer is None]
    after = tuple(_after(outside, info))
    done = {name for operation in after for name in operation.parts}
    before = tuple(_before([part for part in outside if part.name not in done], info, sizes))
    if rest and structure != "unknown":
        structure = "unknown"
    return Walk(layer, structure, before, inside + rest, after)


def totals(
    parts: Sequence[Part], info: ModelInfo, sizes: Sizes, windows: Sequence[int | None]
) -> Totals:
    """Parameters and FLOPs of the whole model; ``windows`` has one entry a layer."""
    walks = [walk(parts, info, n, sizes, window=w) for n, w in enumerate(windows)]
    before, after = walks[0].before, walks[0].after
    layers = [operation for each in walks for operation in each.inside]
    every = [*before, *layers, *after]
    return Totals(
        layers=len(walks),
        parameters=sum(o.parameters for o in every),
        parameters_before=sum(o.parameters for o in before),
        parameters_layers=sum(o.parameters for o in layers),
        parameters_after=sum(o.parameters for o in after),
        prefill=sum(o.prefill for o in every),
        step=sum(o.step for o in every),
    )


def _before(outside: Sequence[Part], info: ModelInfo, sizes: Sizes) -> Iterator[Operation]:
    """The look-up, and a learned position table."""
    stream: Shape = (("T", sizes.read), ("D", info.width))
    for part in outside:
        if not part.kind.endswith("Embedding"):
            yield other(part, sizes.read, 1)
        elif part.name.endswith(("wpe", "embed_positions")):
            formula = r"h\leftarrow h+P[p]"
            yield Operation("table", formula, stream, part.parameters, 0, 0, (part.name,))
        else:
            scaled = part.kind.endswith(SCALED)
            formula = r"h=\sqrt D\;E[\mathrm{id}]" if scaled else r"h=E[\mathrm{id}]"
            kind = "embedding_scaled" if scaled else "embedding"
            yield Operation(kind, formula, stream, part.parameters, 0, 0, (part.name,))


def _after(outside: Sequence[Part], info: ModelInfo) -> Iterator[Operation]:
    """The final norm and the LM head, both at the last position only."""
    last: Shape = (("1", 1), ("D", info.width))
    norms = [part for part in outside if "Norm" in part.kind]
    for part in norms:
        formula = formulas.norm(part, "h", r"\hat h")
        yield Operation("final_norm", formula, last, part.parameters, 0, 0, (part.name,))
    heads = [part for part in outside if part.name.split(".")[-1] in ("lm_head", "embed_out")]
    for part in heads:
        flops = product_of(part, 1)
        kind = "head" if any(count for _, _, count in part.weights) else "head_tied"
        wide: Shape = (("1", 1), ("V", info.vocabulary))
        formula = formulas.linear(part, "U", r"\hat h", "z")
        yield Operation(kind, formula, wide, part.parameters, flops, flops, (part.name,))
