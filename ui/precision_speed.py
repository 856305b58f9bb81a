"""The fourth part of the Precision page: weights really stored in fewer bytes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from importlib.util import find_spec

import streamlit as st

from core.edits.spec import Packing
from core.lab.models import local
from core.lab.quantize_recorded import COMMAND
from core.lab.quantize_records import PACKINGS, Speed, named, repeats
from ui.figures.precision_speed import speed_chart, speed_table, storage_words
from ui.i18n import Catalog
from ui.lab import experiment
from ui.lab_parts import PLAIN, section, table
from ui.marks import mark, restless
from ui.precision_effect import doors
from ui.precision_model import Reference, known_of, model_title, reference_words
from ui.precision_options import STORES, chosen, here, packing_here
from ui.widgets import show


def speed_part(t: Catalog, reference: Reference) -> None:
    """Bytes and times of every way to store the weights, and the one that the reader picks."""
    section(t, 4, "precision.speed")
    if reference.engine is None:
        _before(t, reference)
        _no_miracle(t, reference)
        return
    model = local(reference.engine)
    wanted = tuple(packing for packing in PACKINGS)

    def turns() -> Generator[Speed, None, None]:
        from core.lab.quantize_speed import speed  # noqa: PLC0415 - imports torch

        return speed(model, wanted)

    experiment(
        t,
        "precision_speed",
        (reference.key, tuple(named(one) for one in wanted)),
        turns,
        lambda found: _measured(t, found),
        cost=t("precision.speed_cost", count=len(wanted) + 1),
        run=t("precision.speed_run"),
        before=lambda: _before(t, reference),
    )
    _no_miracle(t, reference)
    packing = packing_here()
    st.markdown(f"### {t('precision.store_title')}")
    names = dict(zip(STORES, PACKINGS, strict=True))
    st.selectbox(
        t("precision.store"),
        list(STORES),
        key=show("precision_store", here()["store"]),
        format_func=lambda name: storage_words(name, t) if name in names else str(name),
        help=t("precision.store_help"),
        on_change=chosen("store", "precision_store"),
    )
    if _missing(packing):
        st.info(t("precision.not_installed"))
    else:
        doors(t, reference, reference.with_(packing), "speed")


def _no_miracle(t: Catalog, reference: Reference) -> None:
    """Packing weights that already sit on the packed grid changes none of them."""
    grid = reference.grid
    twins = [(named(one), one.twin) for one in PACKINGS if not one.head]
    same = [name for name, twin in twins if grid and twin and repeats(grid, twin)]
    if same:
        stores = ", ".join(storage_words(name, t) for name in same)
        words = reference_words(t, reference)
        st.warning(
            t("precision.miracle_store", stores=stores, reference=words),
            icon=":material/auto_awesome:",
        )


def _missing(packing: Packing) -> bool:
    return packing.storage in ("nf4", "bnb8") and find_spec("bitsandbytes") is None


def _before(t: Catalog, reference: Reference) -> None:
    known = known_of(reference)
    if known is None:
        return
    name, found = known
    if name != reference.name:
        st.caption(t("precision.of_another", model=model_title(name)))
    said = t("precision.command", command=COMMAND.format(name=name))
    mark(t, "recorded", said, on=found.speed.machine)
    _draw(t, found.speed)


def _measured(t: Catalog, found: Speed) -> None:
    mark(t, "measured", t("precision.speed_how"), on=found.machine)
    restless(t, [spread for row in found.rows for spread in (row.step, row.prefill)])
    _draw(t, found)


def _draw(t: Catalog, found: Speed) -> None:
    timed = [row for row in found.rows if row.step.repeats]
    if timed:
        figure = speed_chart(found, t)
        st.plotly_chart(
            figure, key="precision_speed_chart", config=PLAIN, alt=t("precision.speed_alt")
        )
    table(t, speed_table(found, t), "precision_speed")
    st.caption(
        t("precision.speed_note", context=found.context, read=found.read, threads=found.threads)
    )
    _said(t, found.missing)


def _said(t: Catalog, missing: Sequence[str]) -> None:
    if missing:
        st.caption(t("precision.not_installed"))
