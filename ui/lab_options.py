"""What a reader set on a page of the laboratory: ``bits=4,span=group``, in one link parameter.

Every page has a table of its options: name → (default, parser). What cannot be read, or is not
allowed, falls back to its default, so that a damaged link still opens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import streamlit as st

from ui import state

Table = Mapping[str, tuple[Any, Callable[[str], Any]]]
_OFF: Final = "off"


def options(text: str, table: Table) -> dict[str, Any]:
    """Every option of the table: as it stands in ``text``, or its default. Never raises."""
    found = {name: default for name, (default, _) in table.items()}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in table:
            continue
        default, parse = table[name]
        try:
            found[name] = None if value == _OFF and default is None else parse(_plain(value))
        except (ValueError, TypeError, OverflowError, KeyError):
            found[name] = default
    return found


def spelled(values: Mapping[str, Any], table: Table) -> str:
    """The options that differ from their defaults, in the table's order."""
    parts = []
    for name, (default, _) in table.items():
        value = values.get(name, default)
        if value != default:
            parts.append(f"{name}={_OFF if value is None else _escaped(str(value))}")
    return ",".join(parts)


def here(field: str, table: Table) -> dict[str, Any]:
    """What this reader set on the page whose field of ``ui.view.View`` is ``field``."""
    return options(getattr(state.place().view, field), table)


def choose(field: str, table: Table, **changes: Any) -> None:
    """Set options of a page; the others stay."""
    values = {**here(field, table), **changes}
    state.look(**{field: spelled(values, table)})


def chosen(field: str, table: Table, name: str, key: str) -> Callable[[], None]:
    """The callback of the widget ``key`` that sets the option ``name``."""

    def changed() -> None:
        value = st.session_state[key]
        if value is not None:
            choose(field, table, **{name: value})

    return changed


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace(",", "%2C").replace("=", "%3D")


def _plain(text: str) -> str:
    return text.replace("%3D", "=").replace("%2C", ",").replace("%25", "%")
