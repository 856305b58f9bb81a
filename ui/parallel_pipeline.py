"""Part 2 of the Many machines page: the model cut crosswise (pipeline parallel)."""

from __future__ import annotations

from collections.abc import Callable, Generator

import streamlit as st

from core.lab.parallel.deal import most_ranks
from core.lab.parallel.pipeline import LENGTH, pipeline_turns
from core.lab.parallel.records import PipelineRun
from core.lab.parallel.stages import (
    BY,
    MICRO_BATCHES,
    TEXTS,
    By,
    StagePlan,
    head_cost,
    ideal_bubble,
    layer_cost,
    stages_of,
)
from ui import state
from ui.context import Context
from ui.figures import parallel_stages as figures
from ui.figures import parallel_tables as tables
from ui.figures.words import in_bytes, percent, tiny
from ui.lab import experiment
from ui.lab_options import here
from ui.lab_parts import section
from ui.marks import mark
from ui.parallel_options import FIELD, TABLE, pick
from ui.parallel_parts import chart, earlier, ids_of, offer, origin, phase_text, table
from ui.parallel_tensor import CLOSE


def draw_pipeline(context: Context) -> None:
    """Raises Fault where the model cannot be cut so."""
    t, info = context.t, context.engine.info
    section(t, 2, "parallel.pipeline")
    values = here(FIELD, TABLE)
    most = min(most_ranks(), info.layers)
    stages = min(values["stages"], most)
    plan = stages_of(info, stages, values["by"])
    left, right = st.columns(2, gap="medium")
    with left:
        pick(t, "stages", range(2, most + 1), stages, str)
    with right:
        pick(t, "by", BY, values["by"], lambda by: t(f"parallel.by_{by}"))
    mark(t, "computed", t("parallel.cost_how"))
    chart(t, figures.cost_chart(plan, layer_cost(info), head_cost(info), t), "cost")
    formula = t("parallel.comma").join(
        t("parallel.bubble_at", n=n, share=percent(ideal_bubble(stages, n))) for n in MICRO_BATCHES
    )
    heads = head_cost(info) / layer_cost(info)
    st.markdown(t("parallel.cost_sentence", layers=f"{heads:.1f}"))
    st.markdown(t("parallel.bubble_before", stages=stages, shares=formula))
    table(t, tables.stages_table(info, plan, t), "cost")
    before = earlier(context, f"pipeline {stages} {plan.by}", PipelineRun, _show)
    offer(context, before, lambda: _run(context, plan, values["by"], before))


def _run(context: Context, plan: StagePlan, by: By, before: Callable[[], None]) -> None:
    t, engine, ids = context.t, context.engine, ids_of(context)

    def turns() -> Generator[PipelineRun, None, None]:
        return pipeline_turns(engine, context.spec.model, ids, plan.stages, by)

    key = (state.number(engine), ids, plan.stages, by)
    cost = t("parallel.cost_pipeline", n=plan.stages, texts=TEXTS, length=LENGTH)
    experiment(
        t, "parallel_pipeline", key, turns, lambda now: _show(context, now), cost=cost,
        run=t("parallel.start_n", n=plan.stages), before=before, holds=lambda now: bool(now.runs),
    )  # fmt: skip


def _show(context: Context, now: PipelineRun, stored: bool = False) -> None:
    t = context.t
    phase_text(t, "parallel_pipeline", now)
    if not now.runs:
        return
    how = t("parallel.pipeline_how", texts=now.texts, length=now.length, own=now.own)
    times = [now.single, *(each.took for each in now.runs)]
    origin(t, how, now.machine, times, stored=stored)
    if now.difference is not None:
        key = "equal" if now.difference <= CLOSE else "unequal"
        key = "exact" if now.difference == 0 else key
        said = t(f"parallel.pipeline_{key}", n=now.plan.stages, d=tiny(now.difference))
        (st.warning if key == "unequal" else st.success)(said)
    there = [found.micro_batches for found in now.runs]
    wanted = here(FIELD, TABLE)["micro"]
    count = wanted if wanted in there else there[-1]
    pick(t, "micro", MICRO_BATCHES, count, str)
    found = next(each for each in now.runs if each.micro_batches == count)
    st.markdown(f"### {t('parallel.gantt_title', n=count)}")
    chart(t, figures.gantt(found, now.plan.stages, t), "gantt")
    said = t(
        "parallel.gantt_sentence",
        n=count, bubble=percent(found.bubble), ideal=percent(found.ideal),
        unequal=percent(found.unequal), stages=now.plan.stages,
    )  # fmt: skip
    st.markdown(said)
    with st.container():
        table(t, tables.bars_table(now, count, t), "gantt")
    st.markdown(f"### {t('parallel.bubble_title')}")
    chart(t, figures.bubble_chart(now, t), "bubble")
    st.caption(t("parallel.bubble_note"))
    table(t, tables.bubbles_table(now, t), "bubble")
    if now.done:
        _ends(context, now)
    state.write_link()


def _ends(context: Context, now: PipelineRun) -> None:
    t = context.t
    assert now.traffic is not None
    assert now.single is not None
    best = min(now.runs, key=lambda found: found.took.median)
    said = t(
        "parallel.pipeline_ends",
        bytes=f"{now.traffic.bytes:,}", calls=now.traffic.calls,
        theory=f"{now.traffic.theory:,}", single=f"{now.single.median:,.0f}",
        best=f"{best.took.median:,.0f}", n=best.micro_batches,
        memory=t("parallel.and").join(in_bytes(held) for held in now.weights),
        whole=in_bytes(now.single_weights),
    )  # fmt: skip
    st.markdown(said)
