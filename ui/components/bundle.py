"""Components v2 from plain files: no build step, no network.

A component's JavaScript is the concatenation of the library modules it names and its own
file. Library modules are ordinary ES modules (so that ``node --test`` can import them) with
named exports only, and each import stands on one line; joining them drops the import lines
and the ``export`` keywords. The component's own file keeps its ``export default``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import streamlit as st

HERE: Final = Path(__file__).resolve().parent
_IMPORT = re.compile(r"^import .*\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default\b)", re.MULTILINE)


def script(*names: str) -> str:
    """The joined source of ``js/<name>.js``, the component's own file last."""
    parts = [(HERE / "js" / f"{name}.js").read_text(encoding="utf-8") for name in names]
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", part)) for part in parts)


def style(*names: str) -> str:
    """The joined ``css/<name>.css``."""
    return "\n".join((HERE / "css" / f"{name}.css").read_text(encoding="utf-8") for name in names)


def component(name: str, *, js: tuple[str, ...], css: tuple[str, ...]) -> Callable[..., Any]:
    """Register a component drawn into an empty ``<div class="root">``; call once, at import."""
    return st.components.v2.component(
        f"tbt_{name}", html='<div class="root"></div>\n<!-- -->', css=style(*css), js=script(*js)
    )
