"""What the Embeddings page asks of the engine, section by section.

Where the engine cannot answer (a stored run, a table), the sentence stands in the section's
place and the others are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from core.engine.protocol import Engine
from core.faults import Fault
from core.geometry import analogy
from core.trace import Forward, Token
from ui import state
from ui.components.embeddings import embeddings, ranked
from ui.context import Context
from ui.figures.embeddings import Near, Rows, entering, lookup_data, map_data, near_data, nearest
from ui.figures.embeddings_words import SHOWN, Word, sum_data, word_of, words_typed
from ui.figures.journey_rows import embeddings as entered
from ui.figures.words import tiny
from ui.i18n import plain

NEAR: Final = 12
FURTHEST: Final = 2**20


@dataclass(frozen=True)
class Reading:
    """The tokens that the step in view has read, and the one looked at."""

    context: Context
    forwards: tuple[Forward, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        return self.forwards[-1].ids

    @property
    def engine(self) -> Engine:
        return self.context.engine

    @cached_property
    def at(self) -> int:
        wanted = state.place().view.at
        return wanted if 0 <= wanted < len(self.ids) else len(self.ids) - 1

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return self.context.vocabulary.tokens(self.ids, len(self.context.generation.prompt))

    @cached_property
    def entered(self) -> Float[np.ndarray, "token width"]:
        """What entered the first layer at each position."""
        return entered(self.forwards, range(len(self.ids)))

    @cached_property
    def stored(self) -> Float[np.ndarray, "token width"]:
        """The tokens' rows of the embedding matrix. Raises Fault where it cannot be asked."""
        return self.engine.embeddings(self.ids)


def reading(context: Context) -> Reading | None:
    """``None`` before the first step, and where tokens have no vectors."""
    if context.view is None or context.engine.info.width == 0:
        return None
    steps = context.generation.steps[: context.view.index]
    return Reading(context, (*(step.forward for step in steps), context.view.forward))


@st.cache_resource(max_entries=256, show_spinner=False)
def near_of(model: int, ids: tuple[int, ...], n: int, _engine: Engine) -> tuple[Any, Any]:
    """The rows nearest to that of one id, or of three: to first − second + third."""
    rows = _engine.embeddings(ids)
    return _engine.neighbours(rows[0] if len(ids) == 1 else analogy(*rows), n)


# ---------------------------------------------------------------- the look-up


def lookup(found: Reading) -> None:
    """The token's row, its neighbours, the map; from what entered where the matrix is closed."""
    t, label = found.context.t, found.context.vocabulary.label
    try:
        rows, stored, without = found.stored, True, ""
    except Fault as fault:
        rows, stored, without = found.entered, False, t.fault(fault)
        if found.context.recorded:
            without = t("embeddings.later")
    near = _near(found) if stored else []
    names = tuple(n.id for n in near)
    around = Rows(names, found.engine.embeddings(names)) if names else None
    data = {
        **lookup_data(found.tokens, found.at, rows, stored=stored),
        "vocabulary": found.engine.info.vocabulary,
        "map": map_data(found.ids, rows, around, label),
        "neighbours": near_data(near, label) if stored else None,
        "entering": _entering(found) if stored else t("embeddings.enter_only"),
        "without": without,
    }
    embeddings(data, t, looked("embeddings", {"at": FURTHEST}), key="embeddings")


def _near(found: Reading) -> list[Near]:
    own = found.ids[found.at]
    ids, cosines = near_of(state.number(found.engine), (own,), NEAR + 1, found.engine)
    return nearest(ids, cosines, NEAR, without=(own,))


def _entering(found: Reading) -> str:
    table = found.engine.position_table([found.at])
    how = entering(
        found.stored[found.at], found.entered[found.at], None if table is None else table[0]
    )
    return found.context.t(
        f"embeddings.enter_{how.kind}",
        factor=f"{how.factor:.4f}",
        d=tiny(how.difference),
        n=found.at,
        root=f"{found.engine.info.width**0.5:.4f}",
        width=found.engine.info.width,
    )


# ---------------------------------------------------------------- sums of words


def sums(found: Reading) -> None:
    """Three fields and what their sum is near to."""
    t = found.context.t
    st.markdown(f"## {t('embeddings.sum')}\n\n{t('embeddings.sum_text')}")
    typed = words_typed(state.place().view.words)
    names = ("first", "minus", "plus")
    for name, word in zip(names, typed, strict=True):
        st.session_state[f"sum_{name}"] = word

    def changed() -> None:
        words = [st.session_state[f"sum_{name}"].replace("\n", " ") for name in names]
        state.look(words="\n".join(words))

    words: list[Word] = []
    for name, word, column in zip(names, typed, st.columns(3), strict=True):
        with column:
            title = t(f"embeddings.sum_{name}")
            st.text_input(title, key=f"sum_{name}", max_chars=60, on_change=changed)
            try:
                words.append(word_of(word, found.context.vocabulary))
                used = found.context.vocabulary.label(words[-1].id)
                st.caption(t("embeddings.sum_token", token=plain(used), id=words[-1].id))
            except Fault as fault:
                st.caption(t.fault(fault))
    if len(words) < len(names):
        return
    try:
        ids = tuple(word.id for word in words)
        near = near_of(state.number(found.engine), ids, SHOWN + 3, found.engine)
        ranked(sum_data(words, *near, found.context.vocabulary.label, t), t, key="sum")
    except Fault as fault:
        st.info(t.fault(fault))


# ---------------------------------------------------------------- events


def looked(key: str, furthest: Mapping[str, int]) -> Callable[[], None]:
    """The callback of the component ``key``: ``{do: "look", …}`` moves the view.

    Of the event only the names in ``furthest`` count, as whole numbers from -1 to below theirs.
    """

    def on_action() -> None:
        event = (st.session_state.get(key) or {}).get("action")
        if isinstance(event, Mapping) and event.get("do") == "look":
            changes = {name: event.get(name) for name in furthest}
            state.look(**{k: v for k, v in changes.items() if _whole(v, furthest[k])})

    return on_action


def _whole(value: object, below: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -1 <= value < below
