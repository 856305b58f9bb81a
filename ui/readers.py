"""Who looks at long work: one reader for each open page."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

_WHO: Final = "job_reader"
_COUNT: Final = itertools.count()


@dataclass(frozen=True)
class Reader:
    """One open page."""

    number: int
    session: str
    """Streamlit's own name of it."""


def who() -> Reader:
    """This reader among all who watch."""
    if _WHO not in st.session_state:
        context = get_script_run_ctx()
        st.session_state[_WHO] = Reader(next(_COUNT), context.session_id if context else "")
    found: Reader = st.session_state[_WHO]
    return found


def here(who: Hashable) -> bool:
    """Whether the reader's page is still open."""
    if not isinstance(who, Reader) or not runtime.exists():
        return True
    return runtime.get_instance().is_active_session(who.session)
