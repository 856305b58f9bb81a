"""Pipeline parallel: the model cut crosswise, a batch of texts on its way through the stages."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.machine import machine
from core.lab.models import local
from core.lab.parallel.checkpoint import checkpoint
from core.lab.parallel.crew import Answer, Crew, counted, while_asking
from core.lab.parallel.records import PipelineRun, Timeline, Traffic
from core.lab.parallel.room import check_room
from core.lab.parallel.stages import (
    MICRO_BATCHES,
    TEXTS,
    Bar,
    By,
    bubble,
    check_micro_batches,
    ideal_bubble,
    stages_of,
    unequal_bubble,
)
from core.lab.texts import text as fixed
from core.lab.timing import Spread

REPEATS: Final = 3
"""Timed passes for each number of micro-batches, in turns; one more before is not counted."""
LENGTH: Final = 32
"""Tokens of each text at least: with fewer, a stage has too little to do."""
LOGITS: Final = 100_000_000
"""Numbers that the scores of a whole batch may be."""


def pipeline_turns(  # noqa: PLR0917
    engine: Engine,
    model: str,
    ids: Sequence[int],
    stages: int,
    by: By = "layers",
    micro_batches: Sequence[int] = MICRO_BATCHES,
) -> Generator[PipelineRun, None, None]:
    """A batch of texts that begin with ``ids`` through so many stages of the model ``model``.

    Yields records that say how far it is; the last one is done. Raises Fault for what cannot be
    split, and when a worker fails; no worker is left then, nor when the generator is closed.
    """
    from core.lab.parallel.dense import Dense, check_stages  # noqa: PLC0415 - imports torch

    plan = stages_of(engine.info, stages, by)
    for count in micro_batches:
        check_micro_batches(count)
    held = local(engine)
    check_stages(held)
    check_room(engine.info.bytes_in_memory, stages)
    rows, own = texts_of(engine, ids)
    now = PipelineRun(
        plan, phase="write", progress=0.02, texts=len(rows), length=len(rows[0]), own=own,
        width=engine.info.width, number_bytes=4 if engine.info.dtype == "float32" else 2,
        single_weights=engine.info.bytes_in_memory,
    )  # fmt: skip
    yield now
    with checkpoint(held, model) as folder:
        specs = [
            {"task": "stage", "folder": str(folder), "dtype": engine.info.dtype, "layers": span}
            for span in plan.layers
        ]
        with Crew(specs) as crew:
            yield from crew.attend(_with(crew, Dense(held), rows, now, tuple(micro_batches)))


def _with(
    crew: Crew, dense: Any, rows: list[list[int]], now: PipelineRun, counts: tuple[int, ...]
) -> Generator[PipelineRun, None, None]:
    for phase in crew.begin():
        yield replace(now, phase=phase, progress=0.05)
    now = replace(now, phase="load", progress=0.25)
    answers = yield from while_asking(crew.ask("load"), now)
    now = replace(now, phase="measure", weights=tuple(a["weights"] for a in answers))
    yield from _measured(crew, dense, rows, now, counts)


def texts_of(engine: Engine, ids: Sequence[int]) -> tuple[list[list[int]], int]:
    """(texts of one length that begin with the prompt and go on differently, how much of each
    is the prompt's). What follows cannot change the scores of the prompt. Raises Fault for an
    empty prompt."""
    if not ids:
        raise Fault("empty_prompt")
    most = max(LENGTH, min(2 * LENGTH, LOGITS // (TEXTS * engine.info.vocabulary)))
    length = min(max(LENGTH, len(ids)), most, engine.info.context)
    own = min(len(ids), length)
    more = list(engine.vocabulary.read(fixed("prose"), literal=True).ids)
    needed = TEXTS * length
    more *= -(-needed // len(more))
    rows = []
    for number in range(TEXTS):
        rows.append([*ids[:own], *more[number * length :][: length - own]])
    return rows, own


def _measured(
    crew: Crew, dense: Any, rows: list[list[int]], now: PipelineRun, counts: tuple[int, ...]
) -> Generator[PipelineRun, None, None]:
    keep = sorted({now.own - 1, now.length - 1})
    single: list[float] = []
    passes: dict[int, list[list[Answer]]] = {count: [] for count in counts}
    off: dict[int, float] = {}
    rounds = (REPEATS + 1) * (len(counts) + 1)
    done = 0
    for turn in range(REPEATS + 1):
        logits, ms = dense.score(rows, keep)
        single += [ms] if turn else []
        done += 1
        for count in counts:
            now = replace(now, progress=0.4 + 0.6 * done / rounds)
            yield now
            kept = None if turn else keep
            asking = crew.ask("run", ids=rows, micro_batches=count, keep=kept)
            answers = yield from while_asking(asking, now)
            done += 1
            if turn:
                passes[count].append(answers)
            else:
                with np.load(crew.folder / "logits.npz", allow_pickle=False) as found:
                    off[count] = float(np.abs(found["logits"] - logits).max())
            if turn:
                now = replace(now, runs=_timelines(passes, off, now))
    yield replace(
        now,
        done=True,
        progress=1.0,
        phase="done",
        traffic=_traffic(answers, now),
        single=Spread.of(single),
        difference=max(off.values()),
        machine=machine(),
    )


def _timelines(
    passes: dict[int, list[list[Answer]]], off: dict[int, float], now: PipelineRun
) -> tuple[Timeline, ...]:
    return tuple(
        _timeline(count, [_bars(answers) for answers in found], off[count], now)
        for count, found in passes.items()
        if found
    )


def _bars(answers: list[Answer]) -> tuple[Bar, ...]:
    """All processes of a machine read the same clock."""
    began = min(bar[0] for answer in answers for bar in answer["bars"])
    return tuple(
        Bar(stage, piece, 1000 * (start - began), 1000 * (end - began))
        for stage, answer in enumerate(answers)
        for piece, (start, end) in enumerate(answer["bars"])
    )


def _timeline(count: int, found: list[tuple[Bar, ...]], off: float, now: PipelineRun) -> Timeline:
    took = [max(bar.end for bar in bars) for bars in found]
    middle = sorted(range(len(took)), key=took.__getitem__)[len(took) // 2]
    bars, stages = found[middle], now.plan.stages
    busy = [sum(bar.end - bar.start for bar in bars if bar.stage == s) for s in range(stages)]
    return Timeline(
        micro_batches=count,
        bars=bars,
        bubble=bubble(bars),
        ideal=ideal_bubble(stages, count),
        unequal=unequal_bubble(busy, count),
        took=Spread.of(took),
        difference=off,
    )


def _traffic(answers: list[Answer], now: PipelineRun) -> Traffic:
    seen = [counted(answer["seen"], "activations") for answer in answers]
    return Traffic(
        "activations",
        sum(calls for calls, _ in seen),
        sum(size for _, size in seen),
        theory=now.border_bytes * (now.plan.stages - 1),
    )
