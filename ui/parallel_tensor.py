"""Part 1 of the Many machines page: every layer cut lengthwise (tensor parallel)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final

import numpy as np
import streamlit as st

from core.lab.parallel.deal import WANTED, TensorPlan, Wanted, even_ranks, most_ranks, plan_of
from core.lab.parallel.records import PARTS, TensorRun
from core.lab.parallel.room import PROCESS, weights_of
from core.lab.parallel.tensor import KEPT, tensor_turns
from ui import state
from ui.context import Context
from ui.figures import parallel_sums as figures
from ui.figures import parallel_tables as tables
from ui.figures.parallel import split_chart
from ui.figures.words import in_bytes, percent, tiny
from ui.i18n import plain
from ui.lab import experiment
from ui.lab_options import choose, here
from ui.lab_parts import section
from ui.marks import mark
from ui.parallel_options import FIELD, TABLE, pick
from ui.parallel_parts import chart, earlier, ids_of, offer, origin, phase_text, table
from ui.widgets import picked, show

CLOSE: Final = 1e-4


def draw_tensor(context: Context) -> None:
    """Raises Fault where the model cannot be split so."""
    t, info = context.t, context.engine.info
    section(t, 1, "parallel.tensor")
    values = here(FIELD, TABLE)
    even = [n for n in even_ranks(info.heads, info.kv_heads, most_ranks()) if n <= 3]
    ranks = values["ranks"] if 2 <= values["ranks"] <= most_ranks() else max([2, *even])
    left, right = st.columns(2, gap="medium")
    with left:
        pick(t, "ranks", range(2, most_ranks() + 1), ranks, str)
    with right:
        pick(t, "attention", WANTED, values["attention"], lambda w: t(f"parallel.attention_{w}"))
    plan = plan_of(info, ranks, values["attention"])
    mark(t, "computed", t("parallel.split_how"))
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="center")
    with left:
        chart(t, split_chart(info, plan, t), "split")
    with right:
        st.markdown(tables.advice(info, plan, t))
        _bytes_before(context, plan)
        st.caption(t("parallel.split_note"))
    table(t, tables.split_table(info, plan, t), "split")
    question = f"tensor {plan.ranks} {plan.attention}"
    before = earlier(context, question, TensorRun, _show)
    offer(context, before, lambda: _run(context, plan, values["attention"], before))


def _bytes_before(context: Context, plan: TensorPlan) -> None:
    t = context.t
    bytes_text = t(
        "parallel.bytes_before",
        sums=plan.sums_a_layer, layers=plan.layers, width=plan.width, size=plan.number_bytes,
        total=f"{plan.layer_bytes():,}",
    )  # fmt: skip
    st.markdown(bytes_text)


def _run(context: Context, plan: TensorPlan, wanted: Wanted, before: Callable[[], None]) -> None:
    t, engine, ids = context.t, context.engine, ids_of(context)
    held = in_bytes(max(weights_of(engine.info, plan)))

    def turns() -> Generator[TensorRun, None, None]:
        return tensor_turns(engine, context.spec.model, ids, plan.ranks, wanted)

    key = (state.number(engine), ids, plan.ranks, wanted)
    cost = t(
        "parallel.cost_tensor",
        n=plan.ranks, held=held, own=in_bytes(PROCESS),
    )  # fmt: skip
    label = t("parallel.start_n", n=plan.ranks)
    experiment(
        t, "parallel_tensor", key, turns, lambda now: _show(context, now), cost=cost, run=label,
        before=before, holds=lambda now: now.difference is not None,
    )  # fmt: skip


def _show(context: Context, now: TensorRun, stored: bool = False) -> None:
    t = context.t
    phase_text(t, "parallel_tensor", now)
    if now.difference is not None:
        _verdict(context, now, stored)
    if now.partials is not None:
        _sums(context, now)
    if now.done:
        _talk(context, now)
        _shares(context, now)


def _verdict(context: Context, now: TensorRun, stored: bool) -> None:
    t = context.t
    assert now.difference is not None
    how = t("parallel.tensor_how", backend=now.backend)
    # Ranks wait for each other, so their times spread on a quiet machine, too.
    origin(t, how, now.machine, (now.single_step,), stored=stored)
    worst = max(now.difference, now.step_difference or 0.0)
    key = "equal" if worst <= CLOSE else "unequal"
    token, single, split = now.favourites[0]
    said = t(
        f"parallel.tensor_{key}",
        n=now.plan.ranks, d=tiny(worst), single=percent(single), split=percent(split),
    )  # fmt: skip
    (st.success if key == "equal" else st.warning)(said)
    st.caption(t("parallel.next_token", token=_label(context, token)))


def _label(context: Context, token: int) -> str:
    return plain(context.vocabulary.label(token))


def _sums(context: Context, now: TensorRun) -> None:
    """Partial sums of one part of one layer, at one position of the prompt."""
    t = context.t
    assert now.partials is not None
    assert now.sums is not None
    assert now.dense is not None
    st.markdown(f"### {t('parallel.sums_title')}")
    values = here(FIELD, TABLE)
    layers = now.plan.layers
    layer = values["layer"] if 0 <= values["layer"] < layers else layers // 2
    found = values["position"]
    position = now.positions.index(found) if found in now.positions else len(now.positions) - 1
    _pickers(context, now, layer, values["part"], position)
    part = PARTS.index(values["part"])
    if now.plan.attention == "whole" and part == 0:
        st.info(t("parallel.sums_whole"))
    chart(t, figures.sums_chart(now, layer, part, position, t), "sums")
    first = figures.strongest(now, layer, part, position)[0]
    summands = [float(x) for x in now.partials[:, layer, part, position, first]]
    total = float(now.sums[layer, part, position, first])
    away = np.abs(now.sums[layer, part, position] - now.dense[layer, part, position]).max()
    sentence = t(
        "parallel.sums_sentence",
        component=first,
        sum=" ".join(_signed(x, i == 0) for i, x in enumerate(summands)),
        total=_signed(total, True),
        single=_signed(float(now.dense[layer, part, position, first]), True),
        width=now.plan.width,
        d=tiny(float(away)),
    )
    st.markdown(sentence)
    table(t, tables.sums_table(now, layer, part, position, t), "sums")
    state.write_link()


def _signed(value: float, first: bool) -> str:
    sign = "−" if value < 0 else ("" if first else "+")
    return f"{sign}{'' if first else ' '}{abs(value):.5f}"


def _pickers(context: Context, now: TensorRun, layer: int, part: str, position: int) -> None:
    t = context.t
    left, middle, right = st.columns(3, gap="medium")
    with left:
        key = show("w_parallel_layer", layer + 1)
        # A slider needs two ends.
        if now.plan.layers > 1:
            st.slider(
                t("parallel.pick_layer"), 1, now.plan.layers, key=key,
                on_change=lambda: choose(FIELD, TABLE, layer=st.session_state[key] - 1),
            )  # fmt: skip
    with middle:
        pick(t, "part", PARTS, part, lambda name: t(f"parallel.part_{name}"))
    with right:
        labels = {
            place: f"{place}: {context.vocabulary.label(ids_of(context)[place])}"
            for place in now.positions
            if place < len(ids_of(context))
        }
        spot = show("w_parallel_position", now.positions[position])
        st.selectbox(
            t("parallel.pick_position"), list(now.positions), key=spot,
            format_func=lambda place: labels.get(place, str(place)),
            help=t("parallel.pick_position_help", n=KEPT),
            on_change=lambda: choose(
                FIELD, TABLE, position=picked(spot, now.positions, now.positions[position])
            ),
        )  # fmt: skip


def _talk(context: Context, now: TensorRun) -> None:
    """What was sent, beside the formulas."""
    t, plan = context.t, now.plan
    st.markdown(f"### {t('parallel.talk_title')}")
    measured = tables.total(now.step_traffic, PARTS)
    calls = sum(each.calls for each in now.step_traffic if each.kind in PARTS)
    same = measured == plan.layer_bytes()
    said = t(
        "parallel.talk_same" if same else "parallel.talk_other",
        calls=calls, bytes=f"{measured:,}", theory=f"{plan.layer_bytes():,}",
        sums=plan.sums_a_layer, layers=plan.layers, width=plan.width, size=plan.number_bytes,
        prompt=f"{tables.total(now.prefill_traffic, PARTS):,}", tokens=now.tokens,
    )  # fmt: skip
    st.markdown(said)
    st.caption(t("parallel.talk_note"))
    table(t, tables.traffic_table(now, t), "traffic", folded=False)


def _shares(context: Context, now: TensorRun) -> None:
    """Memory and time of every rank."""
    t = context.t
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(f"### {t('parallel.memory_title')}")
        chart(t, figures.memory_chart(now, t), "memory")
    with right:
        st.markdown(f"### {t('parallel.time_title')}")
        chart(t, figures.step_chart(now, t), "step")
    ranks = [rank for rank in now.ranks if rank.step and rank.waiting]
    slowest = max(ranks, key=lambda rank: rank.step.median if rank.step else 0.0)
    assert slowest.step is not None
    assert slowest.waiting is not None
    assert now.single_step is not None
    ratio = slowest.step.median / now.single_step.median
    sentence = t(
        "parallel.time_slower" if ratio > 1 else "parallel.time_faster",
        ratio=f"{ratio:.1f}",
        waiting=percent(slowest.waiting.median / slowest.step.median),
        memory=percent(max(rank.weights for rank in ranks) / now.single_weights),
    )
    st.markdown(sentence)
    table(t, tables.ranks_table(now, t), "ranks")
