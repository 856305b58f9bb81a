"""Large arrays for the page's components, each sent once: the labels of a vocabulary, logits.

They draw nothing. The browser keeps them under an id; the component that needs them names it.
A rerun that changes a setting then sends a few kilobytes, and not the vocabulary.
"""

from __future__ import annotations

import streamlit as st

from core.tokens import Vocabulary
from ui.components.bundle import component
from ui.figures.stages import labels_blob

_CARRIER = component("vocabulary", js=("store", "vocabulary"), css=("base",))


@st.cache_resource(max_entries=4, show_spinner=False)
def labels_of(model: str, size: int, _vocabulary: Vocabulary) -> tuple[str, bytes]:
    """(id, all labels of ``_vocabulary``); ``model`` and ``size`` name it in the cache."""
    return labels_blob(_vocabulary.labels())


def carry(kind: str, id: str, blob: bytes) -> None:
    """Send ``blob`` to the browser's store as ``id``; mount each ``kind`` once on a page."""
    # Only data that is bytes as a whole travels raw, so the id stands before them.
    _CARRIER(key=f"carry_{kind}", data=id.encode() + b"\n" + blob)
