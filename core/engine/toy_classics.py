"""Toy tables that come with the project, each with a lesson about beam search.

Their files hold, beside the table, ``max_new`` and ``answers`` worked out by hand.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Final

from core.engine.toy_table import ToyTable, read_table

FOLDER: Final = Path(__file__).with_name("toys")
CLASSICS: Final = ("beam_beats_greedy", "wider_is_worse", "length_penalty", "early_stopping")


def classic_path(name: str) -> Path:
    """The file of one of ``CLASSICS``. Raises KeyError for another name."""
    if name not in CLASSICS:
        raise KeyError(name)
    return FOLDER / f"{name}.json"


@cache
def limit_of(name: str) -> int:
    """The output limit of one of ``CLASSICS``. Raises KeyError for another name."""
    return int(json.loads(classic_path(name).read_text(encoding="utf-8"))["max_new"])


def classic(name: str) -> ToyTable:
    """The table of one of ``CLASSICS``. Raises KeyError for another name."""
    return read_table(classic_path(name))
