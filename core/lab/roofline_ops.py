"""Where each operation of a pass stands under the roof: its FLOPs and bytes, counted from the
model's own modules.

FLOPs are those of matrix products, as in :mod:`core.anatomy`. Bytes are each operand and each
result once: what any program has to move that keeps nothing in the caches between two products.
Norms, rotations, the softmax and the copying of caches are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from core.anatomy import Operation, Sizes, walk
from core.engine.protocol import Engine
from core.lab.roofline import Roof
from core.model_info import ModelInfo, Part

Phase = Literal["prefill", "decode"]
Kind = Literal["qkv", "scores", "values", "output", "gate_up", "down", "head", "other"]
PHASES: Final[tuple[Phase, ...]] = ("prefill", "decode")
KINDS: Final[tuple[Kind, ...]] = (
    "qkv", "scores", "values", "output", "gate_up", "down", "head", "other",
)  # fmt: skip
KIND_OF: Final[dict[str, Kind]] = {
    "queries": "qkv", "keys": "qkv", "values": "qkv", "qkv": "qkv",
    "scores": "scores", "mix": "values", "output": "output",
    "gate": "gate_up", "up": "gate_up", "gate_up": "gate_up", "down": "down",
    "head": "head", "head_tied": "head",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """What one pass reads."""

    phase: Phase
    batch: int
    """Texts at once."""
    tokens: int
    """Prefill: positions of each text. Decode: positions that the new one attends to, itself
    included."""

    @property
    def rows(self) -> int:
        """Positions that go through the layers."""
        return self.batch * (self.tokens if self.phase == "prefill" else 1)


@dataclass(frozen=True)
class Count:
    """All operations of one kind in one pass, over all layers."""

    kind: Kind
    flops: int
    weights: int
    """Bytes that are read once, however many texts there are."""
    kv: int
    """Bytes of keys or values; each text has its own."""
    activations: int
    """Bytes of what goes in and comes out."""

    @property
    def bytes(self) -> int:
        return self.weights + self.kv + self.activations

    @property
    def intensity(self) -> float:
        """FLOPs a byte."""
        return self.flops / self.bytes

    def limit(self, roof: Roof, dtype: str) -> float:
        """Milliseconds at least."""
        return roof.limit(self.flops, self.bytes, dtype)


def counts_of(engine: Engine, case: Case, value_bytes: int) -> tuple[Count, ...]:
    """The operations of ``case`` on the loaded model, in the order of KINDS."""
    windows = [engine.window(layer) for layer in range(engine.info.layers)]
    return counts(engine.anatomy(), engine.info, windows, case, value_bytes)


def counts(
    parts: Sequence[Part],
    info: ModelInfo,
    windows: Sequence[int | None],
    case: Case,
    value_bytes: int,
) -> tuple[Count, ...]:
    """The same from the parts; ``windows`` has one entry a layer."""
    named = {part.name: part for part in parts}
    totals = dict.fromkeys(KINDS, (0, 0, 0, 0))
    for layer, window in enumerate(windows):
        for kind, flops, weights, kv, activations in _layer(
            parts, info, layer, window, case, named
        ):
            old = totals[kind]
            totals[kind] = (
                old[0] + flops, old[1] + weights, old[2] + kv, old[3] + activations
            )  # fmt: skip
    return tuple(
        Count(kind, flops, *(size * value_bytes for size in sizes))
        for kind, (flops, *sizes) in totals.items()
        if flops
    )


def _layer(  # noqa: PLR0917 - one value each of what a layer is
    parts: Sequence[Part],
    info: ModelInfo,
    layer: int,
    window: int | None,
    case: Case,
    named: dict[str, Part],
) -> Iterator[tuple[Kind, int, int, int, int]]:
    """(kind, FLOPs, weights, keys or values, activations) of each product; sizes in numbers."""
    made = walk(parts, info, layer, Sizes(case.tokens, case.tokens), window=window)
    attends = layer not in info.without_attention
    for operation in made.inside:
        kind = KIND_OF.get(operation.kind, "other")
        if kind not in ("scores", "values"):
            yield from _products(operation, kind, case.rows, named)
        elif attends:
            yield _attention(operation, kind, info, window, case)
    if layer == 0:
        for operation in (*made.before, *made.after):
            kind = KIND_OF.get(operation.kind, "other")
            yield from _products(operation, kind, case.batch, named)


def _products(
    operation: Operation, kind: Kind, rows: int, named: dict[str, Part]
) -> Iterator[tuple[Kind, int, int, int, int]]:
    if not operation.step:
        return
    for name in operation.parts:
        for weight, shape, _ in named[name].weights:
            if weight == "weight" and len(shape) == 2:
                size = math.prod(shape)
                yield kind, 2 * rows * size, size, 0, rows * sum(shape)


def _attention(
    operation: Operation, kind: Kind, info: ModelInfo, window: int | None, case: Case
) -> tuple[Kind, int, int, int, int]:
    prefill = case.phase == "prefill"
    seen = case.tokens if prefill or window is None else min(case.tokens, window)
    flops = case.batch * (operation.prefill if prefill else operation.step)
    kv = case.batch * seen * info.kv_heads * info.head_dim
    vectors = case.rows * info.heads * info.head_dim
    return kind, flops, 0, kv, vectors + case.rows * info.heads * seen


def complete(found: Sequence[Count], info: ModelInfo, value_bytes: int) -> bool:
    """Whether the matrices were found: not those of packed weights, nor of stacked experts.

    All of them but the embedding are multiplied, and that one is less than half of the model,
    or it is the LM head, too.
    """
    return 2.02 * sum(count.weights for count in found) >= value_bytes * info.parameters


def total(found: Sequence[Count]) -> tuple[int, int]:
    """(FLOPs, bytes) of a whole pass."""
    return sum(count.flops for count in found), sum(count.bytes for count in found)


def step_limit(found: Sequence[Count], roof: Roof, dtype: str) -> float:
    """Milliseconds at least, for one operation after the other."""
    return sum(count.limit(roof, dtype) for count in found)


def waiting_share(found: Sequence[Count], roof: Roof, dtype: str) -> float:
    """The share of ``step_limit`` in which the arithmetic units have nothing to do."""
    flops, _ = total(found)
    return 1 - flops / roof.rate(dtype) / 1e6 / step_limit(found, roof, dtype)
