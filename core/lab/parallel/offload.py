"""Bigger than the memory: part of the model waits on a disk until it is needed."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.machine import cores, machine
from core.lab.models import local
from core.lab.parallel.checkpoint import checkpoint
from core.lab.parallel.crew import Crew, while_asking
from core.lab.parallel.records import OffloadRun, Place
from core.lab.parallel.room import check_room
from core.lab.timing import Spread

STEPS: Final = 5
"""Timed steps of each, in turns; the first is not counted."""
SHARES: Final = (0.1, 0.25, 0.5, 0.75)
LEAST: Final = 0.02


def offload_turns(
    engine: Engine, model: str, ids: Sequence[int], share: float
) -> Generator[OffloadRun, None, None]:
    """The model ``model`` where memory holds ``share`` of its weights, beside one with room.

    Both are loaded by processes of their own that take steps in turns. Yields records that say
    how far it is; the last one is done. Raises Fault for a share that is none, and when a
    worker fails; no worker is left then, nor when the generator is closed.
    """
    if not LEAST <= share < 1:
        raise Fault("setting_out_of_range", name="share", value=share, low=LEAST, high=0.99)
    if not ids:
        raise Fault("empty_prompt")
    held = local(engine)
    check_room(2 * engine.info.bytes_in_memory, 2)
    now = OffloadRun(share, phase="write", progress=0.02)
    yield now
    with checkpoint(held, model) as folder:
        # They work in turns, so each may have all cores.
        spec = {"task": "whole", "folder": str(folder), "dtype": engine.info.dtype,
                "threads": cores()}  # fmt: skip
        with Crew([spec, spec]) as crew:
            yield from crew.attend(_with(crew, ids, now, engine))


def _with(
    crew: Crew, ids: Sequence[int], now: OffloadRun, engine: Engine
) -> Generator[OffloadRun, None, None]:
    for phase in crew.begin():
        yield replace(now, phase=phase, progress=0.05)
    yield from _measured(crew, ids, replace(now, phase="load", progress=0.2), engine)


def _measured(
    crew: Crew, ids: Sequence[int], now: OffloadRun, engine: Engine
) -> Generator[OffloadRun, None, None]:
    room = int(now.share * engine.info.bytes_in_memory)
    answers = yield from while_asking(crew.ask_each("load", [{}, {"memory": room}]), now)
    now = replace(
        now,
        phase="measure",
        progress=0.5,
        places=_places(answers[1]["places"]),
        whole_bytes=answers[0]["weights"],
        held_bytes=answers[1]["weights"],
    )
    yield now
    for rank in (0, 1):
        yield from while_asking(crew.ask("read", only=rank, ids=list(ids)), now)
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(STEPS + 1):
        for rank in (0, 1):
            asking = crew.ask("step", only=rank, file=f"step{rank}.npz")
            (answer,) = yield from while_asking(asking, now)
            if turn:
                times[rank].append(answer["ms"])
        now = replace(now, progress=0.5 + 0.5 * (turn + 1) / (STEPS + 1))
        if turn < STEPS:
            yield now
    one, other = (_logits(crew.folder / f"step{rank}.npz") for rank in (0, 1))
    yield replace(
        now,
        done=True,
        phase="done",
        progress=1.0,
        whole_step=Spread.of(times[0]),
        step=Spread.of(times[1]),
        difference=float(np.abs(one - other).max()),
        machine=machine(engine.info.device),
    )


def _logits(path: Path) -> np.ndarray:
    with np.load(path, allow_pickle=False) as found:
        logits: np.ndarray = found["logits"]
    return logits


def _places(table: list[list[Any]]) -> tuple[Place, ...]:
    """Neighbours that live in one place, as one row."""
    found = []
    for where, group in groupby(table, key=lambda row: str(row[1])):
        rows = list(group)
        size = sum(int(row[2]) for row in rows)
        found.append(Place(str(rows[0][0]), str(rows[-1][0]), len(rows), where, size))
    return tuple(found)
