"""From the bytes of tokens to characters: which tokens make one character together.

A character here is what a reader calls one (an extended grapheme cluster): 国, é, 👨‍👩‍👧‍👦.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import regex

_CLUSTER: Final = regex.compile(r"\X")


@dataclass(frozen=True)
class Group:
    """Neighbouring parts that only together are whole characters."""

    parts: tuple[int, int]
    """Indices ``start, stop`` of the parts."""
    span: tuple[int, int]
    """Code points ``start, stop`` within the decoded text."""


def decode(data: bytes) -> tuple[str, list[int]]:
    """The text of ``data``, and the byte offset at which each of its code points starts.

    Broken UTF-8 becomes one U+FFFD for each maximal broken part, as the standard advises.
    """
    text = data.decode(errors="replace")
    starts: list[int] = []
    offset = 0
    for char in text:
        starts.append(offset)
        offset += _width(char) if char != "\ufffd" else _broken_width(data[offset : offset + 4])
    return text, starts


def _width(char: str) -> int:
    code = ord(char)
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


def _broken_width(data: bytes) -> int:
    """Bytes that the U+FFFD at the start of ``data`` stands for (3 when it is a real one)."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.end if error.start == 0 else 3
    return 3


def unfinished(data: bytes) -> int:
    """How many bytes at the end of ``data`` begin a character that is not complete yet: 0 … 3."""
    for count in range(1, min(3, len(data)) + 1):
        try:
            data[-count:].decode()
        except UnicodeDecodeError as error:
            if error.start == 0 and error.reason == "unexpected end of data":
                return count
    return 0


def group(parts: Sequence[bytes]) -> tuple[str, list[Group]]:
    """The text of all parts together, and the groups that tile both parts and text.

    Two parts are joined only where the border between them lies inside a character.
    """
    text, starts = decode(b"".join(parts))
    breaks = {starts[match.start()]: match.start() for match in _CLUSTER.finditer(text)}
    groups: list[Group] = []
    first, begin = 0, 0
    ends = list(itertools.accumulate(map(len, parts)))
    for index, end in enumerate(ends):
        stop = len(text) if end == ends[-1] else breaks.get(end)
        if stop is not None:
            groups.append(Group((first, index + 1), (begin, stop)))
            first, begin = index + 1, stop
    return text, groups
