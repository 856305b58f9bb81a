"""Pruning done to a model and measured beside the untouched original.

Each experiment is a generator of records that grow; the last one is ``done``. The model itself
is only read: what is pruned is a private copy.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import torch

from core.edits.masks import Method
from core.edits.pieces import matrices_in
from core.edits.spec import ModelEdit, Zeros, spell
from core.edits.zero import keep_mask
from core.engine.local import LocalEngine
from core.lab.copies import private
from core.lab.machine import machine
from core.lab.prune_copy import (
    COPIES,
    judging,
    norms_of,
    original_writing,
    place,
    pruned,
    size_of,
    timing,
    writing,
)
from core.lab.prune_records import (
    SHARES,
    SWEPT,
    Effect,
    Judged,
    Point,
    Removal,
    Removals,
    Sweep,
)
from core.lab.quality import MOST, Row, reference
from core.lab.turns import between, through
from core.model_info import ModelInfo

REPEATS: Final = 9
TURN: Final = 24
"""Matrices that are worked on in one turn."""
_START: Final = 0.03
"""Share of a long experiment in which the original is read."""
P = TypeVar("P", Sweep, Removals)
R = TypeVar("R")
V = TypeVar("V")


def effect(
    engine: LocalEngine,
    edit: ModelEdit,
    ids: Sequence[int],
    *,
    repeats: int = REPEATS,
    most: int = MOST,
) -> Generator[Effect, None, None]:
    """One edit in full: quality, size, both texts after ``ids``, and where parts go, the time.

    Raises Fault where the edit cannot be done to this model.
    """
    with engine.borrowed() as model:
        before = size_of(model)
    now = Effect(
        edit=spell(edit), judged=None, perplexity=None, before=(), after=(), original=before,
        edited=None, times=None, machine=machine(engine.info.device), progress=0.0, done=False,
    )  # fmt: skip
    for _ in place():
        yield now
    try:
        twin = yield from through(pruned(engine, edit), lambda s: replace(now, progress=0.25 * s))
        now = replace(now, edited=size_of(twin), progress=0.25)
        yield now
        rows = yield from through(
            reference(engine, most=most), lambda s: replace(now, progress=0.25 + 0.15 * s)
        )
        own = quality_of(rows)
        found = yield from through(
            judging(twin, rows), lambda s: replace(now, progress=0.4 + 0.2 * s)
        )
        now = replace(now, judged=found, perplexity=own, progress=0.6)
        yield now
        del rows
        text = yield from through(
            original_writing(engine, ids),
            lambda made: replace(now, before=made, progress=0.6 + 0.006 * len(made)),
        )
        now = replace(now, before=text, progress=0.75)
        text = yield from through(
            writing(twin, ids, engine.info.end_ids),
            lambda made: replace(now, after=made, progress=0.75 + 0.005 * len(made)),
        )
        now = replace(now, after=text, progress=0.9)
        yield now
        if edit.removes:
            times = yield from through(
                timing(engine, twin, ids, repeats), lambda s: replace(now, progress=0.9 + 0.1 * s)
            )
            now = replace(now, times=times)
        yield replace(now, progress=1.0, done=True)
    finally:
        COPIES.release()


def quality_of(rows: Sequence[Row]) -> float:
    """Perplexity of the model whose rows these are."""
    surprise = sum(-float(row.log_probs[:-1].gather(1, _targets(row)).sum()) for row in rows)
    count = sum(len(row.ids) - 1 for row in rows)
    return float(torch.tensor(surprise / count, dtype=torch.float64).exp())


def _targets(row: Row) -> torch.Tensor:
    return torch.tensor(row.ids[1:], device=row.log_probs.device)[:, None]


# ---------------------------------------------------------------- many settings


def settings(
    methods: Iterable[Method] = SWEPT, shares: Iterable[float] = SHARES
) -> tuple[Zeros, ...]:
    """Those of a sweep: every share in every way, and two of four where it has a meaning."""
    found = [Zeros(share, method) for method in methods for share in shares]
    return (*found, *(Zeros(0.5, method, True) for method in methods if method != "magnitude_row"))


def sweep(
    engine: LocalEngine, chosen: Sequence[Zeros] = settings(), *, most: int = MOST
) -> Generator[Sweep, None, None]:
    """Many shares of zeros, each set on the original's own weights in one private copy."""
    now = Sweep((), 0.0, machine(engine.info.device), 0.0, done=False)
    for _ in place():
        yield now
    try:
        rows = yield from through(
            reference(engine, most=most), lambda s: replace(now, progress=_START * s)
        )
        now = replace(now, perplexity=quality_of(rows), progress=_START)
        twin = private(engine)
        yield now
        for zeros in chosen:
            judged = yield from through(
                _one_point(engine, twin, rows, zeros), _along(now, len(now.points), len(chosen))
            )
            point = Point(zeros.method, zeros.share, zeros.two_of_four, judged)
            now = replace(now, points=(*now.points, point))
            yield _along(now, len(now.points), len(chosen))(0.0)
        yield replace(now, progress=1.0, done=True)
    finally:
        COPIES.release()


def _one_point(
    engine: LocalEngine, twin: Any, rows: Sequence[Row], zeros: Zeros
) -> Generator[float, None, Judged]:
    yield from between(_set_zeros(engine, twin, zeros), 0.0, 0.3)
    return (yield from between(judging(twin, rows), 0.3, 1.0))


def _set_zeros(engine: LocalEngine, twin: Any, zeros: Zeros) -> Generator[float, None, None]:
    """Give a private copy the original's weights, with zeros; yields the share done."""
    norms = norms_of(engine) if zeros.method == "wanda" else {}
    with engine.borrowed() as model:
        # Nobody ever changes these weights, so they can be read while others use the model.
        found = [(name, matrix.weight) for name, matrix in matrices_in(model)]
    for number, (name, weight) in enumerate(found):
        with torch.inference_mode():
            keep = keep_mask(weight, zeros, norms=norms.get(name), seed=number)
            twin.get_submodule(name).weight.copy_(weight * keep)
        if number % TURN == TURN - 1:
            yield (number + 1) / len(found)


def ladder(info: ModelInfo, layers: Sequence[int]) -> tuple[ModelEdit, ...]:
    """Ways to take out more and more; ``layers`` with the least important one first."""
    neurons = [ModelEdit(neurons=share) for share in (0.1, 0.2, 0.3, 0.5)]
    counts = [n for n in (1, 2, 4, 8) if n < info.layers]
    fewer = [ModelEdit(layers=tuple(sorted(layers[:count]))) for count in counts]
    groups = [ModelEdit(groups=1)] if info.kv_heads > 1 else []
    return (*neurons, *fewer, *groups)


def removals(
    engine: LocalEngine,
    edits: Sequence[ModelEdit],
    ids: Sequence[int],
    *,
    repeats: int = REPEATS,
    most: int = MOST,
) -> Generator[Removals, None, None]:
    """Several ways to take parts out: quality, real size and real step time of each.

    Raises Fault where one of them cannot be done.
    """
    with engine.borrowed() as model:
        before = size_of(model)
    now = Removals((), before, 0.0, machine(engine.info.device), 0.0, done=False)
    for _ in place():
        yield now
    try:
        rows = yield from through(
            reference(engine, most=most), lambda s: replace(now, progress=_START * s)
        )
        now = replace(now, perplexity=quality_of(rows), progress=_START)
        yield now
        for edit in edits:
            row = yield from through(
                _one_removal(engine, edit, rows, ids, repeats),
                _along(now, len(now.rows), len(edits)),
            )
            now = replace(now, rows=(*now.rows, row))
            yield _along(now, len(now.rows), len(edits))(0.0)
        yield replace(now, progress=1.0, done=True)
    finally:
        COPIES.release()


def _one_removal(
    engine: LocalEngine, edit: ModelEdit, rows: Sequence[Row], ids: Sequence[int], repeats: int
) -> Generator[float, None, Removal]:
    twin = yield from between(pruned(engine, edit), 0.0, 0.3)
    judged = yield from between(judging(twin, rows), 0.3, 0.7)
    times = yield from between(timing(engine, twin, ids, repeats), 0.7, 1.0)
    return Removal(spell(edit), judged, size_of(twin), times)


def _along(now: P, made: int, wanted: int) -> Callable[[float], P]:
    """The record while the next of ``wanted`` parts is so far done."""
    return lambda share: replace(now, progress=_START + (1 - _START) * (made + share) / wanted)
