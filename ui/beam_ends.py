"""Which tokens end a text of a beam search: the field for them, and the sentence that says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from core.decode.ends import NONE
from core.engine.protocol import Engine
from core.visible import visible
from ui import state
from ui.i18n import Catalog, plain
from ui.view import ENDS_CAP
from ui.widgets import show

OWN: Final = "#own"
"""The model's own, as the field names them."""
SHOWN: Final = 12
"""Tokens that the sentence names."""
_KEY: Final = "beam_ends"


def field(t: Catalog) -> None:
    """The model's own end tokens and further ones, each to be taken away; new ones are typed."""
    ends = state.place().view.ends
    listed = ([] if NONE in ends else [OWN]) + [end for end in ends if end != NONE]

    def changed() -> None:
        picked = st.session_state[_KEY]
        count, most = ENDS_CAP
        named = [str(end)[:most] for end in picked if end and end not in (OWN, NONE)]
        named = list(dict.fromkeys(named))[: count - 1]
        gone = OWN not in picked or NONE in picked
        state.look(ends=(*named, NONE) if gone else tuple(named), node=(-1, -1))

    st.multiselect(
        t("beam_search.ends"),
        list(dict.fromkeys([OWN, *listed])),
        key=show(_KEY, listed),
        format_func=lambda end: t("beam_search.ends_own") if end == OWN else visible(str(end)),
        placeholder=t("beam_search.ends_placeholder"),
        help=t("beam_search.ends_help"),
        accept_new_options=True,
        on_change=changed,
    )


def sentence(ids: Sequence[int], engine: Engine, limit: int, t: Catalog) -> str:
    """What ends a text, as Markdown."""
    if not ids:
        return t("beam_search.end_none", limit=limit)
    comma = t("generate.list_join")
    labels = comma.join(f"“{plain(engine.vocabulary.label(id))}”" for id in ids[:SHOWN])
    if len(ids) > SHOWN:
        labels += t("beam_search.end_more", n=len(ids) - SHOWN)
    return t("beam_search.end_tokens", tokens=labels, limit=limit)
