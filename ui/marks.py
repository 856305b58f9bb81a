"""Where a number comes from: measured here, computed, published, recorded before, or estimated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import streamlit as st

from core.lab.machine import Machine
from core.lab.timing import RESTLESS, Spread, unrest
from ui.figures.words import unbroken
from ui.i18n import Catalog, plain

Kind = Literal["measured", "computed", "published", "recorded", "estimated"]
ICONS: Final[dict[Kind, str]] = {
    "measured": ":material/timer:",
    "computed": ":material/calculate:",
    "published": ":material/menu_book:",
    "recorded": ":material/inventory_2:",
    "estimated": ":material/hourglass_empty:",
}


def mark(t: Catalog, kind: Kind, note: str = "", *, on: Machine | None = None) -> None:
    """Say above a chart, a table or a figure what its numbers are.

    ``note`` is Markdown and says how; ``on`` is what it was measured on.
    """
    said = [f"{ICONS[kind]} **{t(f'lab.{kind}')}**"]
    if note:
        said.append(note)
    if on is not None:
        said.append(machine_words(t, on))
    st.caption(" · ".join(said), help=t(f"lab.{kind}_help"))


def restless(t: Catalog, times: Iterable[Spread | None]) -> None:
    """Say under a mark that the machine was busy while it measured, where it was."""
    found = unrest(times)
    if found > RESTLESS:
        st.caption(f":material/warning: {t('lab.restless', times=f'{found:.1f}')}")


def machine_words(t: Catalog, found: Machine) -> str:
    """A machine in a few words, as Markdown."""
    return t(
        "lab.machine",
        processor=plain(found.device if found.device != "cpu" else found.processor),
        cores=found.cores,
        threads=found.threads,
        memory=f"{found.memory / 1e9:.0f}",
        torch=plain(found.torch),
        date=unbroken(found.date),
    )
