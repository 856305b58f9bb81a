"""What the Embeddings page shows of positions: the rotation, learned rows, and the order undone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import streamlit as st

from core.ablation import effect
from core.faults import Fault
from core.position import shuffled
from core.trace import Capture, Edit
from ui import state
from ui.components.embeddings import learned, ranked
from ui.components.rotation import rotation
from ui.embeddings import FURTHEST, Reading, looked
from ui.figures.embeddings_order import order_data
from ui.figures.rotation import (
    Check,
    Head,
    agrees_without,
    head_of,
    learned_data,
    rotation_data,
    turned_again,
)
from ui.figures.words import tiny
from ui.i18n import Catalog
from ui.view import ORDERS

ALLOWED: Final = 1e-5
"""Largest difference, relative to the largest number, that passes for rounding."""
CHECKED: Final = 256
"""Tokens up to which the text is read again unasked: for q and k, and to check them."""
_ASKED: Final = "rope_asked"
"""In a reader's session: the long text whose queries and keys were asked for."""
ALIKE: Final = 64
"""Rows of a learned table that the position's own is compared with, at least."""
PLAIN: Final = Capture(attention=False)


def positions(found: Reading) -> None:
    """How positions enter this model, with this run's numbers."""
    t, info = found.context.t, found.engine.info
    st.markdown(f"## {t('embeddings.position')}")
    try:
        if info.positions == "rope":
            st.markdown(t("embeddings.rope_text"))
            _rope(found)
        elif info.positions == "learned":
            st.markdown(t("embeddings.learned_text"))
            _learned(found)
        else:
            st.info(t("embeddings.position_unknown", architecture=info.architecture))
    except Fault as fault:
        st.info(t.fault(fault))


# ---------------------------------------------------------------- rotation


def _rope(found: Reading) -> None:
    t, info, view = found.context.t, found.engine.info, state.place().view
    if not _asked_for(found):
        return
    layer = info.attending(view.layer if 0 <= view.layer < info.layers else 0)
    number = view.head if 0 <= view.head < info.heads else 0
    head = _head(found, layer, number, Edit())
    if head is None:
        st.info(t("embeddings.rope_closed", n=len(found.ids), architecture=info.architecture))
        return
    query = found.at
    key = view.key if 0 <= view.key <= query else max(0, query - 1)
    data = {
        **rotation_data(head, found.tokens, query, key, view.pair),
        "layers": info.layers,
        "closed": list(info.without_attention),
        "heads": info.heads,
        "kv_heads": info.kv_heads,
        "context": info.context,
        "checks": [asdict(check) for check in _checks(found, head, t)],
    }
    names = {"at": len(found.ids), "key": len(found.ids), "pair": FURTHEST}
    names |= {"layer": info.layers, "head": info.heads}
    rotation(data, t, looked("rotation", names), key="rotation")


def _asked_for(found: Reading) -> bool:
    """A long text is read again for its queries and keys only when the reader says so."""
    text = (found.context.spec.model, found.ids)
    if len(found.ids) <= CHECKED or st.session_state.get(_ASKED) == text:
        return True
    t, seconds = found.context.t, found.forwards[0].ms / 1000

    def ask() -> None:
        st.session_state[_ASKED] = text

    st.caption(t("embeddings.rope_cost", n=len(found.ids), s=f"{seconds:.1f}"))
    st.button(t("embeddings.rope_read"), key="rope_read", on_click=ask)
    return False


def _head(found: Reading, layer: int, head: int, edit: Edit) -> Head | None:
    """The head's q and k over the whole text, read at once. Raises Fault."""
    rope = found.engine.rope(layer)
    if rope is None:
        return None
    capture = Capture(attention=False, scores=True, layer=layer)
    with st.spinner(found.context.t("embeddings.reading"), show_time=True):
        forward = found.engine.forward(found.ids, capture=capture, edit=edit)
    return head_of(forward, layer, head, rope)


def _checks(found: Reading, head: Head, t: Catalog) -> list[Check]:
    again = turned_again(head)
    checks = [Check(t("embeddings.check_again", d=tiny(again)), again <= ALLOWED)]
    if head.layer == 0 and len(found.ids) <= CHECKED:
        plain = _head(found, 0, head.head, Edit(positions="none"))
        if plain is not None:
            d = agrees_without(head, plain)
            checks.append(Check(t("embeddings.check_first", d=tiny(d)), d <= ALLOWED))
    return checks


# ---------------------------------------------------------------- learned rows


def _learned(found: Reading) -> None:
    t = found.context.t
    most = min(found.engine.info.context, max(ALIKE, len(found.ids)))
    table = found.engine.position_table(range(most))
    if table is None:
        st.info(t("embeddings.position_unknown", architecture=found.engine.info.architecture))
        return
    at = found.at
    data: dict[str, Any] = learned_data(
        found.tokens, at, found.stored[at], table, found.entered[at]
    )
    names = {"token": data["label"], "n": at}
    titles = [t(f"embeddings.learned_{name}", **names) for name in ("row", "place", "sum_row")]
    d = data["difference"]
    check = Check(t("embeddings.check_learned", d=tiny(d)), d <= ALLOWED)
    rows = [
        {"title": title, "values": values}
        for title, values in zip(titles, data["values"], strict=True)
    ]
    learned({**data, "rows": rows, "check": asdict(check)}, t, key="learned")


# ---------------------------------------------------------------- the order undone


def order(found: Reading) -> None:
    """A switch that takes positions away or mixes the tokens; what is predicted then."""
    t = found.context.t
    st.markdown(f"## {t('embeddings.order')}\n\n{t('embeddings.order_text')}")
    wanted = state.place().view.order
    known = found.engine.info.positions != "none"
    choices = ["kept", *(ORDERS if known else ORDERS[1:])]
    st.session_state["order_choice"] = wanted if wanted in choices else "kept"

    def changed() -> None:
        picked = st.session_state["order_choice"]
        state.look(order=picked if picked in ORDERS else "")

    st.segmented_control(
        t("embeddings.order_choice"),
        choices,
        format_func=lambda id: t(f"embeddings.order_{id}") if id in choices else str(id),
        key="order_choice",
        required=True,
        on_change=changed,
    )
    seconds = found.forwards[0].ms / 1000
    if st.session_state["order_choice"] == "kept":
        st.caption(t("embeddings.order_cost", n=len(found.ids), s=f"{seconds:.1f}"))
        return
    try:
        _compare(found, st.session_state["order_choice"])
    except Fault as fault:
        st.info(t.fault(fault))


def _compare(found: Reading, kind: str) -> None:
    t, view, vocabulary = found.context.t, found.context.view, found.context.vocabulary
    if view is None:
        return
    ids, edit = found.ids, Edit(positions="none")
    if kind == "shuffled":
        control = {id for id in found.ids if vocabulary.is_special(id)}
        mixed = shuffled(found.ids, control, found.context.spec.settings.seed)
        if mixed is None:
            st.info(t("embeddings.order_same"))
            return
        ids, edit = mixed, Edit()
    with st.spinner(t("embeddings.reading"), show_time=True):
        forward = found.engine.forward(ids, capture=PLAIN, edit=edit)
    change = effect(view.forward.logits, forward.logits, view.choice.id)
    after = vocabulary.tokens(ids, len(found.context.generation.prompt))
    seed = found.context.spec.settings.seed
    st.caption(t(f"embeddings.order_{kind}_note", n=len(ids), ms=f"{forward.ms:.0f}", seed=seed))
    ranked(order_data(change, found.tokens, after, vocabulary.label, t), t, key="order_lists")
