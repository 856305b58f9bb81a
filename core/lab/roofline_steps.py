"""Real passes of the loaded model, timed: the whole, and each kind of operation inside it."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from core.anatomy.layer import roles_of
from core.lab.machine import Machine, machine
from core.lab.models import local
from core.lab.roofline import VALUE_BYTES
from core.lab.roofline_ops import KIND_OF, Case
from core.lab.timing import Spread
from core.model_info import ModelInfo, Part

if TYPE_CHECKING:
    from core.engine.local import LocalEngine
    from core.engine.protocol import Engine

BATCHES: Final = (1, 2, 4, 8, 16)
CONTEXT: Final = 128
"""Positions of the prompt, and those that a decode step sees."""
REPEATS: Final = 5
MOST_KV: Final = 1 << 30
"""Bytes of keys and values; larger batches are left out."""
ATTENTION: Final = "attention"
"""Scores, softmax, values, rotation and cache together: what is left of the attention module
without its projections."""
REST: Final = "rest"
"""What no product does: norms, activation, sums, embedding, and the program itself."""


@dataclass(frozen=True)
class StepTime:
    """One kind of pass, repeated."""

    case: Case
    time: Spread
    parts: tuple[tuple[str, float], ...]
    """(kind of operation, ATTENTION or REST; median milliseconds)."""

    @property
    def tokens_per_second(self) -> float:
        """Read or written, of all texts, at the median."""
        return self.case.rows / self.time.median * 1000


@dataclass(frozen=True)
class Steps:
    """What was timed so far."""

    model: str
    dtype: str
    machine: Machine
    times: tuple[StepTime, ...]
    progress: float = 1.0

    @property
    def done(self) -> bool:
        return self.progress >= 1

    def of(self, phase: str, batch: int = 1) -> StepTime | None:
        found = (t for t in self.times if t.case.phase == phase and t.case.batch == batch)
        return next(found, None)


def dtype_of(info: ModelInfo) -> str:
    """ "fp32", "bf16", or torch's own name of another type."""
    return {"float32": "fp32", "bfloat16": "bf16"}.get(info.dtype, info.dtype)


def value_bytes(info: ModelInfo) -> int:
    return {"fp32": VALUE_BYTES["fp32"], "float64": 8}.get(dtype_of(info), VALUE_BYTES["bf16"])


def measure_steps(
    engine: Engine, *, context: int = CONTEXT, batches: Sequence[int] = BATCHES,
    repeats: int = REPEATS,
) -> Generator[Steps, None, None]:  # fmt: skip
    """Time one prefill of ``context`` positions and a decode step at each batch size, in turns.

    The model is borrowed for one pass at a time. Yields after each pass. Raises Fault for an
    engine without weights.
    """
    lender, info = local(engine), engine.info
    context = max(2, min(context, info.context - 1))
    size = value_bytes(info) * 2 * info.layers * info.kv_heads * info.head_dim * context
    batches = [n for n in batches if n * size <= MOST_KV] or [1]
    cases = [Case("prefill", 1, context), *(Case("decode", n, context) for n in batches)]
    here = machine(info.device)
    begun = Steps(info.name, dtype_of(info), here, (), 0.0)
    ids = _some_ids(engine, context)
    caches = {1: _cache(lender, ids[:-1])}
    for count in batches:
        caches.setdefault(count, _repeated(caches[1], count))
    kinds, blocks = _modules(engine.anatomy())
    found: dict[Case, list[tuple[float, dict[str, float]]]] = {case: [] for case in cases}
    for turn in range(repeats + 1):
        for place, case in enumerate(cases):
            took = _pass(lender, case, ids, caches, kinds, blocks)
            if turn:
                found[case].append(took)
            share = (turn * len(cases) + place + 1) / ((repeats + 1) * len(cases))
            if share < 1:
                yield replace(begun, times=_times(found), progress=share)
    yield replace(begun, times=_times(found), progress=1.0)


def _times(found: dict[Case, list[tuple[float, dict[str, float]]]]) -> tuple[StepTime, ...]:
    out = []
    for case, runs in found.items():
        if runs:
            names = list(runs[0][1])
            parts = tuple((n, Spread.of([run[1][n] for run in runs]).median) for n in names)
            out.append(StepTime(case, Spread.of([run[0] for run in runs]), parts))
    return tuple(out)


def _some_ids(engine: Engine, count: int) -> list[int]:
    """``count`` tokens of a fixed text, from its beginning again where it ends."""
    from core.lab.quality import text_ids  # noqa: PLC0415 - imports torch

    ids = text_ids(engine.vocabulary, "prose", count)
    return [ids[i % len(ids)] for i in range(count)]


def _cache(lender: LocalEngine, ids: Sequence[int]) -> Any:
    import torch  # noqa: PLC0415 - as above
    from transformers import DynamicCache  # noqa: PLC0415

    with lender.borrowed() as model:
        cache = DynamicCache(config=model.config)
        tokens = torch.tensor([list(ids)], device=model.device)
        model(tokens, cache=cache, use_cache=True, logits_to_keep=1)
    return cache


def _repeated(cache: Any, count: int) -> Any:
    twin = copy.deepcopy(cache)
    twin.batch_repeat_interleave(count)
    return twin


def _modules(parts: Sequence[Part]) -> tuple[dict[str, str], set[str]]:
    """(module of a product → its kind, modules of attention)."""
    kinds: dict[str, str] = {}
    blocks: set[str] = set()
    layers = sorted({part.layer for part in parts if part.layer is not None})
    for layer in layers:
        for role, part in roles_of([p for p in parts if p.layer == layer]).items():
            kind = KIND_OF.get(role)
            if kind is not None:
                kinds[part.name] = kind
            if kind == "qkv":
                blocks.add(part.name.rpartition(".")[0])
    for part in parts:
        if part.layer is None and part.name.rpartition(".")[2] in ("lm_head", "embed_out"):
            kinds[part.name] = "head"
    return kinds, blocks


def _pass(  # noqa: PLR0917 - the pass, and where its parts are
    lender: LocalEngine,
    case: Case,
    ids: Sequence[int],
    caches: dict[int, Any],
    kinds: dict[str, str],
    blocks: set[str],
) -> tuple[float, dict[str, float]]:
    """(milliseconds of the whole pass, of each kind of operation in it)."""
    import torch  # noqa: PLC0415 - as above
    from transformers import DynamicCache  # noqa: PLC0415

    from core.engine.memory import fork  # noqa: PLC0415 - imports transformers

    with lender.borrowed() as model:
        wait = torch.cuda.synchronize if model.device.type == "cuda" else _nothing
        if case.phase == "prefill":
            tokens = torch.tensor([list(ids)] * case.batch, device=model.device)
            cache = DynamicCache(config=model.config)
        else:
            tokens = torch.tensor([[ids[-1]]] * case.batch, device=model.device)
            cache = fork(caches[case.batch])
        with _clocks(model, kinds, blocks, wait) as spent:
            wait()
            began = time.perf_counter()
            model(tokens, cache=cache, use_cache=True, logits_to_keep=1)
            wait()
            whole = (time.perf_counter() - began) * 1000
    if ATTENTION in spent:
        inside = spent.get("qkv", 0.0) + spent.get("output", 0.0)
        spent[ATTENTION] = max(0.0, spent[ATTENTION] - inside)
    spent[REST] = max(0.0, whole - sum(spent.values()))
    return whole, spent


@contextmanager
def _clocks(
    model: Any, kinds: dict[str, str], blocks: set[str], wait: Callable[[], None]
) -> Iterator[dict[str, float]]:
    """Milliseconds that the named modules take while the body runs; gone afterwards."""
    spent: dict[str, float] = {}
    began: dict[str, float] = {}
    handles = []

    def start(name: str) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            wait()
            began[name] = time.perf_counter()

        return hook

    def stop(name: str, kind: str) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            wait()
            spent[kind] = spent.get(kind, 0.0) + (time.perf_counter() - began[name]) * 1000

        return hook

    try:
        for name, module in model.named_modules():
            kind = ATTENTION if name in blocks else kinds.get(name)
            if kind is not None:
                handles.append(module.register_forward_pre_hook(start(name)))
                handles.append(module.register_forward_hook(stop(name, kind)))
        yield spent
    finally:
        for handle in handles:
            handle.remove()


def _nothing() -> None:
    """A processor has nothing to be waited for."""
