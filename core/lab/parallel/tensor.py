"""Tensor parallel: every layer cut lengthwise, all ranks at work on every token."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.machine import machine
from core.lab.models import local
from core.lab.parallel.checkpoint import checkpoint
from core.lab.parallel.crew import Answer, Crew, counted, while_asking
from core.lab.parallel.deal import TensorPlan, Wanted, plan_of
from core.lab.parallel.records import Kind, Rank, TensorRun, Traffic
from core.lab.parallel.room import check_room, weights_of
from core.lab.timing import Spread

STEPS: Final = 8
"""Timed steps, in turns with one process; the first is not counted."""
KEPT: Final = 8
"""Positions of the prompt whose partial sums are kept."""
FAVOURITES: Final = 5
LONGEST: Final = 1024
"""Tokens of a prompt that is read here."""


def tensor_turns(
    engine: Engine, model: str, ids: Sequence[int], ranks: int, wanted: Wanted = "split"
) -> Generator[TensorRun, None, None]:
    """The model ``model`` (held by ``engine``) on so many ranks, reading ``ids``.

    Yields records that say how far it is; the last one is done. Raises Fault for what cannot be
    split, and when a worker fails; no worker is left then, nor when the generator is closed.
    """
    from core.lab.parallel.dense import Dense, check_layers  # noqa: PLC0415 - imports torch

    plan = plan_of(engine.info, ranks, wanted)
    held = local(engine)
    check_layers(held)
    if not ids:
        raise Fault("empty_prompt")
    if len(ids) > LONGEST:
        raise Fault("split_prompt_too_long", tokens=len(ids), limit=LONGEST)
    check_room(sum(weights_of(engine.info, plan)), ranks)
    now = TensorRun(plan, tokens=len(ids), phase="write", progress=0.02)
    yield now
    with checkpoint(held, model) as folder:
        specs = [_spec(folder, plan, engine)] * ranks
        with Crew(specs) as crew:
            yield from crew.attend(_with(crew, Dense(held), ids, now, engine))


def _with(
    crew: Crew, dense: Any, ids: Sequence[int], now: TensorRun, engine: Engine
) -> Generator[TensorRun, None, None]:
    for phase in crew.begin():
        yield replace(now, phase=phase, progress=0.05)
    now = yield from _loaded(crew, replace(now, phase="load", progress=0.25))
    yield from _measured(crew, dense, ids, now, engine)


def _spec(folder: Path, plan: TensorPlan, engine: Engine) -> dict[str, Any]:
    return {
        "task": "tensor",
        "folder": str(folder),
        "dtype": engine.info.dtype,
        "attention": "whole" if plan.attention == "whole" else "split",
    }


def _loaded(crew: Crew, now: TensorRun) -> Generator[TensorRun, None, TensorRun]:
    answers = yield from while_asking(crew.ask("load"), now)
    ranks = tuple(
        Rank(place, a["weights"], 0, 0, a["threads"], a["ms"], 0.0)
        for place, a in enumerate(answers)
    )
    return replace(now, ranks=ranks, backend=answers[0]["backend"])


def _measured(
    crew: Crew, dense: Any, ids: Sequence[int], now: TensorRun, engine: Engine
) -> Generator[TensorRun, None, None]:
    now = replace(now, phase="measure", progress=0.4)
    yield now
    kept = min(KEPT, len(ids))
    logits, outputs, single_ms = dense.prefill(ids, kept)
    yield now
    answers = yield from while_asking(crew.ask("prefill", ids=list(ids), kept=kept), now)
    found = [_arrays(crew.folder / answer["file"]) for answer in answers]
    now = replace(
        now,
        progress=0.6,
        positions=tuple(range(len(ids) - kept, len(ids))),
        partials=np.stack([arrays["partial"] for arrays in found]),
        sums=found[0]["sum"],
        dense=outputs,
        difference=float(np.abs(logits - found[0]["logits"]).max()),
        favourites=_favourites(logits, found[0]["logits"]),
        prefill_traffic=_traffic(answers, now.plan, len(ids)),
        single_prefill_ms=single_ms,
        single_weights=engine.info.bytes_in_memory,
        ranks=tuple(
            replace(rank, prefill_ms=answer["ms"])
            for rank, answer in zip(now.ranks, answers, strict=True)
        ),
    )
    yield now
    yield from _stepped(crew, dense, int(logits.argmax()), now, engine)


def _stepped(
    crew: Crew, dense: Any, token: int, now: TensorRun, engine: Engine
) -> Generator[TensorRun, None, None]:
    """Steps in turns: one process, all ranks, one process …; the last one is watched."""
    single: list[float] = []
    times: list[list[Answer]] = []
    for turn in range(STEPS + 2):
        last = turn == STEPS + 1
        logits, ms = dense.step(token)
        answers = yield from while_asking(crew.ask("step", token=token, count=last), now)
        if 0 < turn <= STEPS:
            single.append(ms)
            times.append(answers)
        token = int(logits.argmax())
        now = replace(now, progress=0.6 + 0.4 * (turn + 1) / (STEPS + 2))
        if not last:
            yield now
    split = _arrays(crew.folder / "step.npz")["logits"]
    yield replace(
        now,
        done=True,
        progress=1.0,
        phase="done",
        step_difference=float(np.abs(logits - split).max()),
        step_traffic=_traffic(answers, now.plan, 1),
        single_step=Spread.of(single),
        ranks=tuple(_timed(rank, times, answers[rank.rank]) for rank in now.ranks),
        machine=machine(engine.info.device),
    )


def _timed(rank: Rank, times: list[list[Answer]], last: Answer) -> Rank:
    own = [answers[rank.rank] for answers in times]
    return replace(
        rank,
        kv=last["kv"],
        process=last["process"],
        step=Spread.of([answer["ms"] for answer in own]),
        waiting=Spread.of([answer["waiting"] for answer in own]),
    )


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as found:
        return dict(found)


def _favourites(one: np.ndarray, other: np.ndarray) -> tuple[tuple[int, float, float], ...]:
    p, q = (_softmax(x.astype(np.float64)) for x in (one, other))
    best = np.argsort(-p, kind="stable")[:FAVOURITES]
    return tuple((int(i), float(p[i]), float(q[i])) for i in best)


def _softmax(x: np.ndarray) -> np.ndarray:
    raised = np.exp(x - x.max())
    found: np.ndarray = raised / raised.sum()
    return found


def _traffic(answers: list[Answer], plan: TensorPlan, tokens: int) -> tuple[Traffic, ...]:
    """What rank 0 handed over, beside the formulas."""
    one = plan.width * plan.number_bytes * tokens
    longest = max(hand.rows[1] - hand.rows[0] for hand in plan.hands)
    theory: dict[Kind, int] = {
        "attention": (plan.sums_a_layer - 1) * plan.layers * one,
        "feed_forward": plan.layers * one,
        "embedding": one,
        "logits": longest * plan.number_bytes,
    }
    seen = answers[0]["seen"]
    return tuple(Traffic(kind, *counted(seen, kind), theory=size) for kind, size in theory.items())
