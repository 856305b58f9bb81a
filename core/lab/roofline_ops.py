"""Where each operation of a pass stands under the roof: its FLOPs and bytes, counted from the
model's own modules.

FLOPs are those of matrix products, as in :mod:`core.anatomy`. Bytes are each operand and each
result once: what any program has to move that keeps nothing in the caches between two products.
Norms, rotations, the softmax and the copying of caches are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from core.anatomy import Operation, Sizes, walk
from core.engine.protocol import Engine
from core.lab.models import local
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


PACKED: Final = frozenset({"Int8Linear", "Int4Linear"})
"""Modules whose weights lie in buffers, as whole numbers with their scales."""
OPAQUE: Final = frozenset({"Linear4bit", "Linear8bitLt"})
"""Modules whose stored shape is not that of their matrix."""


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
    parts = engine.anatomy()
    stored = _stored(engine, parts)
    return counts(parts, engine.info, windows, case, value_bytes=value_bytes, stored=stored)


def _stored(engine: Engine, parts: Sequence[Part]) -> dict[str, int]:
    """Bytes of each packed matrix with its scales, as it lies in memory."""
    names = {part.name for part in parts if part.kind in PACKED}
    if not names:
        return {}
    with local(engine).borrowed() as model:
        modules = [(name, module) for name, module in model.named_modules() if name in names]
        return {
            name: sum(tensor.nbytes for tensor in module.buffers(recurse=False))
            for name, module in modules
        }


def counts(
    parts: Sequence[Part],
    info: ModelInfo,
    windows: Sequence[int | None],
    case: Case,
    *,
    value_bytes: int,
    stored: Mapping[str, int] | None = None,
) -> tuple[Count, ...]:
    """The same from the parts; ``windows`` has one entry a layer, ``stored`` the bytes of
    matrices whose weights do not take ``value_bytes`` each."""
    matrices = _matrices(parts, value_bytes, stored or {})
    totals = dict.fromkeys(KINDS, (0, 0, 0, 0))
    for layer, window in enumerate(windows):
        made = walk(parts, info, layer, Sizes(case.tokens, case.tokens), window=window)
        attends = layer not in info.without_attention
        outside = (*made.before, *made.after) if layer == 0 else ()
        for operation in (*made.inside, *outside):
            kind = KIND_OF.get(operation.kind, "other")
            if kind not in ("scores", "values"):
                rows = case.batch if operation in outside else case.rows
                sizes = _product(operation, rows, matrices, value_bytes)
            elif attends:
                sizes = _attention(operation, info, window, case, value_bytes)
            else:
                continue
            old = totals[kind]
            totals[kind] = (
                old[0] + sizes[0], old[1] + sizes[1], old[2] + sizes[2], old[3] + sizes[3]
            )  # fmt: skip
    return tuple(Count(kind, *sizes) for kind, sizes in totals.items() if sizes[0])


Amounts = tuple[int, int, int, int]
"""FLOPs; bytes of weights, of keys or values, of what goes in and out."""


def _matrices(
    parts: Sequence[Part], value_bytes: int, stored: Mapping[str, int]
) -> dict[str, tuple[int, int, int]]:
    """Name → (numbers, sum of both sides, bytes) of every matrix that can be counted."""
    found = {}
    for part in parts:
        shapes = [s for name, s, _ in part.weights if name == "weight" and len(s) == 2]
        if shapes and part.kind not in OPAQUE:
            size = math.prod(shapes[0])
            moved = stored.get(part.name, size * value_bytes)
            found[part.name] = size, sum(shapes[0]), moved
    return found


def _product(
    operation: Operation,
    rows: int,
    matrices: Mapping[str, tuple[int, int, int]],
    value_bytes: int,
) -> Amounts:
    """``rows`` vectors times the operation's matrices; nothing for a look-up or a norm."""
    if not operation.step:
        return 0, 0, 0, 0
    found = [matrices[name] for name in operation.parts if name in matrices]
    flops = sum(2 * rows * size for size, _, _ in found)
    sides = sum(rows * both for _, both, _ in found)
    return flops, sum(moved for _, _, moved in found), 0, sides * value_bytes


def _attention(
    operation: Operation, info: ModelInfo, window: int | None, case: Case, value_bytes: int
) -> Amounts:
    prefill = case.phase == "prefill"
    seen = case.tokens if prefill or window is None else min(case.tokens, window)
    flops = case.batch * (operation.prefill if prefill else operation.step)
    kv = case.batch * seen * info.kv_heads * info.head_dim
    inside = case.rows * info.heads * (info.head_dim + seen)
    return flops, 0, kv * value_bytes, inside * value_bytes


def complete(found: Sequence[Count], info: ModelInfo, case: Case) -> bool:
    """Whether the matrices were found, which those of packed weights may not be, nor those of
    stacked experts. ``case`` is the decode step that was counted.

    All of them but the embedding are multiplied, and that one is less than half of the model,
    or it is the LM head, too.
    """
    multiplied = sum(count.flops for count in found if count.kind not in ("scores", "values"))
    return 2.02 * multiplied >= 2 * case.batch * info.parameters


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
