"""Which model is planned: one of the list, the one in use, one of the hub, or typed numbers."""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.models import local
from core.lab.shape import ModelShape, shape_of
from core.lab.shape_presets import (
    TYPED,
    fetch_config,
    fetched,
    hub_entry,
    named_shape,
    presets,
    spell_shape,
    typed_shape,
)
from ui import state
from ui.i18n import Catalog, plain
from ui.lab_options import choose, chosen
from ui.limits_table import NAME_CAP, TABLE
from ui.widgets import show, show_text

IN_USE: Final = "here"
HUB: Final = "/"
NUMBERS: Final = "#"
USUAL_HUB: Final = "Qwen/Qwen3-0.6B"
USUAL: Final = "llama-2-7b"
_KEY: Final = "w_limits_model"


def kind_of(name: str) -> str:
    """What the option names: a preset, IN_USE, HUB or NUMBERS."""
    if name in presets() or name == IN_USE:
        return name
    return NUMBERS if name[:1].isdigit() else HUB


def pick(t: Catalog, name: str, engine: Engine | None) -> str:
    """The list of models; returns the name of the chosen one, as the option spells it."""
    known = [*([IN_USE] if engine else []), *presets(), HUB, NUMBERS]
    kind = kind_of(name)
    if kind not in known:
        kind, name = TABLE["model"][0], TABLE["model"][0]

    def changed() -> None:
        new = st.session_state[_KEY]
        numbers = spell_shape(presets()[kind].shape if kind in presets() else _usual())
        choose("limits", TABLE, model={HUB: USUAL_HUB, NUMBERS: numbers}.get(new, new))

    st.selectbox(
        t("limits.model"),
        known,
        key=show(_KEY, kind),
        format_func=lambda value: _title(value, engine, t),
        on_change=changed,
        width=260,
    )
    return name


def chosen_shape(t: Catalog, name: str, engine: Engine | None) -> ModelShape | None:
    """The fields of the chosen model, where it has any, and its shape; ``None`` where that is
    not known yet. Raises Fault."""
    kind = kind_of(name)
    if kind == IN_USE:
        assert engine is not None
        return in_use(state.number(engine), engine)
    if kind == HUB:
        return _of_hub(t, name)
    return _typed(t, name) if kind == NUMBERS else named_shape(name)


def _usual() -> ModelShape:
    return presets()[USUAL].shape


def _title(value: str, engine: Engine | None, t: Catalog) -> str:
    if value == IN_USE:
        return t("limits.model_here", name=engine.info.name if engine else "")
    named = {HUB: "model_hub", NUMBERS: "model_typed"}
    if value in named:
        return t(f"limits.{named[value]}")
    return presets()[value].title if value in presets() else str(value)


@st.cache_resource(max_entries=8, show_spinner=False)
def in_use(number: int, _engine: Engine) -> ModelShape:
    """The shape of the loaded model; ``number`` tells engines apart. Raises Fault."""
    with local(_engine).borrowed() as model:
        return shape_of(model.config, _engine.info.name)


# ---------------------------------------------------------------- the hub


def _of_hub(t: Catalog, name: str) -> ModelShape | None:
    key = "w_limits_hub"
    show_text(key, name)
    st.text_input(
        t("limits.hub_id"),
        key=key,
        max_chars=NAME_CAP,
        on_change=chosen("limits", TABLE, "model", key),
        width=260,
    )
    entry = hub_entry(name, local=not state.IN_CLASS)
    if fetched(entry):
        return named_shape(name, local=not state.IN_CLASS)
    if st.button(t("limits.hub_fetch"), key="limits_hub_fetch", icon=":material/download:"):
        with st.spinner(t("limits.hub_fetching")):
            fetch_config(entry)
        return named_shape(name, local=not state.IN_CLASS)
    st.caption(t("limits.hub_text", name=plain(name)))
    return None


# ---------------------------------------------------------------- numbers


def _typed(t: Catalog, name: str) -> ModelShape:
    try:
        shape = typed_shape(name)
    except Fault as fault:
        st.error(t.fault(fault))
        shape = _usual()

    def changed() -> None:
        numbers = [str(int(st.session_state[f"w_limits_{field}"] or 1)) for field in TYPED]
        choose("limits", TABLE, model=".".join(numbers))

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        for field in TYPED:
            st.number_input(
                t(f"limits.typed_{field}"),
                1,
                10**9,
                key=show(f"w_limits_{field}", int(getattr(shape, field))),
                on_change=changed,
                width=128,
            )
    return shape
