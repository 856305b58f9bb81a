"""Comparisons being computed, for all readers."""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.compare_records import Comparison
from ui.jobs import Jobs

KEPT_BYTES: Final = 96_000_000


def size(found: Comparison) -> int:
    """About how many bytes a comparison holds."""
    texts = sum(len(text.choices) for column in found.columns for text in column.texts)
    searches = [column.search for column in found.columns if column.search]
    candidates = sum(len(step.candidates) for search in searches for step in search.steps)
    return 2000 + 300 * texts + 400 * candidates


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs[Comparison]:
    """Those of this process."""
    return Jobs("compare_failed", size=size, kept_bytes=KEPT_BYTES)
