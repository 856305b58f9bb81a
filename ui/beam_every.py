"""Every text that a table can write, for the Beam search page; remembered for all readers."""

from __future__ import annotations

import time
from typing import Any, Final

import streamlit as st

from core.decode import Exhaustive, exhaustive, provider_of
from core.engine.memory import ByteLRU
from core.faults import Fault
from core.settings import BeamSettings
from ui.beam_source import Source

KEPT_BYTES: Final = 400_000
EACH: Final = 1500
"""Bytes of an answer, which holds one text."""


@st.cache_resource(show_spinner=False)
def _kept() -> ByteLRU[Any, tuple[Exhaustive, float] | Fault]:
    return ByteLRU(KEPT_BYTES)


def every_text(source: Source, settings: BeamSettings) -> tuple[Exhaustive, float] | None:
    """Every text of a table and the milliseconds it took; ``None`` for a model. Raises Fault."""
    if source.table is None:
        return None
    plain = BeamSettings(width=1, length_penalty=settings.length_penalty, max_new=settings.max_new)
    key = (*source.key, plain)
    found = _kept().get(key)
    if found is None:
        found = _try_all(source, plain)
        _kept().put(key, found, EACH)
    if isinstance(found, Fault):
        raise found
    return found


def _try_all(source: Source, settings: BeamSettings) -> tuple[Exhaustive, float] | Fault:
    began = time.perf_counter()
    try:
        provider = provider_of(source.engine, source.prompt)
        found = exhaustive(provider, settings, source.engine.info.end_ids)
    except Fault as fault:
        return fault
    return found, (time.perf_counter() - began) * 1000
