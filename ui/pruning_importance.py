"""The fourth part of the Pruning page: which heads and layers matter, alone and together."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from typing import Final

import streamlit as st

from core.edits.spec import ModelEdit
from core.faults import Fault
from core.lab.prune_records import Importance, Ranking, Together
from core.lab.prune_stored import stored
from core.lab.texts import NAMES
from ui.figures.pruning_importance import (
    importance_map,
    importance_table,
    nats,
    together_chart,
    together_table,
)
from ui.figures.words import whole_percent
from ui.lab import experiment, jobs
from ui.lab_parts import PLAIN, section, table
from ui.marks import mark
from ui.pruning_options import chosen, edit_in_use, here
from ui.pruning_parts import Bench, effect_of, recorded_mark
from ui.widgets import show

NAME: Final = "prune_importance"
MOST_HEADS: Final = 32
"""Heads that are silenced at once here: a link has to hold their names."""


def importance_part(bench: Bench) -> None:
    """The map, the sum that does not hold, and the least important heads silenced."""
    t, engine = bench.t, bench.engine
    section(t, 4, "pruning.importance")
    if engine is None:
        _recorded(bench)
        return

    def turns() -> Generator[Ranking, None, None]:
        from core.lab.importance import ranking  # noqa: PLC0415 - imports torch

        return ranking(engine)

    passes = engine.info.layers * (engine.info.heads + 1)
    experiment(
        t,
        NAME,
        (bench.key,),
        turns,
        lambda found: _measured(bench, found),
        cost=t("pruning.importance_cost", n=passes),
        run=t("pruning.importance_run"),
        before=lambda: _recorded(bench),
    )
    _silence(bench)


def ranking_of(bench: Bench) -> Importance | None:
    """What is known of this model: measured here, or recorded."""
    done = jobs().known((NAME, (bench.key,)))
    if isinstance(done, Ranking):
        return done.importance
    known = stored(bench.name)
    return None if known is None else known.importance


def _measured(bench: Bench, found: Ranking) -> None:
    mark(bench.t, "measured", _how(bench, found.importance), on=found.importance.machine)
    _map(bench, _whole_layers(found.importance), "prune_map")
    if found.heads is not None:
        _together(bench, found.heads, found.layers)
    if not found.importance.done and bench.recorded is not None:
        whole = bench.recorded[1].importance
        with st.expander(bench.t("pruning.importance_recorded"), icon=":material/history:"):
            recorded_mark(bench, whole.machine, _how(bench, whole))
            _map(bench, whole, "prune_map_recorded")


def _whole_layers(found: Importance) -> Importance:
    """Without the layer that is being measured: a map that is drawn anew at every look costs the
    measurement a tenth of its speed."""
    count = int(found.progress * len(found.layers) + 1e-9)
    rest = len(found.layers) - count
    blank = (math.nan,) * len(found.heads[0])
    return replace(
        found,
        layers=found.layers[:count] + (math.nan,) * rest,
        heads=found.heads[:count] + (blank,) * rest,
    )


def _recorded(bench: Bench) -> None:
    found = bench.recorded
    if found is not None:
        known = found[1]
        recorded_mark(bench, known.importance.machine, _how(bench, known.importance))
        _map(bench, known.importance, "prune_map")
        _together(bench, known.heads, known.layers)


def _how(bench: Bench, found: Importance) -> str:
    return bench.t("pruning.importance_how", n=found.tokens, surprise=f"{found.surprise:.2f}")


def _map(bench: Bench, found: Importance, key: str) -> None:
    t = bench.t
    st.plotly_chart(
        importance_map(found, t), key=key, config=PLAIN, alt=t("pruning.importance_alt")
    )
    table(t, importance_table(found, t), key)
    if found.done:
        effects = [found.heads[layer][head] for layer, head in found.ranked_heads]
        little = sum(abs(value) < 0.01 for value in effects) / len(effects)
        layer, head = found.ranked_heads[-1]
        most = found.ranked_layers[-1]
        st.markdown(
            t(
                "pruning.importance_said",
                little=whole_percent(little),
                head=head + 1,
                head_layer=layer + 1,
                nats=f"{found.heads[layer][head]:.2f}",
                layer=most + 1,
                layer_nats=f"{found.layers[most]:.1f}",
            )
        )


def _together(bench: Bench, heads: Together, layers: Together | None) -> None:
    t = bench.t
    st.markdown(f"### {t('pruning.together_title')}")
    st.caption(t("pruning.together_text"))
    shown = [found for found in (heads, layers) if found is not None and found.sums]
    for column, found in zip(st.columns(2, gap="medium"), shown, strict=False):
        with column:
            st.plotly_chart(
                together_chart(found, t),
                key=f"prune_together_{found.kind}",
                config=PLAIN,
                alt=t("pruning.together_alt"),
            )
            table(t, together_table(found, t), f"prune_together_{found.kind}")
    if heads.sums:
        last = heads.sums[-1]
        st.markdown(
            t(
                "pruning.together_said",
                n=last.count,
                single=nats(last.single),
                joint=nats(last.joint),
            )
        )


def _silence(bench: Bench) -> None:
    """The least important heads silenced in an edited model."""
    t, known, engine = bench.t, ranking_of(bench), bench.engine
    if known is None or engine is None or not known.done:
        return
    ranked = known.ranked_heads
    most = min(MOST_HEADS, len(ranked) - 1)
    if most < 1:
        return
    st.markdown(f"### {t('pruning.silence_title')}")
    count = min(here()["heads"], most)
    st.slider(
        t("pruning.silence"),
        0,
        most,
        key=show("prune_silence", count),
        help=t("pruning.silence_help"),
        on_change=chosen("heads", "prune_silence"),
    )
    heads = tuple(sorted(ranked[:count]))
    try:
        edit: ModelEdit = replace(edit_in_use(), heads=heads)
        if count:
            effect_of(bench, "heads", edit, t("pruning.effect_cost", texts=len(NAMES)))
    except Fault as fault:
        st.info(t.fault(fault))
