"""A trick as one line of text, and back."""

from __future__ import annotations

from typing import Any

from core.faults import Fault
from core.lab.kv_records import Trick

FULL = "full"


def trick_text(trick: Trick) -> str:
    """``bits=4,keys=channel``, ``window=64,sinks=4``; ``full`` for the cache as it is."""
    parts = []
    if trick.bits is not None:
        parts += [f"bits={trick.bits}", f"keys={trick.keys}"]
    if trick.window is not None:
        parts.append(f"window={trick.window}")
        if trick.sinks:
            parts.append(f"sinks={trick.sinks}")
    return ",".join(parts) or FULL


def read_trick(text: str) -> Trick:
    """The same read. Raises Fault with one sentence for anything else."""
    given: dict[str, Any] = {}
    for part in text.strip().split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if part.strip() == FULL:
            continue
        if name not in ("bits", "keys", "window", "sinks") or not equals or name in given:
            raise Fault("kv_trick", value=text)
        if name != "keys" and not (value.isdecimal() and value.isascii() and len(value) < 10):
            raise Fault("kv_trick", value=text)
        given[name] = value if name == "keys" else int(value)
    return Trick(**given)
