"""How a widget shows the reader's place, and how it reports a change of it.

No widget is itself the state: a link, a component or another page may change the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar

import streamlit as st

from core.faults import Fault
from ui import state

T = TypeVar("T")

NO_VALUE: Final = "–"
"""What a table shows in a cell that has nothing to say."""
_DRAFTS: Final = "drafts"
"""Key of a field → (what was typed and refused, the value that it did not change)."""
TOLD: Final = "told"
"""Set where a change came from a widget of the sidebar, and not from the page or a link."""


def show(key: str, value: Any) -> str:
    """Let the widget ``key`` show ``value``; returns the key.

    Said in every run: two quick reruns reach the browser as one, and a value said only in
    the first of them would be lost.
    """
    st.session_state[key] = value
    return key


def picked(key: str, options: Collection[T], instead: T) -> T:
    """What is chosen in the widget ``key``; ``instead`` where that is none of its ``options``.

    When labels change, a browser may answer with the label of before, which Streamlit hands on.
    """
    value: Any = st.session_state.get(key)
    if value in options:
        return value  # type: ignore[no-any-return]
    return instead


def show_text(key: str, value: str) -> str:
    """Let the text field ``key`` show ``value``, or what was typed and refused, for mending;
    returns the text.

    Not said in every run: that would wipe out what is being typed.
    """
    drafts = st.session_state.setdefault(_DRAFTS, {})
    typed, kept = drafts.get(key, ("", None))
    wanted: str = typed if kept == value else value
    if st.session_state.get(key) != wanted:
        st.session_state[key] = wanted
    return wanted


def same(value: Any) -> Any:
    return value


def tell(key: str, field: str, convert: Callable[[Any], Any] = same) -> Callable[[], None]:
    """A callback that asks the run anew with the widget's value.

    A value that is not allowed changes nothing: its sentence is shown in its place.
    """

    def changed() -> None:
        typed = st.session_state[key]
        st.session_state[TOLD] = True
        drafts = st.session_state.setdefault(_DRAFTS, {})
        drafts.pop(key, None)
        try:
            state.ask(**{field: convert(typed)})
            st.session_state.pop("refused", None)
        except Fault as fault:
            st.session_state["refused"] = fault
            if isinstance(typed, str):
                drafts[key] = (typed, _shown(field))

    return changed


def _shown(field: str) -> str:
    """A setting as its text field shows it."""
    value = getattr(state.place().spec.settings, field, "")
    return "\n".join(value) if isinstance(value, tuple) else str(value)


def forget_drafts() -> None:
    """What was refused is gone from the fields, and so are the sentences."""
    st.session_state.pop(_DRAFTS, None)
    st.session_state.pop("refused", None)
