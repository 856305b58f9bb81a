"""Rounding and packing a private copy of a model, again and again."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Final

import torch
from torch import Tensor

from core.edits.pack import Packed, pack_weights
from core.edits.rounding import matrices, rounded, rows_of
from core.edits.spec import Packing, Rounding
from core.engine.local import LocalEngine
from core.lab.copies import private
from core.models.loaded import tensor_bytes

TURN: Final = 24
"""Matrices that are worked on in one turn."""

Errors = dict[str, tuple[float, float]]
"""Name of a matrix → (‖W − Ŵ‖², ‖W‖²)."""


def packed(engine: LocalEngine, packing: Packing) -> Any:
    """A private copy that is really stored as ``packing`` says. Raises Fault like ``private``, and
    where it cannot be done here."""
    twin = private(engine)
    pack_weights(twin, packing)
    return twin


def weights_of(module: Any) -> Tensor:
    """The matrix that a layer multiplies by, [out, in], however it is kept."""
    return module.weight if isinstance(module, Packed) else rows_of(module)


def set_rounded(
    engine: LocalEngine, twin: Any, rounding: Rounding | None
) -> Generator[float, None, Errors]:
    """Give a private copy the original's weights, rounded; ``None``: as they are.

    Yields the share done, and returns how far each changed matrix is off.
    """
    with engine.borrowed() as model:
        pairs = list(_pairs(model, twin))
        head = model.get_output_embeddings()
    errors: Errors = {}
    for place, (name, original, own) in enumerate(pairs):
        with torch.inference_mode():
            weight = rows_of(original)
            touched = rounding is not None and (rounding.head or original is not head)
            found = rounded(weight, rounding.grid) if rounding and touched else weight
            weights_of(own).copy_(found)
            if touched:
                errors[name] = (_square(weight - found), _square(weight))
        if place % TURN == TURN - 1:
            yield (place + 1) / len(pairs)
    return errors


def errors_between(engine: LocalEngine, twin: Any, *, head: bool) -> Generator[float, None, Errors]:
    """How far each matrix of a copy is from the original's; yields the share done."""
    with engine.borrowed() as model:
        pairs = list(_pairs(model, twin, head=head))
    errors: Errors = {}
    for place, (name, original, own) in enumerate(pairs):
        with torch.inference_mode():
            weight = rows_of(original).float()
            errors[name] = (_square(weight - weights_of(own).float()), _square(weight))
        if place % TURN == TURN - 1:
            yield (place + 1) / len(pairs)
    return errors


def _pairs(model: Any, twin: Any, *, head: bool = True) -> Iterator[tuple[str, Any, Any]]:
    for name, module in matrices(model, head=head):
        yield name, module, twin.get_submodule(name)


def _square(table: Tensor) -> float:
    return float(table.float().square().sum(dtype=torch.float64))


def relative(errors: Errors, prefix: str = "") -> float:
    """‖W − Ŵ‖ ÷ ‖W‖ over the matrices whose name begins so; 0 where there are none."""
    chosen = [pair for name, pair in errors.items() if name.startswith(prefix)]
    whole = sum(size for _, size in chosen)
    return float((sum(off for off, _ in chosen) / whole) ** 0.5) if whole else 0.0


def would_take(model: Any, rounding: Rounding) -> int:
    """Bytes of a model whose matrices were kept as such codes: ``bits`` a weight, scales and
    offsets in 16 bits, all else in 16 bits."""
    found = list(matrices(model, head=rounding.head))
    tables = {id(module.weight): rows_of(module).shape for _, module in found}
    bits = sum(
        rows * columns * rounding.grid.bits + _scales(rows, columns, rounding)
        for rows, columns in tables.values()
    )
    rest = sum(p.numel() for p in model.parameters() if id(p) not in tables)
    whole: int = -(-bits // 8) + 2 * rest + tensor_bytes(model.buffers())
    return whole


def _scales(rows: int, columns: int, rounding: Rounding) -> int:
    """Bits of the scales and offsets of one matrix."""
    grid = rounding.grid
    each = 16 if grid.symmetric else 32
    if grid.span == "tensor":
        return each
    return each * rows * (-(-columns // grid.group) if grid.span == "group" else 1)
