"""The body of the Precision page: what the weights are, and four parts that tell one story."""

from __future__ import annotations

from collections.abc import Callable, Generator

import streamlit as st

from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.models import local
from core.lab.quantize_recorded import COMMAND
from core.lab.quantize_records import Origin
from core.models.catalog import CATALOGUE
from ui.context import Context
from ui.i18n import Catalog
from ui.lab import experiment
from ui.marks import mark
from ui.precision_effect import effect_part
from ui.precision_look import look_part
from ui.precision_model import ORIGIN, Reference, origin_words, poll, reference_of
from ui.precision_speed import speed_part
from ui.precision_sweep import sweep_part


def draw(t: Catalog, context: Context | None) -> None:
    """The page; without weights, what was recorded."""
    reference = reference_of(context)
    if reference.engine is None and context is not None:
        code = "model_loading" if reference.waiting else "lab_needs_weights"
        st.info(t.fault(Fault(code)))
        poll(reference)
    parts: tuple[Callable[[], None], ...] = (
        lambda: _origin(t, reference),
        lambda: sweep_part(t, reference),
        lambda: effect_part(t, context, reference),
        lambda: look_part(t, reference),
        lambda: speed_part(t, reference),
    )
    for part in parts:
        try:
            part()
        except Fault as fault:
            st.info(t.fault(fault))


def _origin(t: Catalog, reference: Reference) -> None:
    """Whether the weights were rounded before they came."""
    recorded, known = reference.found, reference.origin
    if recorded is None and known is not None and known.done:
        _counted(t, reference, known)
        return
    if recorded is not None:
        _recorded_origin(t, reference, recorded.origin)
    if reference.engine is None:
        return
    if recorded is None:
        _count(t, reference, reference.engine)
        return
    with st.expander(t("precision.origin_run"), icon=":material/grid_on:"):
        _count(t, reference, reference.engine)


def _count(t: Catalog, reference: Reference, engine: Engine) -> None:
    """Look at every tensor: at once where nothing was recorded."""
    model = local(engine)

    def turns() -> Generator[Origin, None, None]:
        from core.lab.quantize_look import origin  # noqa: PLC0415 - imports torch

        return origin(model)

    experiment(
        t,
        ORIGIN,
        (ORIGIN, reference.key),
        turns,
        lambda found: _counted(t, reference, found),
        cost=t("precision.origin_cost"),
        run=t("precision.origin_run"),
        auto=reference.found is None,
    )


def _counted(t: Catalog, reference: Reference, found: Origin) -> None:
    if found.done:
        mark(t, "computed", t("precision.origin_how"))
        _say(t, reference, found)


def _recorded_origin(t: Catalog, reference: Reference, found: Origin) -> None:
    mark(t, "recorded", t("precision.command", command=COMMAND.format(name=reference.name)))
    _say(t, reference, found)


def _say(t: Catalog, reference: Reference, found: Origin) -> None:
    entry = CATALOGUE.get(reference.name_only)
    warn = found.main is not None or (entry is not None and entry.source_bits is not None)
    (st.warning if warn else st.info)(
        origin_words(t, reference, found), icon=":material/grid_on:" if warn else None
    )
