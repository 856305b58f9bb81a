"""What the Precision page works on: the model before anything was rounded by this program, and
whether somebody else had rounded it before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import streamlit as st

from core.edits.grid import Grid
from core.edits.spec import ModelEdit, Packing, Rounding, join, parse_edit, split
from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.models import local
from core.lab.quantize_recorded import Recorded, recorded
from core.lab.quantize_records import Origin
from core.models.catalog import CATALOGUE, DEFAULT, title_of
from core.recorded import RecordedEngine
from ui import state
from ui.context import Context
from ui.figures.precision import grid_words
from ui.figures.words import whole_percent
from ui.i18n import Catalog, plain
from ui.lab import jobs
from ui.model_card import POLL

ORIGIN: Final = "precision_origin"
"""The experiment that looks whether the weights were rounded before."""


@dataclass(frozen=True)
class Reference:
    """The model that every setting is compared with."""

    name: str
    """Its name, with what else was done to it, but for rounding and packing."""
    edit: ModelEdit
    engine: Engine | None
    """With weights in this process; ``None`` while it is on its way, or where there are none."""
    waiting: bool
    """Whether it is on its way."""
    found: Recorded | None
    """What was recorded of it."""

    @property
    def key(self) -> int:
        return state.number(self.engine) if self.engine is not None else -1

    @property
    def origin(self) -> Origin | None:
        """Whether its weights were rounded before, as far as that is known."""
        counted: Any = jobs().known((ORIGIN, (ORIGIN, self.key)))
        if isinstance(counted, Origin):
            return counted
        return self.found.origin if self.found else None

    @property
    def grid(self) -> Grid | None:
        """The grid on which most of its weights already sit."""
        origin = self.origin
        main = origin.main if origin else None
        return main.grid if main else None

    def with_(self, setting: Rounding | Packing) -> str:
        """The name of the model with one more change."""
        if isinstance(setting, Rounding):
            return join(self.name_only, replace(self.edit, rounding=setting))
        return join(self.name_only, replace(self.edit, packing=setting))

    @property
    def name_only(self) -> str:
        return split(self.name)[0]


def reference_of(context: Context | None) -> Reference:
    """The model of this reader without its rounding or packing. Raises Fault for a name that is
    no model."""
    typed = state.place().spec.model
    name, text = split(typed)
    edit = replace(parse_edit(text), rounding=None, packing=None)
    base = join(name, edit)
    engine = _engine(context, typed, base)
    waiting = engine is None or isinstance(engine, RecordedEngine)
    try:
        weights: Engine | None = None if engine is None else local(engine)
    except Fault:
        weights = None
    return Reference(base, edit, weights, waiting, recorded(base))


def poll(reference: Reference) -> None:
    """Go on by itself when the reference is loaded: the frame only waits for the model in view."""
    if not reference.waiting or reference.name == state.place().spec.model:
        return

    @st.fragment(run_every=POLL)
    def watch() -> None:
        if state.store().state(reference.name).status == "ready":
            st.rerun(scope="app")

    watch()


def _engine(context: Context | None, typed: str, base: str) -> Engine | None:
    if context is not None and typed == base:
        return context.engine
    return state.engine_for(replace(state.place().spec, model=base))


def known_of(reference: Reference) -> tuple[str, Recorded] | None:
    """What was recorded of this model, or else of the default one, with its name."""
    if reference.found is not None:
        return reference.name, reference.found
    other = recorded(DEFAULT)
    return (DEFAULT, other) if other is not None else None


def reference_words(t: Catalog, reference: Reference) -> str:
    """What the reference may be called: only weights that nobody rounded are the original."""
    if reference.grid is not None:
        return t("precision.reference_rounded", bits=reference.grid.bits)
    entry = CATALOGUE.get(reference.name_only)
    if entry is not None and entry.source_bits:
        return t("precision.reference_file", bits=entry.source_bits)
    return t("precision.reference_original")


def origin_words(t: Catalog, reference: Reference, origin: Origin) -> str:
    """What was found about the loaded weights, in sentences."""
    sentences = [
        t(
            "precision.origin_on",
            tensors=one.tensors,
            all=origin.tensors,
            share=whole_percent(one.weights / origin.weights),
            grid=grid_words(one.grid, t),
        )
        for one in origin.grids[:3]
    ]
    entry = CATALOGUE.get(reference.name_only)
    bits = entry.source_bits if entry is not None else None
    if origin.main is not None:
        sentences.append(t("precision.origin_warning", bits=origin.main.grid.bits))
    elif bits:
        sentences.append(t("precision.origin_file", bits=bits))
    elif not sentences:
        sentences.append(t("precision.origin_none", all=origin.tensors))
    return t("generate.sentence_join").join(sentences)


def model_title(name: str) -> str:
    return plain(title_of(name))
