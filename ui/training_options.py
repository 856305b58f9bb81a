"""What a reader can set on the Training page, in one link parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import streamlit as st

from core.lab.speculative_records import DRAFT, GAMMA
from core.lab.training_records import OPTIMIZERS, OTHER, RATE, SENTENCE, STEPS
from ui import lab_options, lab_parts
from ui.lab_options import Table
from ui.view import one_of, within
from ui.widgets import show, show_text

FIELD: Final = "training"
TEXT_CAP: Final = 160
"""Characters of a text in a link."""
DRAFT_CAP: Final = 80
STEP_COUNTS: Final = (1, 5, 10, 20, 50)
RATES: Final = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
NEW: Final = (16, 32, 64)
MOST_GAMMA: Final = 8
RULES: Final = ("greedy", "own")
"""Greedy, or the settings of the reader's run."""


def _among(numbers: Sequence[Any], kind: Callable[[str], Any]) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        number = kind(text)
        if number not in numbers:
            raise ValueError(text)
        return number

    return parse


def _text(cap: int) -> Callable[[str], str]:
    return lambda text: " ".join(text.split())[:cap]


TABLE: Final[Table] = {
    "text": (SENTENCE, _text(TEXT_CAP)),
    "ask": ("", _text(TEXT_CAP)),
    "other": (OTHER, _text(TEXT_CAP)),
    "steps": (STEPS, _among(STEP_COUNTS, int)),
    "rate": (RATE, _among(RATES, float)),
    "opt": ("adamw", one_of(OPTIMIZERS)),
    "draft": (DRAFT, _text(DRAFT_CAP)),
    "gamma": (GAMMA, within(1, MOST_GAMMA)),
    "new": (32, _among(NEW, int)),
    "rule": ("greedy", one_of(RULES)),
}


def here() -> dict[str, Any]:
    """What this reader set."""
    return lab_options.here(FIELD, TABLE)


def chosen(name: str, key: str) -> Callable[[], None]:
    """The callback of the widget ``key`` that sets the option ``name``."""
    return lab_options.chosen(FIELD, TABLE, name, key)


def buttons(name: str, values: Sequence[Any], **words: Any) -> None:
    """A row of buttons that sets one option; ``words`` as ``ui.lab_parts.buttons`` takes them."""
    lab_parts.buttons(FIELD, TABLE, name, values, **words)


def slider(
    name: str,
    values: Sequence[Any],
    *,
    label: str,
    help: str,
    say: Callable[[Any], str] = str,
) -> None:
    """A slider over a few values that sets one option."""
    key = f"training_{name}"
    st.select_slider(
        label,
        list(values),
        key=show(key, here()[name]),
        format_func=say,
        help=help,
        on_change=chosen(name, key),
    )


def field(name: str, value: str, *, label: str, help: str) -> None:
    """A line of text that sets one option."""
    key = f"training_{name}"
    show_text(key, value)
    st.text_input(label, key=key, max_chars=TEXT_CAP, help=help, on_change=chosen(name, key))
