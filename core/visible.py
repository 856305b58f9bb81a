"""Any text made safe and readable on one line: nothing unseen is left in it.

Spaces, newlines, controls, zero-width and direction-changing characters get a mark. The
marks themselves are escaped when they occur in the text, so two different texts never look
the same because of a mark.
"""

from __future__ import annotations

from typing import Final

import regex

MARKS: Final = {" ": "␣", "\n": "↵", "\t": "⇥"}
"""The three invisible characters that ordinary text is full of."""

_NAMES: Final = {
    0x85: "NEL",
    0xA0: "NBSP",
    0xAD: "SHY",
    0x34F: "CGJ",
    0x61C: "ALM",
    0x180E: "MVS",
    0x200B: "ZWSP",
    0x200C: "ZWNJ",
    0x200D: "ZWJ",
    0x200E: "LRM",
    0x200F: "RLM",
    0x2028: "LS",
    0x2029: "PS",
    0x202A: "LRE",
    0x202B: "RLE",
    0x202C: "PDF",
    0x202D: "LRO",
    0x202E: "RLO",
    0x202F: "NNBSP",
    0x2060: "WJ",
    0x2066: "LRI",
    0x2067: "RLI",
    0x2068: "FSI",
    0x2069: "PDI",
    0x3000: "IDSP",
    0xFE0E: "VS15",
    0xFE0F: "VS16",
    0xFEFF: "BOM",
}
"""Usual abbreviations of characters that leave no ink; others are written ‹U+XXXX›."""

_UNSEEN: Final = r"[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\u2400-\u2421␣↵⇥‹›◌]"
_LONELY: Final = r"^(?=\p{M})"
"""A combining mark at the start needs something to stand on, or it lands on its neighbour."""
_FIND: Final = regex.compile(f"{_UNSEEN}|{_LONELY}")
# of the tag characters only the regional flags: anything longer could hide a text
_FLAG: Final = r"\U0001F3F4[\U000E0030-\U000E0039\U000E0061-\U000E007A]{3,6}\U000E007F"
_PICTURE: Final = r"(?!\p{Cn})\p{Extended_Pictographic}(?:\uFE0F|\p{Emoji_Modifier})?"
_EMOJI: Final = rf"(?:{_FLAG}|{_PICTURE}(?:\u200D{_PICTURE})*|[0-9#*]\uFE0F\u20E3)"
_FIND_OR_KEEP: Final = regex.compile(
    rf"(?P<keep>{_EMOJI}|(?<=[\p{{L}}\p{{M}}])[\u200C\u200D](?=[\p{{L}}\p{{M}}]))"
    rf"|{_UNSEEN}|{_LONELY}"
)


def _mark(match: regex.Match[str]) -> str:
    char: str = match[0]
    if not char:
        return "◌"
    if char in MARKS:
        return MARKS[char]
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"‹{_NAMES.get(code) or f'U+{code:04X}'}›"


def _replace(match: regex.Match[str]) -> str:
    found: str = match[0]
    return found if match.lastgroup == "keep" else _mark(match)


def visible(text: str, *, whole: bool = False) -> str:
    """``text`` with everything unseen made visible: ``a b\\n`` → ``a␣b↵``.

    The result holds no raw control, whitespace, zero-width or bidi character. ``whole``
    keeps the joiners that an emoji or a word is made with, for showing a whole character
    (👨‍👩‍👧‍👦) instead of the pieces it was built from.
    """
    if text.isascii() and text.isprintable():
        return text.replace(" ", MARKS[" "])
    shown: str = _FIND_OR_KEEP.sub(_replace, text) if whole else _FIND.sub(_mark, text)
    return shown


def hexes(data: bytes) -> str:
    """Bytes as they are written in labels: ``‹E5 9B›``."""
    return f"‹{data.hex(' ').upper()}›"


def visible_bytes(data: bytes) -> str:
    """The text of ``data`` made visible, with the bytes that form no character as hexes."""
    try:
        return visible(data.decode())
    except UnicodeDecodeError:
        pass
    shown = []
    while data:
        try:
            shown.append(visible(data.decode()))
            break
        except UnicodeDecodeError as error:
            stop = error.end
            # neighbouring broken bytes share one pair of brackets
            while stop < len(data) and _is_broken(data[stop : stop + 4]):
                stop += 1
            shown += [visible(data[: error.start].decode()), hexes(data[error.start : stop])]
            data = data[stop:]
    return "".join(shown)


def _is_broken(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start == 0
    return False
