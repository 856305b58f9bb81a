"""The options of the Many machines page, and widgets that set them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import streamlit as st

from core.lab.parallel.deal import WANTED
from core.lab.parallel.offload import SHARES
from core.lab.parallel.records import PARTS
from core.lab.parallel.stages import BY, MICRO_BATCHES
from ui.i18n import Catalog
from ui.lab_options import Table, chosen
from ui.view import one_of, place, within
from ui.widgets import show

FIELD: Final = "parallel"
OWN: Final = "own"
FORMATS: Final = (OWN, "bfloat16")


def _share(text: str) -> float:
    found = float(text)
    if found not in SHARES:
        raise ValueError(text)
    return found


def _micro(text: str) -> int:
    found = int(text)
    if found not in MICRO_BATCHES:
        raise ValueError(text)
    return found


TABLE: Final[Table] = {
    # 0: the page chooses
    "ranks": (0, within(0, 8)),
    "attention": (WANTED[0], one_of(WANTED)),
    "layer": (-1, place),
    "part": (PARTS[1], one_of(PARTS)),
    "position": (-1, place),
    "stages": (2, within(2, 8)),
    "by": (BY[0], one_of(BY)),
    "micro": (4, _micro),
    "share": (0.5, _share),
    "format": (OWN, one_of(FORMATS)),
}


def pick(
    t: Catalog,
    name: str,
    choices: Sequence[Any],
    value: Any,
    said: Callable[[Any], str],
    *,
    help: str | None = None,
) -> None:
    """A row of buttons for the option ``name``."""
    key = show(f"w_parallel_{name}", value)
    st.segmented_control(
        t(f"parallel.pick_{name}"),
        list(choices),
        key=key,
        format_func=said,
        help=help,
        on_change=chosen(FIELD, TABLE, name, key),
    )
