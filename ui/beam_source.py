"""What the Beam search page searches, and how it is read: the model of the run, or a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from core.decode import provider_of
from core.decode.beam import Provider, run_of
from core.decode.ends import end_ids
from core.engine.memory import Ids
from core.engine.protocol import Engine
from core.engine.toy import ToyEngine
from core.engine.toy_table import ToyTable
from core.engine.work import working
from core.settings import BeamSettings
from core.trace import Capture, Forward
from ui import state
from ui.beam_table import table_of
from ui.context import Context

MOST_BEAMS: Final = 16
PROMPT_OF_TABLE: Final = 200
"""Characters of a prompt that a table is shown; it answers the same after any."""


@dataclass(frozen=True, eq=False)
class Source:
    """Who is searched: the model of the run, or a table in its place."""

    engine: Engine
    prompt: tuple[int, ...]
    table: ToyTable | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        return state.number(self.engine), self.prompt


@st.cache_resource(show_spinner=False, max_entries=64)
def _table_engine(text: str) -> ToyEngine:
    return ToyEngine(table_of(text), name="toy")


def source_of(context: Context | None) -> Source | None:
    """What the page searches; ``None`` while there is no run and no table.

    Raises Fault for a table that cannot be read.
    """
    here = state.place()
    text = here.view.table
    if text:
        engine = _table_engine(text)
        prompt = engine.vocabulary.encode(here.spec.prompt[:PROMPT_OF_TABLE], literal=True).ids
        return Source(engine, prompt or engine.vocabulary.encode("…").ids, table_of(text))
    if context is None:
        return None
    return Source(context.engine, tuple(token.id for token in context.generation.prompt))


def settings_of() -> BeamSettings:
    """The search that the page asks for. Raises Fault for values that do not go together."""
    view, own = state.place().view, state.place().spec.settings
    width = min(view.beams, MOST_BEAMS)
    asked = BeamSettings(
        width=width,
        length_penalty=view.alpha,
        stop="full" if view.rule == "full" else "best",
        nbest=min(view.nbest, width) or None,
        ends=() if view.table else view.ends,
        max_new=own.max_new,
    )
    # What another kind is set to must not make this search another question.
    if view.kind == "sampled":
        heat = own.temperature or 1.0
        return replace(asked, kind="sampled", temperature=heat, seed=own.seed)
    if view.kind == "diverse":
        return replace(asked, kind="diverse", groups=view.groups, diversity=view.diversity)
    return asked


def greedy_of(settings: BeamSettings) -> BeamSettings:
    """The beam of one with the same limit and the same end tokens."""
    return BeamSettings(width=1, max_new=settings.max_new, ends=settings.ends)


def question(source: Source, settings: BeamSettings) -> tuple[Any, ...]:
    """The key of a search in the memo: all that decides which beams live."""
    return *source.key, replace(settings, length_penalty=0.0, stop="best", nbest=None)


def reader_of(source: Source, settings: BeamSettings) -> Callable[..., tuple[Any, float]]:
    """From prefixes to (logits, milliseconds of work: 0 where everything was remembered)."""
    provider = _provider(source, settings)

    def read(prefixes: tuple[Ids, ...]) -> tuple[Any, float]:
        with working() as work:
            rows = provider(prefixes)
        return rows, work.ms if work.passes else 0.0

    return read


def _provider(source: Source, settings: BeamSettings) -> Provider:
    if settings.width == 1 and source.table is None:
        return lambda prefixes: [logits_after(source, prefix) for prefix in prefixes]
    # The name holds the limit too: with it, a shorter search leaves a longer one no answers.
    name = (run_of(source.prompt, settings, end_ids(settings, source.engine)), settings.max_new)
    return provider_of(source.engine, source.prompt, name)


def logits_after(source: Source, generated: tuple[int, ...]) -> Float[np.ndarray, " vocabulary"]:
    """The logits after the prompt and ``generated``, from the engine's own memory. Raises Fault."""
    return _forward(source, generated).logits


def _forward(source: Source, generated: tuple[int, ...]) -> Forward:
    return source.engine.forward(
        (*source.prompt, *generated),
        prompt_length=len(source.prompt),
        capture=Capture(attention=False),
    )
