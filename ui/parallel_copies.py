"""Parts 3 and 4 of the Many machines page: less memory than the model needs, and copies of it."""

from __future__ import annotations

from collections.abc import Callable, Generator

import streamlit as st

from core.lab.parallel.offload import SHARES, offload_turns
from core.lab.parallel.records import OffloadRun, ReplicaRun
from core.lab.parallel.replicas import BATCHES, REPLICAS, replica_turns
from ui import state
from ui.context import Context
from ui.figures import parallel_stages as figures
from ui.figures import parallel_tables as tables
from ui.figures.words import in_bytes, tiny, whole_percent
from ui.lab import experiment
from ui.lab_options import here
from ui.lab_parts import section
from ui.parallel_options import FIELD, FORMATS, OWN, TABLE, pick
from ui.parallel_parts import chart, earlier, ids_of, offer, origin, phase_text, table


def draw_offload(context: Context) -> None:
    """A model that waits on a disk."""
    t = context.t
    section(t, 3, "parallel.offload")
    share = here(FIELD, TABLE)["share"]
    pick(t, "share", SHARES, share, whole_percent)
    before = earlier(context, f"offload {share:g}", OffloadRun, _offloaded)
    offer(context, before, lambda: _run_offload(context, share, before))


def _run_offload(context: Context, share: float, before: Callable[[], None]) -> None:
    t, engine, ids = context.t, context.engine, ids_of(context)

    def turns() -> Generator[OffloadRun, None, None]:
        return offload_turns(engine, context.spec.model, ids, share)

    whole = engine.info.bytes_in_memory
    cost = t("parallel.cost_offload", whole=in_bytes(whole), room=in_bytes(share * whole))
    experiment(
        t, "parallel_offload", (state.number(engine), ids, share), turns,
        lambda now: _offloaded(context, now), cost=cost, run=t("parallel.start_offload"),
        before=before, holds=lambda now: bool(now.places),
    )  # fmt: skip


def _offloaded(context: Context, now: OffloadRun, stored: bool = False) -> None:
    t = context.t
    phase_text(t, "parallel_offload", now)
    if not now.places:
        return
    origin(t, t("parallel.offload_how"), now.machine, (now.whole_step, now.step), stored=stored)
    chart(t, figures.places_chart(now, t), "places")
    table(t, tables.places_table(now, t), "places")
    if now.step is None or now.whole_step is None or now.difference is None:
        return
    said = t(
        "parallel.offload_sentence",
        held=in_bytes(now.held_bytes), whole=in_bytes(now.whole_bytes),
        step=f"{now.step.median:,.1f}", low=f"{now.step.low:,.1f}", high=f"{now.step.high:,.1f}",
        all=f"{now.whole_step.median:,.1f}",
        ratio=f"{now.step.median / now.whole_step.median:.1f}",
    )  # fmt: skip
    st.markdown(said)
    exact = now.difference == 0
    key = "offload_exact" if exact else "offload_near"
    st.markdown(t(f"parallel.{key}", d=tiny(now.difference)))
    st.caption(t("parallel.offload_note"))


def draw_copies(context: Context) -> None:
    """Copies of the model, and batches on each."""
    t = context.t
    section(t, 4, "parallel.copies")
    wanted = here(FIELD, TABLE)["format"]
    pick(t, "format", FORMATS, wanted, lambda f: t(f"parallel.format_{f}"))
    form = "float32" if wanted == OWN else wanted
    before = earlier(context, f"replicas {form}", ReplicaRun, _served)
    offer(context, before, lambda: _run_copies(context, wanted, before))


def _run_copies(context: Context, wanted: str, before: Callable[[], None]) -> None:
    t, engine, ids = context.t, context.engine, ids_of(context)
    dtype = None if wanted == OWN else wanted

    def turns() -> Generator[ReplicaRun, None, None]:
        return replica_turns(engine, context.spec.model, ids, dtype)

    held = in_bytes(engine.info.bytes_in_memory * (1 if dtype is None else 0.5))
    cost = t("parallel.cost_copies", n=max(REPLICAS), held=held, batch=max(BATCHES))
    experiment(
        t, "parallel_copies", (state.number(engine), ids, wanted), turns,
        lambda now: _served(context, now), cost=cost,
        run=t("parallel.start_copies", n=max(REPLICAS)), before=before,
        holds=lambda now: bool(now.servings),
    )  # fmt: skip


def _served(context: Context, now: ReplicaRun, stored: bool = False) -> None:
    t = context.t
    phase_text(t, "parallel_copies", now)
    if not now.servings:
        return
    how = t("parallel.copies_how", dtype=now.dtype, tokens=now.context)
    origin(t, how, now.machine, [each.step for each in now.servings], stored=stored)
    chart(t, figures.serving_chart(now, t), "serving")
    table(t, tables.servings_table(now, t), "serving")
    if not now.done:
        return
    one = {each.batch: each for each in now.servings if each.replicas == 1}
    two = {each.batch: each for each in now.servings if each.replicas == max(REPLICAS)}
    first, last, half = one[1], one[max(BATCHES)], two[max(BATCHES) // 2]
    better = half.per_second > last.per_second
    said = t(
        "parallel.copies_better" if better else "parallel.copies_worse",
        batch=last.batch, gain=f"{last.per_second / first.per_second:.1f}",
        latency=f"{last.step.median / first.step.median:.1f}",
        half=half.batch, copies=max(REPLICAS), one=f"{last.per_second:,.0f}",
        two=f"{half.per_second:,.0f}", times=f"{half.per_second / last.per_second:.2f}",
        held=in_bytes(max(REPLICAS) * now.weights),
    )  # fmt: skip
    st.markdown(said)
