"""The first part of the Pruning page: weights set to zero, chosen in four ways."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import streamlit as st

from core.edits.masks import METHODS
from core.edits.spec import Zeros
from core.engine.protocol import Engine
from core.lab.prune_records import Cut, Sweep
from core.lab.texts import NAMES
from ui import state
from ui.figures.pruning import cut_chart, cut_table, sweep_chart, sweep_table
from ui.figures.words import percent, whole_percent
from ui.i18n import Catalog, plain
from ui.lab import experiment
from ui.lab_parts import PLAIN, section, table
from ui.marks import mark
from ui.pruning_options import (
    MOST_ZEROS,
    chosen,
    edit_in_use,
    here,
    with_zeros,
    zeros_here,
)
from ui.pruning_parts import Bench, effect_of, recorded_mark
from ui.widgets import picked, show

ORDER = ("wanda", "magnitude_row", "magnitude", "random")


def zeros_part(bench: Bench) -> None:
    """The cost of zeros as curves, the setting of this reader, and what it does."""
    t = bench.t
    section(t, 1, "pruning.zeros")
    _pickers(t)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _sweep(bench)
    with right:
        _cut(bench)
    st.markdown(f"### {t('pruning.edit_title')}")
    effect_of(
        bench,
        "zeros",
        with_zeros(edit_in_use(), zeros_here()),
        t("pruning.effect_cost", texts=len(NAMES)),
    )


def _pickers(t: Catalog) -> None:
    values = here()
    st.pills(
        t("pruning.method"),
        ORDER,
        key=show("prune_method", values["method"]),
        format_func=lambda name: t(f"pruning.short_{name}") if name in METHODS else str(name),
        required=True,
        on_change=chosen("method", "prune_method"),
    )
    st.caption(t(f"pruning.about_{values['method']}"))
    fours = values["pattern"] == "2of4"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.slider(
            t("pruning.zeros"),
            0,
            MOST_ZEROS,
            step=5,
            format="%d %%",
            key=show("prune_zeros_share", 50 if fours else _fives(values["zeros"])),
            disabled=fours,
            on_change=chosen("zeros", "prune_zeros_share"),
        )
        st.toggle(
            t("pruning.two_of_four"),
            key=show("prune_fours", fours),
            help=t("pruning.two_of_four_help"),
            on_change=chosen("pattern", "prune_fours", lambda on: "2of4" if on else "share"),
        )


def _fives(share: int) -> int:
    return 5 * round(share / 5)


# ---------------------------------------------------------------- the curves


def _sweep(bench: Bench) -> None:
    t, engine = bench.t, bench.engine
    st.markdown(f"### {t('pruning.sweep_title')}")
    if engine is None:
        _recorded(bench)
        return

    def turns() -> Generator[Sweep, None, None]:
        from core.lab.prune import sweep  # noqa: PLC0415 - imports torch

        return sweep(engine)

    def drawn(found: Sweep) -> None:
        if found.points:
            mark(t, "measured", t("pruning.sweep_how"), on=found.machine)
            _chart(bench, found)

    experiment(
        t,
        "prune_sweep",
        (bench.key,),
        turns,
        drawn,
        cost=t("pruning.sweep_cost"),
        run=t("pruning.sweep_run"),
        before=lambda: _recorded(bench),
    )


def _recorded(bench: Bench) -> None:
    found = bench.recorded
    if found is not None:
        recorded_mark(bench, found[1].sweep.machine, bench.t("pruning.sweep_how"))
        _chart(bench, found[1].sweep)


def _chart(bench: Bench, found: Sweep) -> None:
    t, zeros = bench.t, zeros_here()
    figure = sweep_chart(found, zeros, t)
    st.plotly_chart(figure, key="prune_sweep_chart", config=PLAIN, alt=t("pruning.sweep_alt"))
    said = _sentence(t, found, zeros)
    if said:
        st.markdown(said)
    table(t, sweep_table(found, t), "prune_sweep")


def _sentence(t: Catalog, found: Sweep, zeros: Zeros) -> str:
    """What the curves say at the share that is set: by use against by size."""
    wanda = found.at(Zeros(zeros.share, "wanda", zeros.two_of_four))
    size = found.at(Zeros(zeros.share, "magnitude", zeros.two_of_four))
    if wanda is None or size is None:
        return ""
    from ui.figures.pruning_words import number  # noqa: PLC0415 - drawn here only

    return t(
        "pruning.sweep_said",
        zeros="2:4" if zeros.two_of_four else whole_percent(zeros.share),
        wanda=number(wanda.judged.perplexity),
        size=number(size.judged.perplexity),
        original=number(found.perplexity),
    )


# ---------------------------------------------------------------- one matrix


def _cut(bench: Bench) -> None:
    t, engine = bench.t, bench.engine
    st.markdown(f"### {t('pruning.cut_title')}")
    if engine is None:
        st.caption(t("pruning.cut_waits"))
        return
    name = _matrix(t, engine)
    if name is None:
        return
    zeros = zeros_here()

    def turns() -> Generator[Cut, None, None]:
        from core.lab.prune_cut import cut  # noqa: PLC0415 - imports torch

        return cut(engine, name, zeros)

    def drawn(found: Cut) -> None:
        mark(t, "computed", t("pruning.cut_how", name=plain(found.name), rows=f"{found.rows:,}",
                              columns=f"{found.columns:,}"))  # fmt: skip
        st.plotly_chart(
            cut_chart(found, t), key="prune_cut_chart", config=PLAIN, alt=t("pruning.cut_alt")
        )
        st.markdown(_cut_sentence(t, found))
        table(t, cut_table(found, t), "prune_cut")

    key = (bench.key, name, zeros)
    experiment(t, "prune_cut", key, turns, drawn, cost=t("pruning.cut_cost"), auto=True)


def _cut_sentence(t: Catalog, found: Cut) -> str:
    gone = int(found.dropped.sum())
    share = percent(gone / (found.rows * found.columns))
    if not gone:
        return t("pruning.cut_none")
    if found.limit is not None:
        return t("pruning.cut_limit", n=f"{gone:,}", share=share, limit=f"{found.limit:.3g}")
    return t(
        "pruning.cut_mixed",
        n=f"{gone:,}",
        share=share,
        dropped=f"{found.largest_dropped:.3g}",
        kept=f"{found.smallest_kept:.3g}",
    )


def _matrix(t: Catalog, engine: Any) -> str | None:
    """The matrix that is looked at: a layer, shared with the other pages, and its name there."""
    names = _names(engine)
    layers = engine.info.layers
    asked = state.place().view.layer
    layer = asked if 0 <= asked < layers else layers // 2
    inside = {name.split(f".{layer}.", 1)[1]: name for name in names if f".{layer}." in name}
    if not inside:
        return None
    kinds = list(inside)
    kind = here()["matrix"]
    kind = kind if kind in inside else kinds[-1]
    with st.container(horizontal=True, gap="small"):
        st.selectbox(
            t("pruning.layer"),
            range(layers),
            key=show("prune_layer", layer),
            format_func=lambda n: str(n + 1) if isinstance(n, int) else str(n),
            on_change=lambda: state.look(layer=picked("prune_layer", range(layers), layer)),
            width=110,
        )
        st.selectbox(
            t("pruning.matrix"),
            kinds,
            key=show("prune_matrix", kind),
            on_change=chosen("matrix", "prune_matrix"),
            width=230,
        )
    return inside[kind]


def _names(engine: Engine) -> tuple[str, ...]:
    from core.lab.prune_cut import names_of  # noqa: PLC0415 - imports torch

    return names_of(engine)  # type: ignore[arg-type]
