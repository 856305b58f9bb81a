"""Whether zeros save time: one real matrix as a table, and as a list of what is not zero (CSR)."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, Final

import torch
from torch import Tensor

from core.edits.pieces import matrices_in
from core.edits.zero import kept
from core.engine.local import LocalEngine
from core.lab.machine import machine
from core.lab.prune_records import Crossing, Crossings
from core.lab.timing import in_turns
from core.models.loaded import tensor_bytes

ZEROS: Final = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
TOKENS: Final = (1, 32)
REPEATS: Final = 40
SEED: Final = 7
# torch calls its CSR a beta, on stderr, in the middle of a measurement.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")


def crossings(
    engine: LocalEngine,
    *,
    zeros: Sequence[float] = ZEROS,
    tokens: Sequence[int] = TOKENS,
    repeats: int = REPEATS,
) -> Generator[Crossings, None, None]:
    """The largest matrix of the middle layer, its smallest weights set to zero, times ``tokens``
    random columns: as a dense table and as CSR, in turns.

    Raises Fault for a model without such a matrix.
    """
    name, weight = matrix_of(engine)
    rows, columns = weight.shape
    found = Crossings(
        name, rows, columns, (), weight.numel() * weight.element_size(), (),
        machine(engine.info.device), 0.0, done=False,
    )  # fmt: skip
    yield found
    total = len(zeros) * len(tokens)
    for share in zeros:
        with torch.inference_mode():
            table = weight * kept(weight.abs(), share, by_row=False)
        sparse = listed(table)
        found = replace(found, sparse_bytes=(*found.sparse_bytes, (share, listed_bytes(sparse))))
        for count in tokens:
            dice = torch.Generator().manual_seed(SEED)
            x = torch.randn(columns, count, generator=dice).to(weight.device, weight.dtype)
            turns = in_turns({"dense": _timed(table, x), "sparse": _timed(sparse, x)}, repeats)
            spreads = yield from _inside(turns, found, len(found.points) / total, 1 / total)
            with torch.inference_mode():
                off = float((table @ x - sparse @ x).abs().max())
            point = Crossing(share, count, spreads["dense"], spreads["sparse"], off)
            found = replace(found, points=(*found.points, point))
            done = len(found.points) == total
            found = replace(found, progress=len(found.points) / total, done=done)
            yield found


def matrix_of(engine: LocalEngine) -> tuple[str, Tensor]:
    """(name, weights) of the largest matrix of the middle layer, float32."""
    with engine.borrowed() as model:
        found = list(matrices_in(model))
        middle = f".{engine.info.layers // 2}."
        inside = [(name, m.weight) for name, m in found if middle in name] or [
            (name, m.weight) for name, m in found
        ]
        name, weight = max(inside, key=lambda pair: pair[1].numel())
        return name, weight.float().clone()


def listed(table: Tensor) -> Tensor:
    """The same matrix as values, their columns and where each row begins; 32-bit indices."""
    found = table.to_sparse_csr()
    return torch.sparse_csr_tensor(
        found.crow_indices().int(),
        found.col_indices().int(),
        found.values(),
        table.shape,
        check_invariants=True,
    )


def listed_bytes(sparse: Tensor) -> int:
    """Of the three lists."""
    return tensor_bytes([sparse.crow_indices(), sparse.col_indices(), sparse.values()])


def _timed(matrix: Tensor, x: Tensor) -> Any:
    def call() -> None:
        with torch.inference_mode():
            matrix @ x
        if x.device.type == "cuda":
            torch.cuda.synchronize(x.device)

    return call


def _inside(
    turns: Generator[float, None, Any], found: Crossings, start: float, share: float
) -> Generator[Crossings, None, Any]:
    """A turn of the experiment is many calls: each takes less than a millisecond."""
    calls = 0
    while True:
        try:
            done = next(turns)
        except StopIteration as end:
            return end.value
        calls += 1
        if calls % 40 == 0:
            yield replace(found, progress=start + share * done)
