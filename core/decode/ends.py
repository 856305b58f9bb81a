"""Which tokens end a text of a beam search: the model's own, and those that the reader names.

An entry is a text that one token writes (``.``, `` the``, ``<|im_end|>``; ``\\n``, ``\\r`` and
``\\t`` for what cannot be typed), an id (``#13``), or ``#none``: without the model's own. A
backslash before ``#`` or another backslash takes its meaning away.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from core.engine.protocol import Engine
from core.faults import Fault
from core.settings import BeamSettings
from core.tokens import Vocabulary, visible

NONE: Final = "#none"
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "#": "#"}
_SHOWN: Final = 12
"""Tokens of a text that a sentence names."""


def end_ids(settings: BeamSettings, engine: Engine) -> tuple[int, ...]:
    """The ids that end a text, the model's own first; remembered, so cheap to ask for.

    Raises Fault for a text that no single token of the model writes, and for an unknown id.
    """
    own = engine.info.end_ids
    return _ids(settings.ends, own, engine.vocabulary) if settings.ends else own


@lru_cache(maxsize=64)
def _ids(entries: tuple[str, ...], own: tuple[int, ...], words: Vocabulary) -> tuple[int, ...]:
    found = [] if NONE in entries else list(own)
    for entry in entries:
        if entry != NONE:
            found += _of_entry(entry, words)
    return tuple(dict.fromkeys(found))


def _of_entry(entry: str, words: Vocabulary) -> list[int]:
    if re.fullmatch(r"#[0-9]{1,12}", entry):
        id = int(entry[1:])
        if id >= words.size:
            raise Fault("unknown_token", id=id, limit=words.size - 1)
        return [id]
    text = re.sub(r"\\([nrt\\#])", lambda match: _ESCAPES[match[1]], entry)
    controls = words.control_spans(text)
    if [(c.start, c.stop) for c in controls] == [(0, len(text))]:
        return [controls[0].id]
    # Within a text, not at its start: there some tokenizers take a space away.
    return _writing(text, words) or [_read(text, words)]


def _writing(text: str, words: Vocabulary) -> list[int]:
    """All tokens that write just this (a character can have one of its own and one of its byte)."""
    wanted = text.encode(errors="replace")
    return [id for id, spelling in enumerate(_spellings(words)) if spelling == wanted]


@lru_cache(maxsize=2)
def _spellings(words: Vocabulary) -> tuple[bytes, ...]:
    return tuple(words.spellings())


def _read(text: str, words: Vocabulary) -> int:
    """The one token that a text is read as. Raises Fault if it is more, or none at all."""
    opening, closing = words.frame
    read = words.encode(text, literal=True).ids
    ids = read[len(opening) : len(read) - closing]
    if len(ids) == 1 and ids[0] < words.size:
        return ids[0]
    if len(ids) < 2:
        raise Fault("end_unknown", text=visible(text))
    pieces = " · ".join(map(words.label, ids[:_SHOWN])) + (" …" if len(ids) > _SHOWN else "")
    raise Fault("end_several_tokens", text=visible(text), n=len(ids), pieces=pieces)
