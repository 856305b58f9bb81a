"""The last part of the KV cache page: a second prompt that begins like the first."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import streamlit as st

from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.kv_records import Reuse
from core.lab.models import local
from ui import state
from ui.context import Context
from ui.controls import guess_chinese
from ui.figures.words import in_bytes, in_time, tiny
from ui.i18n import Catalog, catalog
from ui.kv_options import HERE, SECOND_CAP, chosen, here
from ui.kv_parts import choice
from ui.lab import experiment
from ui.lab_parts import section
from ui.marks import mark, restless
from ui.widgets import show_text

LONG: Final = 256
"""Tokens of the beginning that both prompts can be given."""


def reuse_part(t: Catalog, context: Context | None, engine: Engine | None) -> None:
    """Positions and time saved where a beginning was read before."""
    if context is None or engine is None:
        return
    section(t, 5, "kv_cache.reuse")
    values = here()
    typed = values["second"] or _example(context)
    show_text("kv_second", typed)
    left, right = st.columns(2, gap="medium")
    with left:
        st.text_input(
            t("kv_cache.second"),
            key="kv_second",
            max_chars=SECOND_CAP,
            help=t("kv_cache.second_help"),
            on_change=chosen("second", "kv_second"),
        )
    with right:
        choice(
            "before",
            HERE,
            label=t("kv_cache.before"),
            help=t("kv_cache.before_help"),
            say=lambda v: t(f"kv_cache.before_{v}", n=LONG),
        )
    first, second = _both(context, engine, typed, values["before"] == "long")
    model = local(engine)

    def turns() -> Generator[Reuse, None, None]:
        from core.lab.kv_reuse import reused  # noqa: PLC0415 - imports torch

        return reused(model, first, second)

    experiment(
        t,
        "kv_reuse",
        (state.number(engine), first, second),
        turns,
        lambda found: _reused(t, found),
        cost=t("kv_cache.reuse_cost", n=f"{len(second):,}"),
        run=t("kv_cache.reuse_run"),
    )


def _example(context: Context) -> str:
    """The reader's own prompt, and a word more."""
    # In the language of the prompt, not of the page.
    words = catalog("zh" if guess_chinese(context.spec.prompt) else "en")
    more = words("kv_cache.second_word")
    return " ".join(context.spec.prompt[: SECOND_CAP - len(more)].split()) + more


def _both(
    context: Context, engine: Engine, typed: str, long: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids of both prompts. Raises Fault for a second prompt without any."""
    first = tuple(token.id for token in context.generation.prompt)
    spec = context.spec
    second = engine.vocabulary.read(typed, chat=spec.chat, literal=spec.literal).ids
    if not second:
        raise Fault("empty_prompt")
    if not long:
        return first, second
    from core.lab.kv_contexts import long_ids  # noqa: PLC0415 - imports torch

    room = engine.info.context - max(len(first), len(second))
    before = long_ids(local(engine), max(1, min(LONG, room)))
    return (*before, *first), (*before, *second)


def _reused(t: Catalog, found: Reuse) -> None:
    how = t("kv_cache.reuse_how", repeats=found.whole_ms.repeats)
    mark(t, "measured", how, on=found.machine)
    restless(t, (found.whole_ms, found.reused_ms))
    one, two, three = st.columns(3)
    one.metric(t("kv_cache.reuse_positions"), f"{found.common:,} / {found.second:,}")
    two.metric(t("kv_cache.reuse_whole"), in_time(found.whole_ms.median))
    three.metric(t("kv_cache.reuse_rest"), in_time(found.reused_ms.median))
    st.markdown(
        t(
            "kv_cache.reuse_said",
            common=f"{found.common:,}",
            new=f"{found.reused.positions:,}",
            ratio=f"{found.whole_ms.median / found.reused_ms.median:.1f}",
            low=in_time(found.reused_ms.low),
            high=in_time(found.reused_ms.high),
            whole_low=in_time(found.whole_ms.low),
            whole_high=in_time(found.whole_ms.high),
            d=tiny(found.difference),
            bytes=in_bytes(found.shared_bytes),
        )
    )
