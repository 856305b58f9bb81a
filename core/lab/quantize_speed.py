"""What storing the weights in fewer bytes saves: bytes of the real tensors, and real times."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Final, TypeVar

import torch
from transformers import DynamicCache

from core.edits.pack import Packed
from core.edits.spec import Packing
from core.engine.local import LocalEngine
from core.engine.memory import fork
from core.faults import Fault
from core.lab.machine import machine
from core.lab.quality import judged, text_ids
from core.lab.quantize import Lend, rows_of_original
from core.lab.quantize_copy import packed
from core.lab.quantize_records import Speed, Stored, named
from core.lab.timing import Spread, in_turns
from core.lab.turns import between, shares, through
from core.models.loaded import tensor_bytes

REPEATS: Final = 7
CONTEXT: Final = 32
"""Tokens in the KV cache before the timed step."""
READ: Final = 128
"""Tokens of the timed prefill."""
TEXT: Final = "code"
R = TypeVar("R")
_NOT_YET: Final = Spread(0.0, 0.0, 0.0, 0)


def speed(
    engine: LocalEngine,
    storages: Sequence[Packing],
    *,
    repeats: int = REPEATS,
    context: int = CONTEXT,
    read: int = READ,
) -> Generator[Speed, None, None]:
    """The original and copies of it that are really stored in other ways, timed in turns.

    All of them are in memory meanwhile. Raises Fault where there is no room for one.
    """
    ids = text_ids(engine.vocabulary, TEXT, min(max(context + 1, read), engine.info.context))
    context, read = min(context, len(ids) - 1), min(read, len(ids))
    found = Speed(
        rows=(Stored("", engine.info.bytes_in_memory, _NOT_YET, _NOT_YET, True),),
        missing=(),
        context=context,
        read=read,
        threads=torch.get_num_threads(),
        machine=machine(engine.info.device),
        progress=0.0,
        done=False,
    )
    yield found
    lenders: dict[str, Lend] = {"": engine.borrowed}
    for place, storage in enumerate(storages):
        name = named(storage)
        try:
            twin = packed(engine, storage)
        except Fault as fault:
            if fault.code != "no_bitsandbytes":
                raise
            found = replace(found, missing=(*found.missing, name))
            continue
        lenders[name] = _always(twin)
        size = tensor_bytes([*twin.parameters(), *twin.buffers()])
        row = Stored(name, size, _NOT_YET, _NOT_YET, _kernel(twin))
        share = 0.3 * (place + 1) / len(storages)
        found = replace(found, rows=(*found.rows, row), progress=share)
        yield found
    found = yield from _judged(engine, lenders, found)
    for what, call, low, high in (
        ("step", lambda lend: step(lend, ids[: context + 1]), 0.6, 0.8),
        ("prefill", lambda lend: prefill(lend, ids[:read]), 0.8, 1.0),
    ):
        turns = in_turns({name: call(lend) for name, lend in lenders.items()}, repeats)
        spreads = yield from _told(turns, found, low, high)
        rows = tuple(_timed(row, what, spreads[row.edit]) for row in found.rows)
        found = replace(found, rows=rows, progress=high)
        yield found
    yield replace(found, done=True)


def _timed(row: Stored, what: str, spread: Spread) -> Stored:
    return replace(row, step=spread) if what == "step" else replace(row, prefill=spread)


def _judged(
    engine: LocalEngine, lenders: dict[str, Lend], found: Speed
) -> Generator[Speed, None, Speed]:
    """The same with the KL and the first choices of every copy."""
    count = len(found.rows)
    texts = yield from _told(rows_of_original(engine), found, 0.3, 0.3 + 0.3 / count)
    for place, row in enumerate(found.rows[1:], 1):
        with lenders[row.edit]() as model:
            low, high = (0.3 + 0.3 * part / count for part in (place, place + 1))
            quality = yield from _told(judged(model, texts), found, low, high)
        new = replace(row, kl=quality.kl, top1=quality.top1)
        rows = (*found.rows[:place], new, *found.rows[place + 1 :])
        found = replace(found, rows=rows, progress=high)
        yield found
    return found


def _told(
    turns: Generator[float, None, R], found: Speed, low: float, high: float
) -> Generator[Speed, None, R]:
    return (yield from through(between(turns, low, high), shares(found)))


def _always(model: Any) -> Lend:
    return lambda: nullcontext(model)


def _kernel(model: Any) -> bool:
    """Whether no matrix has to be unpacked before it is multiplied."""
    return all(module.kernel for module in model.modules() if isinstance(module, Packed))


def step(lend: Lend, ids: Sequence[int]) -> Callable[[], object]:
    """A call that reads the last token of ``ids`` on top of a cache of the others."""
    with lend() as model, torch.inference_mode():
        cache = DynamicCache(config=model.config)
        before = torch.tensor([list(ids[:-1])], device=model.device)
        last = torch.tensor([[ids[-1]]], device=model.device)
        model(before, cache=cache, use_cache=True, logits_to_keep=1)

    def call() -> object:
        with lend() as model, torch.inference_mode():
            logits = model(last, cache=fork(cache), use_cache=True, logits_to_keep=1).logits
            # An accelerator has answered when a number is read.
            return float(logits[0, 0, 0])

    return call


def prefill(lend: Lend, ids: Sequence[int]) -> Callable[[], object]:
    """A call that reads all of ``ids`` at once."""

    def call() -> object:
        with lend() as model, torch.inference_mode():
            tokens = torch.tensor([list(ids)], device=model.device)
            return float(model(tokens, use_cache=False, logits_to_keep=1).logits[0, 0, 0])

    return call
