"""A few training steps on a private copy of a model, with inference beside each of them."""

from __future__ import annotations

import gc
import math
import threading
import weakref
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import psutil
import torch
from torch import Tensor

from core.edits.pack import Packed
from core.edits.spec import split
from core.engine.local import LocalEngine
from core.faults import Fault
from core.lab.copies import private
from core.lab.kv_passes import new_cache, read
from core.lab.machine import machine
from core.lab.quality import Row, following, judged, reference
from core.lab.training_bytes import needed_bytes
from core.lab.training_moved import fingerprint, moved
from core.lab.training_records import Ask, Forgotten, Frozen, Kept, Prediction, Training
from core.lab.training_step import (
    inference,
    kept,
    look,
    optimizer_of,
    state_bytes,
    step,
    without_step,
)
from core.lab.turns import between, ended, through

MOST_READ: Final = 128
"""Tokens of each fixed text on which forgetting is judged."""
PATIENCE: Final = 0.2
"""Seconds for which a turn waits for another training to end."""
_ONE: Final = threading.BoundedSemaphore(1)
"""A training takes several times the model's bytes, so one goes on at a time."""
_SHARES: Final = {
    "original": 0.0, "copy": 0.12, "look": 0.16, "kept": 0.2, "steps": 0.25, "after": 0.85,
}  # fmt: skip
"""How far the work is when a phase begins."""


@dataclass
class _Work:
    """What a training holds while it runs; nothing of it leaves."""

    engine: LocalEngine
    ask: Ask
    rows: tuple[Row, ...] = ()
    twin: Any = None
    optimizer: torch.optim.Optimizer | None = None
    before: tuple[np.ndarray, ...] = ()
    """p of every next token after both prompts, before the training."""
    logits: Tensor | None = None
    sum: str = ""

    @property
    def ids(self) -> Tensor:
        return torch.tensor([list(self.ask.sentence)], device=self.twin.device)


def trained(engine: LocalEngine, ask: Ask) -> Generator[Training, None, None]:
    """Do it, and drop the copy again; yields within every step, the last record is done.

    The served model is never written to. Raises Fault where there is no memory for the copy,
    for packed weights, and when the loss is no number any more.
    """
    needed = check(engine, ask)
    record = Training(engine.info.name, ask, needed, machine(engine.info.device))
    while not _ONE.acquire(timeout=PATIENCE):
        yield record
    try:
        yield from _turns(_Work(engine, ask), record)
    finally:
        gc.collect()
        _ONE.release()


def check(engine: LocalEngine, ask: Ask) -> int:
    """The bytes that it will need. Raises Fault where they are not there, or for packed weights."""
    info = engine.info
    with engine.borrowed() as model:
        packed = next((m for m in model.modules() if isinstance(m, Packed)), None)
    if packed is not None:
        raise Fault("training_packed", storage=split(info.name)[1] or type(packed).__name__)
    needed = needed_bytes(info, ask)
    if info.device == "cpu":
        free = psutil.virtual_memory().available
    elif info.device.startswith("cuda"):
        free = torch.cuda.mem_get_info(info.device)[0]
    else:
        return needed
    if free < needed:
        raise Fault("no_memory_to_copy", name=info.name, needed=needed // 10**6)
    return needed


def _turns(work: _Work, record: Training) -> Generator[Training, None, None]:
    record = yield from _original(work, replace(record, phase="original"))
    record = yield from _copied(work, replace(record, phase="copy"))
    record = yield from _stepped(work, replace(record, phase="steps"))
    record = yield from _judged(work, replace(record, phase="after"))
    yield from _frozen(work, replace(record, phase="frozen"))


def _at(record: Training, share: float, until: float) -> Training:
    start = _SHARES[record.phase]
    return replace(record, progress=start + share * (until - start))


def _original(work: _Work, record: Training) -> Generator[Training, None, Training]:
    """What the served model says, and the sum of its weights."""
    reading = between(reference(work.engine, most=MOST_READ), 0.0, 0.6)
    work.rows = yield from through(reading, lambda share: _at(record, share, 0.12))
    work.logits = _served(work)
    summing = between(fingerprint(work.engine), 0.6, 1.0)
    work.sum = yield from through(summing, lambda share: _at(record, share, 0.12))
    return record


def _served(work: _Work) -> Tensor:
    """The served model's scores after the prompt, by a pass of its own."""
    with work.engine.borrowed() as model:
        return read(model, work.ask.prompt, new_cache(model))[0].clone()


def _copied(work: _Work, record: Training) -> Generator[Training, None, Training]:
    """The copy, its predictions, and what one step keeps."""
    yield _at(record, 0, 0.16)
    ask, ends = work.ask, work.engine.info.end_ids
    # Steps of 1e-5 would be lost between the numbers of 16 bits.
    work.twin = private(work.engine).float()
    work.twin.requires_grad_(True)
    record = replace(record, phase="look")
    yield _at(record, 0, 0.2)
    (first, *before), (second, *more) = (
        look(work.twin, prompt, ends) for prompt in (ask.prompt, ask.other)
    )
    work.before = (*before, *more)
    record = replace(
        record, prompt=Prediction(ask.prompt, first), other=Prediction(ask.other, second)
    )
    record = replace(record, phase="kept")
    yield _at(record, 0, 0.25)
    found_kept = kept(work.twin, work.ids, work.engine.info.layers)
    work.optimizer = optimizer_of(work.twin, ask.optimizer, ask.rate)
    return replace(record, kept=found_kept)


def _stepped(work: _Work, record: Training) -> Generator[Training, None, Training]:
    assert work.optimizer is not None
    ids, steps = work.ids, work.ask.steps
    for index in range(steps):
        yield _at(record, index / steps, 0.85)
        ms, _ = inference(work.twin, work.ask.sentence)
        turns = step(work.twin, work.optimizer, ids, ms)
        part = 0
        while True:
            try:
                next(turns)
            except StopIteration as end:
                made, gradients = end.value
                break
            part += 1
            yield _at(record, (index + part / 3) / steps, 0.85)
        if not math.isfinite(made.loss):
            raise Fault("training_diverged", step=index + 1, rate=work.ask.rate)
        held = record.kept
        assert isinstance(held, Kept)
        states = state_bytes(work.optimizer)
        record = replace(
            record,
            steps=(*record.steps, made),
            kept=replace(held, gradients=gradients, states=states),
        )
    last = without_step(work.twin, ids)
    if not math.isfinite(last.loss):
        raise Fault("training_diverged", step=steps, rate=work.ask.rate)
    return replace(record, last=last)


def _judged(work: _Work, record: Training) -> Generator[Training, None, Training]:
    """The predictions afterwards, what was forgotten, and which weights moved."""
    assert record.prompt is not None
    assert record.other is not None
    yield _at(record, 0, 1)
    record = replace(
        record,
        prompt=_looked_again(work, record.prompt, work.before[0]),
        other=_looked_again(work, record.other, work.before[1]),
    )
    yield _at(record, 0.2, 1)
    for place, row in enumerate(work.rows):
        record = replace(record, forgotten=(*record.forgotten, _forgotten(work.twin, row)))
        yield _at(record, 0.2 + 0.5 * (place + 1) / len(work.rows), 1)
    with work.engine.borrowed() as model:
        original = model
    groups, tensors = moved(original, work.twin)
    record = replace(record, moved=groups, tensors=tensors)
    yield _at(record, 0.8, 1)
    return record


def _looked_again(work: _Work, found: Prediction, before: np.ndarray) -> Prediction:
    after, chances = look(work.twin, found.prompt, work.engine.info.end_ids)
    known = tuple(float(before[token]) for token, _ in after.top)
    left = tuple(float(chances[token]) for token, _ in found.before.top)
    return replace(found, after=after, before_p=known, after_p=left, kl=_kl(before, chances))


def _kl(before: np.ndarray, after: np.ndarray) -> float:
    p, q = before.astype(np.float64), np.maximum(after.astype(np.float64), 1e-300)
    held = p > 0
    return max(0.0, float((p[held] * np.log(p[held] / q[held])).sum()))


def _forgotten(model: Any, row: Row) -> Forgotten:
    found = ended(judged(model, [row]))
    surprise = -float(following(row.log_probs, row.ids).mean())
    return Forgotten(
        row.name,
        kl=found.kl,
        top1=found.top1,
        before=math.exp(surprise),
        after=found.perplexity,
        positions=found.positions,
    )


def _frozen(work: _Work, record: Training) -> Generator[Training, None, None]:
    """Freeze the copy, drop it, and compare the served model with what it was."""
    twin = work.twin
    twin.requires_grad_(False)
    trained = sum(p.numel() for p in twin.parameters() if p.requires_grad)
    watched = [weakref.ref(p) for p in twin.parameters()]
    work.twin = work.optimizer = None
    del twin
    gc.collect()
    gone = all(ref() is None for ref in watched)
    after = yield from through(fingerprint(work.engine), lambda _: replace(record, progress=0.99))
    assert work.logits is not None
    frozen = Frozen(trained, gone, work.sum, after, torch.equal(work.logits, _served(work)))
    yield replace(record, frozen=frozen, done=True, progress=1.0)
