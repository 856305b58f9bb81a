"""Data parallel: copies of the model, and batches on each: throughput against latency."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Final

from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.machine import cores, machine
from core.lab.models import local
from core.lab.parallel.checkpoint import checkpoint
from core.lab.parallel.crew import Crew, while_asking
from core.lab.parallel.records import ReplicaRun, Serving
from core.lab.parallel.room import check_room
from core.lab.timing import Spread

BATCHES: Final = (1, 2, 4, 8, 16)
REPLICAS: Final = (1, 2)
STEPS: Final = 10
"""Timed steps for each setting, in turns with the other settings' after one that is not
counted."""
ROUNDS: Final = 2
LONGEST: Final = 128
"""Tokens of the prompt that are read."""


def replica_turns(
    engine: Engine, model: str, ids: Sequence[int], dtype: str | None = None
) -> Generator[ReplicaRun, None, None]:
    """Steps of 1 … 16 texts on one copy and on each of two copies of the model ``model``.

    ``dtype``: another number format than the model's own. Yields records that say how far it
    is; the last one is done. Raises Fault when a worker fails; none is left then, nor when the
    generator is closed.
    """
    if not ids:
        raise Fault("empty_prompt")
    held = local(engine)
    context = min(len(ids), LONGEST)
    form = engine.info.dtype if dtype is None else dtype
    check_room(max(REPLICAS) * engine.info.bytes_in_memory, max(REPLICAS))
    now = ReplicaRun(phase="write", progress=0.02, context=context, dtype=form)
    yield now
    with checkpoint(held, model) as folder:
        spec = {"task": "whole", "folder": str(folder), "dtype": form}
        with Crew([spec] * max(REPLICAS)) as crew:
            yield from crew.attend(_with(crew, list(ids[:context]), now, engine))


def _with(
    crew: Crew, ids: list[int], now: ReplicaRun, engine: Engine
) -> Generator[ReplicaRun, None, None]:
    for phase in crew.begin():
        yield replace(now, phase=phase, progress=0.05)
    now = replace(now, phase="load", progress=0.2)
    answers = yield from while_asking(crew.ask("load"), now)
    now = replace(now, phase="measure", weights=answers[0]["weights"])
    yield from _measured(crew, ids, now, engine)


def _measured(
    crew: Crew, ids: list[int], now: ReplicaRun, engine: Engine
) -> Generator[ReplicaRun, None, None]:
    settings = [(replicas, batch) for replicas in REPLICAS for batch in BATCHES]
    times: dict[tuple[int, int], list[float]] = {setting: [] for setting in settings}
    done = 0
    for _ in range(ROUNDS):
        for replicas, batch in settings:
            only = 0 if replicas == 1 else None
            threads = max(1, cores() // replicas)
            rest = {"ids": ids, "copies": batch, "threads": threads}
            yield from while_asking(crew.ask("read", only=only, **rest), now)
            for step in range(STEPS // ROUNDS + 1):
                answers = yield from while_asking(crew.ask("step", only=only), now)
                if step:
                    # Whoever waits for the slower copy waits longest.
                    times[replicas, batch].append(max(answer["ms"] for answer in answers))
            done += 1
            now = replace(
                now,
                progress=0.3 + 0.7 * done / (ROUNDS * len(settings)),
                servings=tuple(
                    Serving(*s, Spread.of(found)) for s, found in times.items() if found
                ),
            )
            if done < ROUNDS * len(settings):
                yield now
    yield replace(now, done=True, phase="done", progress=1.0, machine=machine(engine.info.device))
