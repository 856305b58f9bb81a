"""A private copy of a model, pruned: one turn at a time, judged, timed, and made to write."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers import DynamicCache

from core.edits.calibrate import calibration_ids, input_norms
from core.edits.pack import pack_weights
from core.edits.pieces import matrices_in
from core.edits.remove import remove_parts
from core.edits.rounding import round_weights
from core.edits.spec import ModelEdit
from core.edits.zero import zeroing
from core.engine.local import LocalEngine
from core.engine.memory import fork
from core.faults import Fault
from core.lab.copies import private
from core.lab.kv_passes import new_cache, read
from core.lab.prune_records import Judged, Size, Times
from core.lab.quality import Quality, Row, judged
from core.lab.timing import Spread, milliseconds
from core.models.loaded import describe

COPIES: Final = threading.BoundedSemaphore(2)
"""Private copies of this process at one time."""
TEXT: Final = 24
"""Tokens that a text beside the original's has."""
_NORMS: Final[WeakKeyDictionary[LocalEngine, dict[str, Tensor]]] = WeakKeyDictionary()


def place() -> Iterator[None]:
    """Yields until a copy may be made; whoever got here gives it back to ``COPIES``."""
    while not COPIES.acquire(blocking=False):
        time.sleep(0.2)
        yield


def norms_of(engine: LocalEngine) -> dict[str, Tensor]:
    """‖x‖ of each input of each matrix on the calibration text, read once for everybody."""
    found = _NORMS.get(engine)
    if found is None:
        ids = calibration_ids(engine.vocabulary.tokenizer, engine.info.context)
        with engine.borrowed() as model:
            found = input_norms(model, matrices_in(model), ids)
        _NORMS[engine] = found
    return found


def pruned(engine: LocalEngine, edit: ModelEdit) -> Generator[float, None, Any]:
    """A private copy, changed as ``edit`` says; yields the share done.

    Raises Fault like :func:`core.edits.apply.apply`, of which it is the same, and where there
    is no room.
    """
    twin = private(engine)
    vocabulary, context = engine.vocabulary, engine.info.context

    def calibration() -> Sequence[int]:
        return calibration_ids(vocabulary.tokenizer, context)

    yield 0.1
    remove_parts(twin, edit, calibration)
    yield 0.3
    if edit.zeros:
        changed = edit.removes or edit.heads
        norms = norms_of(engine) if edit.zeros.method == "wanda" and not changed else None
        for share in zeroing(twin, edit.zeros, calibration, norms=norms):
            yield 0.3 + 0.6 * share
    if edit.rounding:
        round_weights(twin, edit.rounding)
    if edit.packing:
        pack_weights(twin, edit.packing)
    return twin


def size_of(model: Any) -> Size:
    """Counted from the tensors themselves; zeros only where weights are numbers."""
    try:
        matrices = [matrix.weight for _, matrix in matrices_in(model)]
    except Fault:  # packed: the weights are codes
        matrices = []
    info = describe(model, "", chat=False)
    return Size(
        nbytes=info.bytes_in_memory,
        parameters=info.parameters,
        zeros=sum(int((weight == 0).sum()) for weight in matrices),
        weights=sum(weight.numel() for weight in matrices),
    )


def plain(found: Quality) -> Judged:
    return Judged(found.kl, found.top1, found.perplexity, found.positions)


def judging(twin: Any, rows: Sequence[Row]) -> Generator[float, None, Judged]:
    """The quality of a copy; yields the share done."""
    found = yield from judged(twin, rows)
    return plain(found)


# ---------------------------------------------------------------- text and time


def writing(
    model: Any, ids: Sequence[int], ends: Sequence[int], most: int = TEXT
) -> Generator[tuple[int, ...], None, tuple[int, ...]]:
    """What a model writes after ``ids`` by greedy decoding; yields the tokens so far."""
    made: list[int] = []
    new = list(ids)
    cache = new_cache(model)
    while len(made) < most:
        with torch.inference_mode():
            token = int(read(model, new, cache)[-1].argmax())
        made.append(token)
        if token in ends:
            break
        new = [token]
        yield tuple(made)
    return tuple(made)


def original_writing(
    engine: LocalEngine, ids: Sequence[int], most: int = TEXT
) -> Generator[tuple[int, ...], None, tuple[int, ...]]:
    """The same by the original, borrowed for a token at a time."""
    with engine.borrowed() as model:
        turns = writing(model, ids, engine.info.end_ids, most)
    while True:
        try:
            with engine.borrowed():
                now = next(turns)
        except StopIteration as end:
            found: tuple[int, ...] = end.value
            return found
        yield now


def timing(
    engine: LocalEngine, twin: Any, ids: Sequence[int], repeats: int
) -> Generator[float, None, Times]:
    """One token after ``ids`` by the original and by the copy, in turns, each with its own cache.

    Yields the share done. Waiting for the original is not counted.
    """
    *context, last = ids if len(ids) > 1 else (*ids, *ids)
    with engine.borrowed() as model:
        start = new_cache(model)
        read(model, context, start)
    with torch.inference_mode():
        twin_start = new_cache(twin)
        read(twin, context, twin_start)
    first, second = list[float](), list[float]()
    for turn in range(repeats + 1):
        with engine.borrowed() as model:
            one = milliseconds(partial(_step, model, last, start))
            other = milliseconds(partial(_step, twin, last, twin_start))
        if turn:  # the first one warms up
            first.append(one)
            second.append(other)
        yield (turn + 1) / (repeats + 1)
    original, edited = Spread.of(first), Spread.of(second)
    return Times(original, edited, edited.median / original.median, len(context))


def _step(model: Any, token: int, start: DynamicCache) -> None:
    read(model, [token], fork(start))
