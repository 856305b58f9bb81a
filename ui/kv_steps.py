"""The first part of the KV cache page: the same text, with the cache and without it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from statistics import median
from typing import Any, Final

import streamlit as st

from core.engine.protocol import Engine
from core.lab.kv_records import ContextPoint, Contexts, KvRun, KvStep
from core.lab.kv_stored import COMMAND, stored
from core.lab.models import local
from core.models.catalog import DEFAULT, title_of
from ui import state
from ui.context import Context
from ui.figures import kv_steps as figures
from ui.figures.words import in_bytes, in_time, tiny
from ui.i18n import Catalog, plain
from ui.kv_options import STEPS, chosen, here
from ui.kv_parts import choice
from ui.lab import experiment
from ui.lab_parts import PLAIN, dataframe, section, table
from ui.marks import mark, restless
from ui.widgets import show

REPEATS: Final = 3
LENGTHS: Final = (16, 64, 128, 256, 512)
"""Of the measurement on the page; the stored one goes on to 1,024."""
LENGTH_REPEATS: Final = 2


def steps_part(t: Catalog, context: Context | None, engine: Engine | None) -> None:
    """With and without the cache, on the reader's prompt, and at the end of longer texts."""
    section(t, 1, "kv_cache.steps")
    if context is None or engine is None:
        recorded_lengths(t, None)
        return
    steps = here()["steps"]
    choice("steps", STEPS, label=t("kv_cache.steps"), help=t("kv_cache.steps_help"))
    prompt = context.generation.prompt
    prompt_ids = tuple(token.id for token in prompt)
    model = local(engine)

    def turns() -> Generator[KvRun, None, None]:
        from core.lab.kv_steps import written_twice  # noqa: PLC0415 - imports torch

        return written_twice(model, prompt_ids, steps, REPEATS)

    experiment(
        t,
        "kv_steps",
        (state.number(engine), prompt_ids, steps),
        turns,
        lambda run: _run(t, context, run),
        cost=_cost(t, len(prompt_ids), steps),
        run=t("kv_cache.steps_run"),
    )
    st.markdown(f"### {t('kv_cache.lengths_title')}")
    _lengths(t, engine)


def _cost(t: Catalog, prompt: int, steps: int) -> str:
    """The passes that will be made, and the positions that go through the model in them."""
    whole = sum(prompt + step for step in range(steps))
    positions = REPEATS * (prompt + steps - 1 + whole) + 2 * prompt
    passes = 2 * (steps * REPEATS + 1)
    return t("kv_cache.steps_cost", steps=steps, passes=passes, positions=f"{positions:,}")


def _run(t: Catalog, context: Context, run: KvRun) -> None:
    if not run.steps:
        return
    label = context.vocabulary.label
    mark(t, "measured", t("kv_cache.steps_how", repeats=REPEATS), on=run.machine)
    _restless(t, run.steps)
    _headline(t, run)
    text = context.vocabulary.text(run.ids)[-300:].replace("\n", " ↵ ")
    st.markdown(t("kv_cache.same" if run.equal else "kv_cache.not_same", text=plain(text)))
    figure = figures.steps_chart(run, label, t)
    st.plotly_chart(figure, key="kv_steps_chart", config=PLAIN, alt=t("kv_cache.steps_alt"))
    table(t, figures.steps_table(run, label, t), "kv_steps")
    left, right = st.columns(2, gap="medium")
    with left:
        _phases(t, run)
    with right:
        _scores(t, run, label)


def _restless(t: Catalog, timed: Sequence[KvStep | ContextPoint]) -> None:
    restless(t, [spread for one in timed for spread in (one.cached_ms, one.whole_ms)])


def _headline(t: Catalog, run: KvRun) -> None:
    """Of the steps behind the prompt; of the prompt itself where there is no other."""
    steps = run.decode or run.steps
    cached = median(step.cached_ms.median for step in steps)
    whole = median(step.whole_ms.median for step in steps)
    one, two, three, four = st.columns(4)
    help = t("kv_cache.metric_help")
    one.metric(t("kv_cache.way_cached"), in_time(cached), help=help)
    two.metric(t("kv_cache.way_whole"), in_time(whole), help=help)
    three.metric(t("kv_cache.col_ratio"), f"× {whole / cached:.1f}")
    four.metric(t("kv_cache.difference"), tiny(run.difference), help=t("kv_cache.difference_help"))


def _phases(t: Catalog, run: KvRun) -> None:
    st.markdown(f"### {t('kv_cache.phases_title')}")
    mark(t, "measured", t("kv_cache.phases_how"), on=run.machine)
    dataframe(figures.phases_table(run, t), "kv_phases")
    first = run.steps[0]
    st.caption(
        t(
            "kv_cache.phases_text",
            n=first.cached.positions,
            size=in_bytes(first.cached.weight_bytes),
        )
    )


def _scores(t: Catalog, run: KvRun, label: figures.Label) -> None:
    st.markdown(f"### {t('kv_cache.scores_title')}")
    asked = here()["at"]
    at = asked if 0 <= asked < len(run.steps) else len(run.steps) - 1
    if len(run.steps) > 1:
        st.select_slider(
            t("kv_cache.scores_step"),
            list(range(len(run.steps))),
            key=show("kv_at", at),
            format_func=lambda i: _step_name(run, i, label),
            on_change=chosen("at", "kv_at"),
        )
    step = run.steps[at]
    how = t("kv_cache.scores_how", d=tiny(step.difference))
    mark(t, "measured", how, on=run.machine)
    dataframe(figures.scores_table(step, label, t), "kv_scores")
    st.caption(t("kv_cache.scores_text" if at else "kv_cache.scores_first"))


def _step_name(run: KvRun, index: Any, label: figures.Label) -> str:
    known = isinstance(index, int) and 0 <= index < len(run.steps)
    return f"{index + 1} · {label(run.steps[index].chosen)}" if known else str(index)


# ---------------------------------------------------------------- longer texts


def _lengths(t: Catalog, engine: Engine) -> None:
    model = local(engine)
    fitting = [n for n in LENGTHS if n <= engine.info.context]

    def turns() -> Generator[Contexts, None, None]:
        from core.lab.kv_contexts import at_lengths  # noqa: PLC0415 - imports torch

        return at_lengths(model, fitting, LENGTH_REPEATS)

    experiment(
        t,
        "kv_lengths",
        (state.number(engine), tuple(fitting)),
        turns,
        lambda found: _measured_lengths(t, found),
        cost=t("kv_cache.lengths_cost", most=f"{fitting[-1]:,}"),
        run=t("kv_cache.lengths_run"),
        before=lambda: recorded_lengths(t, engine),
    )


def _measured_lengths(t: Catalog, found: Contexts) -> None:
    if found.points:
        how = t("kv_cache.lengths_how", repeats=LENGTH_REPEATS)
        mark(t, "measured", how, on=found.machine)
        _restless(t, found.points)
        _lengths_chart(t, found)


def recorded_lengths(t: Catalog, engine: Engine | None) -> None:
    """What was measured of this model when the program was made, or of the default one."""
    known = stored()
    name = engine.info.name if engine is not None and engine.info.name in known else DEFAULT
    if name not in known:
        return
    found = known[name][0]
    note = t("kv_cache.lengths_recorded", model=plain(title_of(name)), command=COMMAND)
    mark(t, "recorded", note, on=found.machine)
    _lengths_chart(t, found)


def _lengths_chart(t: Catalog, found: Contexts) -> None:
    figure = figures.lengths_chart(found, t)
    st.plotly_chart(figure, key="kv_lengths_chart", config=PLAIN, alt=t("kv_cache.lengths_alt"))
    table(t, figures.lengths_table(found, t), "kv_lengths")
