"""The fourth part of the KV cache page: smaller caches, what they save and what they cost."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import streamlit as st

from core.engine.protocol import Engine
from core.lab.kv_records import KEY_SPANS, TrickResult, Tricks
from core.lab.kv_stored import COMMAND, stored
from core.lab.models import local
from core.models.catalog import DEFAULT, title_of
from ui import state
from ui.context import Context
from ui.figures.kv_tricks import trick_name, tricks_chart, tricks_table
from ui.figures.words import in_bytes, percent
from ui.i18n import Catalog, plain
from ui.kv_options import BITS, FULL, SINKS, WINDOWS, here, trick_here
from ui.kv_parts import choice
from ui.lab import experiment
from ui.lab_parts import PLAIN, section, table
from ui.marks import mark

PREFIX: Final = 256
"""Tokens of the cached beginning, where the model reads that many."""


def tricks_part(t: Catalog, context: Context | None, engine: Engine | None) -> None:
    """Switches for one smaller cache, and the usual ones side by side."""
    section(t, 4, "kv_cache.tricks")
    if engine is None:
        recorded_tricks(t, None)
        return
    _switches(t)
    _mine(t, engine)
    st.markdown(f"### {t('kv_cache.ladder_title')}")
    _ladder(t, engine)


def _switches(t: Catalog) -> None:
    values = here()
    left, right = st.columns(2, gap="medium")
    with left:
        choice(
            "bits",
            BITS,
            label=t("kv_cache.bits"),
            help=t("kv_cache.bits_help"),
            say=lambda v: t("kv_cache.bits_full") if v == FULL else t("kv_cache.bits_n", n=v),
        )
        if values["bits"] != FULL:
            choice(
                "keys",
                KEY_SPANS,
                label=t("kv_cache.keys_span"),
                help=t("kv_cache.keys_span_help"),
                say=lambda v: t(f"kv_cache.span_{v}"),
            )
    with right:
        choice(
            "window",
            WINDOWS,
            label=t("kv_cache.window"),
            help=t("kv_cache.window_help"),
            say=lambda v: t("kv_cache.window_n", n=v) if v else t("kv_cache.window_off"),
        )
        if values["window"]:
            choice(
                "sinks",
                SINKS,
                label=t("kv_cache.sinks"),
                help=t("kv_cache.sinks_help"),
            )


def _mine(t: Catalog, engine: Engine) -> None:
    trick, model = trick_here(), local(engine)

    def turns() -> Generator[Tricks, None, None]:
        from core.lab.kv_tricks import tried  # noqa: PLC0415 - imports torch

        return tried(model, (trick,), prefix=_prefix(engine))

    experiment(
        t,
        "kv_trick",
        (state.number(engine), trick),
        turns,
        lambda found: _one(t, found),
        cost=t("kv_cache.trick_cost"),
        run=t("kv_cache.trick_run", name=trick_name(trick, t)),
    )


def _prefix(engine: Engine) -> int:
    return min(PREFIX, engine.info.context // 2)


def _one(t: Catalog, found: Tricks) -> None:
    if not found.results:
        return
    result = found.results[0]
    mark(t, "measured", _how(t, found), on=found.machine)
    one, two, three = st.columns(3)
    one.metric(
        t("kv_cache.metric_bytes"),
        in_bytes(result.nbytes),
        help=t("kv_cache.metric_bytes_help", full=f"{result.full_bytes:,}"),
    )
    two.metric(t("kv_cache.metric_kl"), f"{result.kl:.4f}", help=t("kv_cache.metric_kl_help"))
    three.metric(t("kv_cache.metric_top1"), percent(result.top1))
    st.markdown(_sentence(t, result))


def _sentence(t: Catalog, result: TrickResult) -> str:
    saved = t(
        "kv_cache.trick_saved",
        name=trick_name(result.trick, t),
        saved=percent(result.saved),
        bytes=f"{result.nbytes:,}",
        full=f"{result.full_bytes:,}",
    )
    if result.trick.bits is None:
        return saved
    errors = t(
        "kv_cache.trick_errors",
        keys=percent(result.key_error),
        values=percent(result.value_error),
    )
    return t("generate.sentence_join").join((saved, errors))


def _ladder(t: Catalog, engine: Engine) -> None:
    model = local(engine)

    def turns() -> Generator[Tricks, None, None]:
        from core.lab.kv_tricks import LADDER, tried  # noqa: PLC0415 - imports torch

        return tried(model, LADDER, prefix=_prefix(engine))

    experiment(
        t,
        "kv_tricks",
        (state.number(engine),),
        turns,
        lambda found: _measured(t, found),
        cost=t("kv_cache.ladder_cost"),
        run=t("kv_cache.ladder_run"),
        before=lambda: recorded_tricks(t, engine),
    )
    st.caption(t("kv_cache.ladder_text"))


def _how(t: Catalog, found: Tricks) -> str:
    return t("kv_cache.tricks_how", prefix=found.prefix, n=found.positions)


def _measured(t: Catalog, found: Tricks) -> None:
    if found.results:
        mark(t, "measured", _how(t, found), on=found.machine)
        _chart(t, found)


def recorded_tricks(t: Catalog, engine: Engine | None) -> None:
    """What was measured of this model when the program was made, or of the default one."""
    known = stored()
    name = engine.info.name if engine is not None and engine.info.name in known else DEFAULT
    if name not in known:
        return
    contexts, found = known[name]
    whose = t("kv_cache.lengths_recorded", model=plain(title_of(name)), command=COMMAND)
    mark(t, "recorded", f"{whose} · {_how(t, found)}", on=contexts.machine)
    _chart(t, found)


def _chart(t: Catalog, found: Tricks) -> None:
    figure = tricks_chart(found.results, t)
    st.plotly_chart(figure, key="kv_tricks_chart", config=PLAIN, alt=t("kv_cache.tricks_alt"))
    table(t, tricks_table(found.results, t), "kv_tricks")
