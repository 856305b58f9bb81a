"""Home's one screen: the journey of one prediction."""

from __future__ import annotations

import streamlit as st

from ui.components.bundle import component
from ui.context import Context
from ui.figures.journey import journey_data

_JOURNEY = component(
    "journey",
    js=(
        "dom",
        "journey_layout",
        "journey_parts",
        "journey_read",
        "journey_grid",
        "journey_draw",
        "journey_stack",
        "journey_compute",
        "journey_choose",
        "journey_tables",
        "journey",
    ),
    css=("base", "journey"),
)


def journey(ctx: Context, key: str = "journey") -> None:
    """Draw the step in view; a click on a candidate forces it (the "action" of ``key``)."""
    if ctx.view is None:
        st.info(ctx.t("home.no_step"))
        return
    ids = (*ctx.view.forward.ids, ctx.view.choice.id)
    data = journey_data(
        ctx.generation,
        ctx.view,
        ctx.vocabulary.tokens(ids, len(ctx.generation.prompt)),
        info=ctx.engine.info,
        label=ctx.vocabulary.label,
        lens=ctx.lens,
    )
    words = {
        "lang": ctx.t.lang,
        "strings": ctx.t.area("home"),
        "recorded": ctx.recorded is not None,
    }
    _JOURNEY(
        key=key,
        data={**data, **words},
        on_action_change=ctx.act(key),
    )
