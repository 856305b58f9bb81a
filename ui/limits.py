"""The Limits page: what this machine can do, where each operation stands, and the planner."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import streamlit as st

from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.roofline import Roof
from core.lab.roofline_ops import Case, complete, counts_of, step_limit, waiting_share
from core.lab.roofline_run import Known, Measured, known, known_before, measure
from core.lab.roofline_steps import Steps, dtype_of, value_bytes
from ui import state
from ui.context import Context
from ui.figures.limits import Placed, operations_table, roofline_chart
from ui.figures.limits_plan import milliseconds, share
from ui.figures.limits_steps import Timed, batches_chart, parts_chart, steps_table, timed
from ui.figures.words import in_bytes, unbroken
from ui.i18n import Catalog
from ui.lab import experiment
from ui.lab_options import chosen, here
from ui.lab_parts import PLAIN, section, table, weights
from ui.limits_plan import planner, warn_if_disturbed
from ui.limits_table import TABLE
from ui.marks import mark
from ui.widgets import NO_VALUE, show

SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONTEXTS: Final = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
WIDE: Final = 230
"""Pixels of a figure."""
SECONDS: Final = 8
"""About how long the measurement takes for the default model on two cores."""


def draw(t: Catalog, context: Context | None) -> None:
    """The page; the planner alone needs no run."""
    engine = weights(context)
    section(t, 1, "limits.roof")
    found = known(engine.info.name if engine else None, dtype_of(engine.info) if engine else "fp32")
    _measure(t, engine, found)
    if engine is not None:
        _under_the_roof(t, engine, found)
        _beside_the_limit(t, engine, found)
    elif context is not None:
        st.info(t.fault(Fault("model_loading" if context.recorded else "lab_needs_weights")))
    section(t, 2 if engine is None else 4, "limits.plan")
    planner(t, engine, found)


# ---------------------------------------------------------------- 1: the machine


def _measure(t: Catalog, engine: Engine | None, found: Known) -> None:
    def turns() -> Generator[Measured, None, None]:
        return measure(engine)

    def before() -> None:
        _roof(t, found.roof, here=found.here)

    def answer(now: Measured) -> None:
        _roof(t, now.roof or found.roof, here=now.roof is not None or found.here)
        if now.instead_of is not None and now.roof is not None:
            _kept(t, now.roof, now.instead_of)

    key = ("limits", state.number(engine) if engine else None)
    cost = t("limits.cost" if engine else "limits.cost_roof", seconds=SECONDS)
    label = t("limits.measure_again" if found.here else "limits.measure")
    experiment(t, "limits", key, turns, answer, cost=cost, run=label, before=before)


def _roof(t: Catalog, roof: Roof, *, here: bool) -> None:
    how = t("limits.roof_how", repeats=roof.repeats, bytes=in_bytes(roof.read_bytes))
    mark(t, "measured" if here else "recorded", how, on=roof.machine)
    with st.container(horizontal=True, gap="medium"):
        st.metric(t("limits.bandwidth"), f"{roof.bandwidth:,.1f} GB/s", width=WIDE)
        for kind in ("fp32", "bf16"):
            rate = f"{roof.rate(kind):,.0f} GFLOP/s"
            st.metric(t("limits.products", dtype=kind), rate, width=WIDE)
    if here:
        warn_if_disturbed(t, roof)
    st.markdown(
        t("limits.ridge", fp32=f"{roof.ridge('fp32'):.1f}", bf16=f"{roof.ridge('bf16'):.1f}")
    )


def _kept(t: Catalog, stands: Roof, new: Roof) -> None:
    """Why the measurement that was just made does not replace the earlier one."""
    said = t(
        "limits.kept",
        date=unbroken(stands.machine.date),
        times=f"{new.unrest:.1f}",
        new=f"{new.bandwidth:,.1f} GB/s",
        old=f"{stands.bandwidth:,.1f} GB/s",
    )
    st.caption(f":material/warning: {said}")


# ---------------------------------------------------------------- 2: the roofline


def _under_the_roof(t: Catalog, engine: Engine, found: Known) -> None:
    section(t, 2, "limits.operations")
    values, dtype = here("limits", TABLE), dtype_of(engine.info)
    contexts = [n for n in CONTEXTS if n < engine.info.context] or [engine.info.context]
    batch = min(SIZES, key=lambda n: abs(n - values["texts"]))
    context = min(contexts, key=lambda n: abs(n - values["context"]))
    left, right = st.columns(2, gap="medium")
    with left:
        _slider(t, "texts", list(SIZES), batch)
    with right:
        _slider(t, "context", contexts, context)
    passes = [
        _placed(engine, Case("decode", batch, context), found),
        _placed(engine, Case("prefill", batch, context), found),
    ]
    if not complete(passes[0].counts, engine.info, passes[0].case):
        st.info(t.fault(Fault("passes_not_counted")))
        return
    mark(t, "computed", t("limits.operations_how"))
    if found.steps is not None and any(each.measured for each in passes):
        how, on = t("limits.filled_how"), found.steps.machine
        mark(t, "measured" if found.here else "recorded", how, on=on)
    st.plotly_chart(
        roofline_chart(found.roof, passes, dtype, t),
        key="limits_roofline",
        config=PLAIN,
        alt=t("limits.roofline_alt"),
    )
    said = {"batch": batch, "context": f"{context:,}"}
    for each in passes:
        phase = each.case.phase
        said[phase] = milliseconds(step_limit(each.counts, found.roof, dtype) / 1000)
        said[f"{phase}_waits"] = share(waiting_share(each.counts, found.roof, dtype))
    st.markdown(t("limits.roofline_sentence", **said))
    if found.steps is not None and not any(each.measured for each in passes):
        st.caption(_where_measured(found.steps, t))
    for each in passes:
        name = t(f"limits.{each.case.phase}")
        with st.expander(f"{t('lab.as_table')} · {name}", icon=":material/table:"):
            frame = operations_table(each, found.roof, dtype, t)
            number = st.column_config.NumberColumn(format="%.4g")
            config = {str(column): number for column in frame.columns[1:]}
            st.dataframe(
                frame,
                hide_index=True,
                placeholder=NO_VALUE,
                column_config=config,
                key=f"limits_{each.case.phase}",
            )


def _where_measured(steps: Steps, t: Catalog) -> str:
    """Where filled marks stand."""
    batches = [time.case.batch for time in steps.times if time.case.phase == "decode"]
    tokens = steps.times[0].case.tokens
    return t("limits.filled_where", batches=", ".join(map(str, batches)), context=tokens)


def _slider(t: Catalog, name: str, values: list[int], value: int) -> None:
    key = show(f"w_limits_{name}", value)
    st.select_slider(
        t(f"limits.{name}"),
        values,
        key=key,
        format_func=lambda n: f"{n:,}",
        help=t(f"limits.{name}_help"),
        on_change=chosen("limits", TABLE, name, key),
    )


def _placed(engine: Engine, case: Case, found: Known) -> Placed:
    counts = counts_of(engine, case, value_bytes(engine.info))
    steps = found.steps
    time = steps.of(case.phase, case.batch) if steps else None
    fits = time is not None and time.case.tokens == case.tokens
    return Placed(case, counts, time if fits else None)


# ---------------------------------------------------------------- 3: measured beside the limit


def _beside_the_limit(t: Catalog, engine: Engine, found: Known) -> None:
    section(t, 3, "limits.steps")
    steps, dtype = found.steps, dtype_of(engine.info)
    if steps is None:
        st.info(t("limits.steps_missing"))
        # The machine may have been measured with another model.
        found = known_before(engine.info.name, dtype)
        steps = found.steps
        if steps is None:
            return
    every = [
        timed(time, counts_of(engine, time.case, value_bytes(engine.info)), found.roof, dtype)
        for time in steps.times
    ]
    decode = [each for each in every if each.time.case.phase == "decode"]
    if not decode or not complete(decode[0].counts, engine.info, decode[0].time.case):
        st.info(t.fault(Fault("passes_not_counted")))
        return
    mark(t, "measured" if found.here else "recorded", t("limits.steps_how"), on=steps.machine)
    first = decode[0]
    st.markdown(
        t(
            "limits.steps_sentence",
            measured=milliseconds(first.time.time.median / 1000),
            limit=milliseconds(first.limit / 1000),
            share=share(first.share),
            ratio=f"{1 / first.share:.1f}",
        )
    )
    left, right = st.columns(2, gap="medium")
    with left:
        st.plotly_chart(
            batches_chart(every, t),
            key="limits_batches",
            config=PLAIN,
            alt=t("limits.batches_alt"),
        )
        st.caption(_gain(decode, t))
    with right:
        _parts(t, decode)
    table(t, steps_table(every, t), "limits_steps")


def _gain(decode: list[Timed], t: Catalog) -> str:
    first, last = decode[0].time, decode[-1].time
    return t(
        "limits.batch_gain",
        batch=last.case.batch,
        texts=f"{last.tokens_per_second / first.tokens_per_second:.1f}",
        time=f"{last.time.median / first.time.median:.1f}",
    )


def _parts(t: Catalog, decode: list[Timed]) -> None:
    wanted = here("limits", TABLE)["texts"]
    near = min(decode, key=lambda each: abs(each.time.case.batch - wanted))
    st.plotly_chart(
        parts_chart(near, t), key="limits_parts", config=PLAIN, alt=t("limits.parts_alt")
    )
    st.caption(t("limits.parts_text", batch=near.time.case.batch))
