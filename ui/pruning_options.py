"""What a reader can set on the Pruning page, in one link parameter, and the edit it makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from core.edits.masks import METHODS
from core.edits.spec import ModelEdit, Zeros, parse_edit, split
from core.faults import Fault
from core.model_info import ModelInfo
from ui import lab_options, state
from ui.lab_options import Table
from ui.view import one_of, within

FIELD: Final = "pruning"
PATTERNS: Final = ("share", "2of4")
MOST_ZEROS: Final = 95
"""Percent."""
MOST_NEURONS: Final = 90
MOST_LAYERS: Final = 64
"""Layers that a link names."""
NAME_CAP: Final = 40


def _layers(text: str) -> tuple[int, ...]:
    found = {within(0, 1023)(part) for part in text.split(".") if part}
    if len(found) > MOST_LAYERS:
        raise ValueError(text)
    return tuple(sorted(found))


class _Layers(tuple[int, ...]):
    """Layers that are written as ``3.7``."""

    __slots__ = ()

    def __str__(self) -> str:
        return ".".join(map(str, self))


TABLE: Final[Table] = {
    "pattern": ("share", one_of(PATTERNS)),
    "zeros": (50, within(0, MOST_ZEROS)),
    "method": ("wanda", one_of(METHODS)),
    "matrix": ("", lambda text: text[:NAME_CAP]),
    "neurons": (20, within(0, MOST_NEURONS)),
    "layers": ((), _layers),
    "groups": (0, within(0, 255)),
    "heads": (0, within(0, 32)),
}


def here() -> dict[str, Any]:
    """What this reader set."""
    return lab_options.here(FIELD, TABLE)


def choose(**changes: Any) -> None:
    """Set options; the others stay."""
    if "layers" in changes:
        changes["layers"] = _Layers(changes["layers"])
    kept = here()
    kept["layers"] = _Layers(kept["layers"])
    state.look(**{FIELD: lab_options.spelled({**kept, **changes}, TABLE)})


def chosen(name: str, key: str, read: Callable[[Any], Any] = lambda value: value) -> Any:
    """The callback of the widget ``key`` that sets the option ``name``."""

    def changed() -> None:
        import streamlit as st  # noqa: PLC0415 - only in a callback

        value = st.session_state[key]
        if value is not None:
            choose(**{name: read(value)})

    return changed


def zeros_here() -> Zeros:
    """The zeros that are set."""
    values = here()
    if values["pattern"] == "2of4":
        return Zeros(0.5, values["method"], two_of_four=True)
    return Zeros(values["zeros"] / 100, values["method"])


def removed_here(info: ModelInfo) -> ModelEdit:
    """The parts that are to be taken out, as far as this model has them."""
    values = here()
    return ModelEdit(
        layers=tuple(layer for layer in values["layers"] if layer < info.layers),
        groups=min(values["groups"], info.kv_heads - 1),
        neurons=values["neurons"] / 100,
    )


def edit_in_use() -> ModelEdit:
    """What is already done to the model in use."""
    try:
        return parse_edit(split(state.place().spec.model)[1])
    except Fault:
        return ModelEdit()


def with_zeros(before: ModelEdit, zeros: Zeros) -> ModelEdit:
    """An edit with these zeros in place of its own."""
    return replace(before, zeros=zeros if zeros.share else None)


def with_removed(before: ModelEdit, removed: ModelEdit) -> ModelEdit:
    """An edit with these parts taken out in place of its own."""
    return replace(before, layers=removed.layers, groups=removed.groups, neurons=removed.neurons)
