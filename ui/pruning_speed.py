"""The third part of the Pruning page: whether zeros save time and memory."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import streamlit as st

from core.lab.prune_records import Crossings
from ui.figures.pruning import crossing_chart, crossing_table, least_memory
from ui.figures.words import whole_percent
from ui.i18n import plain
from ui.lab import experiment
from ui.lab_parts import PLAIN, section, table
from ui.marks import mark, restless
from ui.pruning_parts import Bench, recorded_mark


def speed_part(bench: Bench) -> None:
    """One real matrix, dense and as a list of what is not zero."""
    t, engine = bench.t, bench.engine
    section(t, 3, "pruning.speed")
    if engine is None:
        _recorded(bench)
    else:

        def turns() -> Generator[Crossings, None, None]:
            from core.lab.sparse import crossings  # noqa: PLC0415 - imports torch

            return crossings(engine)

        def drawn(found: Crossings) -> None:
            if found.points:
                mark(t, "measured", _how(bench, found), on=found.machine)
                restless(t, [s for p in found.points for s in (p.dense, p.sparse)])
                _chart(bench, found)

        experiment(
            t,
            "prune_crossings",
            (bench.key,),
            turns,
            drawn,
            cost=t("pruning.speed_cost"),
            run=t("pruning.speed_run"),
            before=lambda: _recorded(bench),
        )
    on_gpu = engine is not None and engine.info.device != "cpu"
    st.markdown(t("pruning.fours_gpu" if on_gpu else "pruning.fours_cpu"))
    mark(t, "published", t("pruning.fours_source"))


def _recorded(bench: Bench) -> None:
    found = bench.recorded
    if found is not None:
        recorded_mark(bench, found[1].crossings.machine, _how(bench, found[1].crossings))
        _chart(bench, found[1].crossings)


def _how(bench: Bench, found: Crossings) -> str:
    repeats = found.points[0].dense.repeats if found.points else 0
    return bench.t(
        "pruning.speed_how", name=plain(found.name), rows=f"{found.rows:,}",
        columns=f"{found.columns:,}",
        n=repeats,
    )  # fmt: skip


def _chart(bench: Bench, found: Crossings) -> None:
    t = bench.t
    st.plotly_chart(
        crossing_chart(found, t),
        key="prune_crossing_chart",
        config=PLAIN,
        alt=t("pruning.speed_alt"),
    )
    if found.done:
        st.markdown(t("generate.sentence_join").join(_sentences(t, found)))
    table(t, crossing_table(found, t), "prune_crossing")


def _sentences(t: Any, found: Crossings) -> list[str]:
    said = []
    for count in sorted({point.tokens for point in found.points}):
        least = found.crossover(count)
        many = "one" if count == 1 else "many"
        values = {} if count == 1 else {"n": count}
        if least is None:
            said.append(t(f"pruning.never_{many}", **values))
        else:
            said.append(t(f"pruning.crossover_{many}", zeros=whole_percent(least), **values))
    said.append(t("pruning.memory_crossover", zeros=whole_percent(least_memory(found))))
    return said
