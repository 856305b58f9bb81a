"""The second part of the Pruning page: neurons, layers and groups of heads taken out."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import streamlit as st

from core.lab.prune_records import Removals
from ui.figures.pruning_importance import nats
from ui.figures.pruning_removal import removals_chart, removals_table
from ui.figures.words import in_bytes
from ui.lab import experiment
from ui.lab_parts import PLAIN, section, table
from ui.marks import mark, restless
from ui.pruning_importance import ranking_of
from ui.pruning_options import MOST_NEURONS, chosen, edit_in_use, here, removed_here, with_removed
from ui.pruning_parts import Bench, effect_of, recorded_mark
from ui.widgets import show


def removal_part(bench: Bench) -> None:
    """What to take out, what it does, and several ways side by side."""
    t, engine = bench.t, bench.engine
    section(t, 2, "pruning.removal")
    if engine is None:
        _recorded(bench)
        return
    _pickers(bench, engine.info)
    _size(bench, engine.info)
    edit = with_removed(edit_in_use(), removed_here(engine.info))
    effect_of(bench, "removal", edit, t("pruning.removal_cost"))
    st.markdown(f"### {t('pruning.ladder_title')}")
    _ladder(bench)


def _pickers(bench: Bench, info: Any) -> None:
    t, values = bench.t, here()
    one, two, three = st.columns(3, gap="medium")
    with one:
        st.slider(
            t("pruning.neurons"),
            0,
            MOST_NEURONS,
            step=5,
            format="%d %%",
            key=show("prune_neurons", 5 * round(values["neurons"] / 5)),
            help=t("pruning.neurons_help"),
            on_change=chosen("neurons", "prune_neurons"),
        )
    known = ranking_of(bench)
    layers = [layer for layer in values["layers"] if layer < info.layers]
    with two:
        st.multiselect(
            t("pruning.layers"),
            range(info.layers),
            key=show("prune_layers", layers),
            format_func=lambda n: _layer(known, n),
            help=t("pruning.layers_help"),
            placeholder=t("pruning.layers_none"),
            on_change=chosen("layers", "prune_layers", tuple),
        )
    with three:
        if info.kv_heads > 1:
            st.slider(
                t("pruning.groups"),
                0,
                info.kv_heads - 1,
                key=show("prune_groups", min(values["groups"], info.kv_heads - 1)),
                help=t("pruning.groups_help", n=info.heads // info.kv_heads),
                on_change=chosen("groups", "prune_groups"),
            )
        else:
            st.caption(t("fault.edit_one_group"))


def _layer(known: Any, number: object) -> str:
    """“12 (+0.34)”: with what it is worth, where that is known."""
    if not isinstance(number, int):
        return str(number)
    if known is None or number >= len(known.layers):
        return str(number + 1)
    return f"{number + 1} ({nats(round(known.layers[number], 2))})"


def _size(bench: Bench, info: Any) -> None:
    """What the model will hold, from its shapes, before anything is done."""
    t, removed = bench.t, removed_here(info)
    if not removed:
        return
    left = info.layers - len(removed.layers)
    neurons = info.intermediate - int(removed.neurons * info.intermediate + 1e-9)
    groups = info.kv_heads - removed.groups
    mark(
        t,
        "computed",
        t(
            "pruning.shape",
            layers=f"{info.layers} → {left}",
            neurons=f"{info.intermediate:,} → {neurons:,}",
            heads=f"{info.heads} → {info.heads // info.kv_heads * groups}",
            groups=f"{info.kv_heads} → {groups}",
        ),
    )


# ---------------------------------------------------------------- side by side


def _ladder(bench: Bench) -> None:
    t, engine = bench.t, bench.engine
    known = ranking_of(bench)
    order = (
        None if known is None else sorted(range(len(known.layers)), key=known.layers.__getitem__)
    )
    ids = bench.ids[-256:] or (0,)

    def turns() -> Generator[Removals, None, None]:
        from core.lab.prune import ladder, removals  # noqa: PLC0415 - imports torch

        assert engine is not None
        # Where nothing is known yet, the layers in the middle go first.
        middle = sorted(range(engine.info.layers), key=lambda n: abs(n - engine.info.layers / 2))
        return removals(engine, ladder(engine.info, order or middle), ids)

    experiment(
        t,
        "prune_ladder",
        (bench.key, tuple(order or ()), ids),
        turns,
        lambda found: _drawn(bench, found),
        cost=t("pruning.ladder_cost"),
        run=t("pruning.ladder_run"),
        before=lambda: _recorded(bench),
    )


def _drawn(bench: Bench, found: Removals) -> None:
    if found.rows:
        mark(bench.t, "measured", bench.t("pruning.ladder_how"), on=found.machine)
        restless(bench.t, [s for r in found.rows for s in (r.times.original, r.times.edited)])
        _chart(bench, found)


def _recorded(bench: Bench) -> None:
    found = bench.recorded
    if found is not None:
        recorded_mark(bench, found[1].removals.machine, bench.t("pruning.ladder_how"))
        _chart(bench, found[1].removals)


def _chart(bench: Bench, found: Removals) -> None:
    t = bench.t
    st.plotly_chart(
        removals_chart(found, t),
        key="prune_ladder_chart",
        config=PLAIN,
        alt=t("pruning.ladder_alt"),
    )
    st.caption(t("pruning.ladder_of", memory=in_bytes(found.original.nbytes)))
    table(t, removals_table(found, t), "prune_ladder")
