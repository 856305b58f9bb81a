"""What a reader can set on the KV cache page, in one link parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from core.lab.kv_records import CACHE_BITS, KEY_SPANS, KeySpan, Trick
from ui import lab_options
from ui.lab_options import Table
from ui.view import one_of, within

FIELD: Final = "kv"
STEPS: Final = (2, 4, 8, 16, 32)
LENGTHS: Final = (512, 2048, 8192, 32768, 131072)
WINDOWS: Final = (0, 32, 64, 128)
SINKS: Final = (0, 1, 4, 8)
SECOND_CAP: Final = 120
"""Characters of the second prompt in a link."""
FULL: Final = "full"
BITS: Final = (FULL, *map(str, CACHE_BITS))
HERE: Final = ("short", "long")


def _among(numbers: tuple[int, ...]) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = int(text)
        if number not in numbers:
            raise ValueError(text)
        return number

    return parse


TABLE: Final[Table] = {
    "steps": (8, _among(STEPS)),
    "at": (-1, within(-1, max(STEPS))),
    "head": (0, within(0, 1023)),
    "length": (8192, _among(LENGTHS)),
    "bits": ("4", one_of(BITS)),
    "keys": ("channel", one_of(KEY_SPANS)),
    "window": (0, _among(WINDOWS)),
    "sinks": (4, _among(SINKS)),
    "before": ("long", one_of(HERE)),
    "second": ("", lambda text: text[:SECOND_CAP]),
}


def here() -> dict[str, Any]:
    """What this reader set."""
    return lab_options.here(FIELD, TABLE)


def chosen(name: str, key: str) -> Callable[[], None]:
    """The callback of the widget ``key`` that sets the option ``name``."""
    return lab_options.chosen(FIELD, TABLE, name, key)


def trick_here() -> Trick:
    """The smaller cache that this reader put together."""
    values = here()
    keys: KeySpan = values["keys"]
    window = values["window"] or None
    return Trick(
        bits=None if values["bits"] == FULL else int(values["bits"]),
        keys=keys if values["bits"] != FULL else "channel",
        window=window,
        sinks=values["sinks"] if window else 0,
    )
