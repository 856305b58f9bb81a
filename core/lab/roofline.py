"""What a machine can do at most, measured: bytes that it reads and operations that it does in a
second (the roofline model: Williams et al. 2009).

The roof is the quickest repeat of each probe: a busy moment makes a machine slower, none makes it
faster than it is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from core.lab.machine import Machine, machine
from core.lab.timing import Spread, in_turns
from core.lab.turns import through

if TYPE_CHECKING:
    from torch import Tensor

Dtype = Literal["fp32", "bf16"]
Probing = Literal["read", "gemv", "gemm"]
DTYPES: Final[tuple[Dtype, ...]] = ("fp32", "bf16")
VALUE_BYTES: Final[dict[Dtype, int]] = {"fp32": 4, "bf16": 2}
REPEATS: Final = 5
DISTURBED: Final = 1.6
"""An ``unrest`` of the worst probe above which something else was running."""
ROWS, COLUMNS = 4096, 16384
"""Of the matrix that is read: 268 MB as fp32, more than the caches of nearly every machine."""
SIDE: Final = 2048
"""Of the square matrices that are multiplied: 17 billion operations."""
LARGER: Final = 4
"""An accelerator has so many times larger matrices, or its start would be measured."""


@dataclass(frozen=True)
class Probe:
    """One small program of known size, repeated."""

    kind: Probing
    """``read``: the sum of a large array; ``gemv``: a matrix times one vector, as in a decode
    step; ``gemm``: a matrix times a matrix, as in a prefill."""
    dtype: Dtype
    bytes: int
    """Read and written, each operand and each result once."""
    flops: int
    time: Spread

    @property
    def bandwidth(self) -> float:
        """GB/s of the quickest repeat."""
        return self.bytes / self.time.low / 1e6

    @property
    def rate(self) -> float:
        """GFLOP/s of the quickest repeat."""
        return self.flops / self.time.low / 1e6


@dataclass(frozen=True)
class Roof:
    """The limits of one machine."""

    machine: Machine
    probes: tuple[Probe, ...]

    @property
    def bandwidth(self) -> float:
        """GB/s: the fastest that anything was read."""
        return max(probe.bandwidth for probe in self.probes if probe.kind != "gemm")

    @property
    def read_bytes(self) -> int:
        """Of the array whose sum is taken."""
        return next(probe.bytes for probe in self.probes if probe.kind == "read")

    @property
    def repeats(self) -> int:
        return min(probe.time.repeats for probe in self.probes)

    @property
    def unrest(self) -> float:
        """The slowest repeat by the quickest, of the probe that was disturbed most; 1 is calm."""
        return max(probe.time.high / probe.time.low for probe in self.probes)

    @property
    def disturbed(self) -> bool:
        """Whether something else was running, so that the machine can do more than this."""
        return self.unrest > DISTURBED

    def rate(self, dtype: str) -> float:
        """GFLOP/s of a matrix product; types that were not measured count as bf16."""
        known = dtype if dtype in DTYPES else "bf16"
        return max(p.rate for p in self.probes if p.kind == "gemm" and p.dtype == known)

    def ridge(self, dtype: str) -> float:
        """FLOPs a byte at which reading and computing take equally long."""
        return self.rate(dtype) / self.bandwidth

    def attainable(self, intensity: float, dtype: str) -> float:
        """GFLOP/s at most, for a program with ``intensity`` FLOPs a byte."""
        return min(self.rate(dtype), intensity * self.bandwidth)

    def limit(self, flops: float, moved: float, dtype: str) -> float:
        """Milliseconds at least, for so many operations and bytes."""
        return max(flops / self.rate(dtype), moved / self.bandwidth) / 1e6


@dataclass(frozen=True)
class RoofTurn:
    """How far the measurement is; ``roof`` once it is done."""

    progress: float
    roof: Roof | None = None

    @property
    def done(self) -> bool:
        return self.roof is not None


def measure_roof(
    device: str = "cpu", *, rows: int = ROWS, columns: int = COLUMNS, side: int = SIDE,
    repeats: int = REPEATS,
) -> Generator[RoofTurn, None, None]:  # fmt: skip
    """Measure the machine under ``device``, a record after each call (well below a second)."""
    scale = 1 if device == "cpu" else LARGER
    sizes = _probes(device, rows * scale, columns, side * scale)
    calls = {f"{kind} {dtype}": call for (kind, dtype), (_, _, call) in sizes.items()}
    times = yield from through(in_turns(calls, repeats), RoofTurn)
    probes = tuple(
        Probe(kind, dtype, moved, flops, times[f"{kind} {dtype}"])
        for (kind, dtype), (moved, flops, _) in sizes.items()
    )
    yield RoofTurn(1.0, Roof(machine(device), probes))


Call = Callable[[], object]


def _probes(
    device: str, rows: int, columns: int, side: int
) -> dict[tuple[Probing, Dtype], tuple[int, int, Call]]:
    """(kind, type) → (bytes, FLOPs, the call)."""
    import torch  # noqa: PLC0415 - takes seconds; a page's first paint must not wait for it

    found: dict[tuple[Probing, Dtype], tuple[int, int, Call]] = {}
    wait = torch.cuda.synchronize if device.startswith("cuda") else _nothing
    types: dict[Dtype, Any] = {"fp32": torch.float32, "bf16": torch.bfloat16}
    for dtype, kind in types.items():
        size = VALUE_BYTES[dtype]
        table = torch.ones(rows, columns, dtype=kind, device=device)
        vector = torch.ones(1, columns, dtype=kind, device=device)
        square = torch.ones(side, side, dtype=kind, device=device)
        if dtype == "fp32":
            found["read", dtype] = table.nbytes, rows * columns, _timed(table.sum, wait)
        moved = size * (rows * columns + rows + columns)
        found["gemv", dtype] = moved, 2 * rows * columns, _timed(_linear(vector, table), wait)
        moved = 3 * size * side**2
        found["gemm", dtype] = moved, 2 * side**3, _timed(_linear(square, square), wait)
    return found


def _linear(x: Tensor, weight: Tensor) -> Call:
    from torch.nn.functional import linear  # noqa: PLC0415 - as above

    return lambda: linear(x, weight)


def _timed(call: Call, wait: Callable[[], None]) -> Call:
    """``call``, ended only when the device has finished it."""

    def run() -> None:
        call()
        wait()

    return run


def _nothing() -> None:
    """A processor has nothing to be waited for."""
