"""Text → ids, and an honest account of what was read."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tokenizers import Encoding, Tokenizer

from core.faults import Fault
from core.text.entries import Entries
from core.text.pieces import ByteLevel, byte_alphabet

MAX_CHARACTERS: Final = 200_000
"""Longer texts are refused before they are tokenized."""

Region = tuple[int, int]
"""Code points ``start, stop`` of a part of a text."""


@dataclass(frozen=True)
class Encoded:
    """A text as the model reads it."""

    ids: tuple[int, ...]
    text: str
    """The text actually read, without the tokens that the tokenizer adds by itself."""
    notes: tuple[str, ...] = ()
    """What the reader should know, as keys of ``locales/*/notes.toml``:

    ``surrogate_replaced`` (half of a character became U+FFFD), ``character_unreadable``
    (a character that the vocabulary cannot spell became U+FFFD), ``text_changed`` (the
    tokenizer rewrites this text), ``control_in_prompt`` (control strings of the prompt
    became control tokens).
    """


@dataclass(frozen=True)
class Control:
    """A control string inside a text."""

    start: int
    stop: int
    """Code points ``start, stop`` within the text."""
    id: int


@dataclass(frozen=True, eq=False)
class Stretch:
    """A part of a text that one tokenizer reads in one go."""

    span: Region
    tokenizer: Tokenizer
    control: int | None = None
    """The id that the whole part stands for, where a chat template wrote a control string."""


class Reader:
    """Reads texts with one tokenizer, which it never changes."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._tokenizer = entries.tokenizer
        # a tokenizer that adds nothing to the empty text is not asked about another one,
        # which a vocabulary of a few words may be unable to read
        frame = self._tokenizer.encode("")
        if frame.ids:
            frame = _encode(self._tokenizer, "a")
        added = frame.special_tokens_mask
        self.opening: Final = frame.ids[: len(list(itertools.takewhile(bool, added)))]
        """Ids that the tokenizer puts before every text (``<bos>``)."""
        self.closing: Final = len(list(itertools.takewhile(bool, reversed(added))))
        """How many tokens the tokenizer puts after every text."""
        self._lock = threading.Lock()
        self._plain: Tokenizer | None = None

    def controls(self, text: str) -> tuple[Control, ...]:
        """Where control strings stand in ``text``."""
        return self._controls(_encode(self._tokenizer, repair(text)))

    def _controls(self, encoding: Encoding) -> tuple[Control, ...]:
        rows = zip(encoding.ids, encoding.offsets, encoding.special_tokens_mask, strict=True)
        special = self._entries.special
        return tuple(Control(*span, id) for id, span, own in rows if id in special and not own)

    def read(self, text: str, plain: Region = (0, 0)) -> Encoded:
        """Ids of ``text``; control strings that reach into ``plain`` are read as plain text.

        ``text`` must be repaired. No note is made of control strings: only the caller
        knows which of them are the user's.
        """
        notes: list[str] = []
        ids, back = self._ids(text, plain)
        if back != text:
            spelled = self._spellable(text)
            if spelled != text:
                notes.append("character_unreadable")
                text = spelled
                ids, back = self._ids(text, plain)
            if back != text:
                notes.append("text_changed")
        return Encoded(tuple(ids), back, tuple(notes))

    def stretches(self, text: str, plain: Region = (0, 0)) -> tuple[str, tuple[Stretch, ...]]:
        """The text that ``read`` hands to a tokenizer, and the parts that it is read in."""
        text = self._spellable(text)
        whole = (0, len(text))
        encoding = _encode(self._tokenizer, text)
        controls = self._controls(encoding) if plain[1] > plain[0] else ()
        kept = [c for c in controls if c.stop <= plain[0] or c.start >= plain[1]]
        if len(kept) == len(controls):
            return text, (Stretch(whole, self._tokenizer),)
        tokenizer = self._plain_tokenizer()
        parts: list[Stretch] = []
        position = 0
        for control in kept:
            parts.append(Stretch((position, control.start), tokenizer))
            span = (control.start, control.stop)
            parts.append(Stretch(span, tokenizer, control=control.id))
            position = control.stop
        parts.append(Stretch((position, len(text)), tokenizer))
        return text, tuple(part for part in parts if part.span[1] > part.span[0])

    def _ids(self, text: str, plain: Region) -> tuple[list[int], str]:
        """The ids of ``text``, and the text that they spell."""
        encoding = _encode(self._tokenizer, text)
        ids: list[int] = encoding.ids
        own = len(self.opening)
        controls = self._controls(encoding) if plain[1] > plain[0] else ()
        kept = [c for c in controls if c.stop <= plain[0] or c.start >= plain[1]]
        if controls and not kept:
            ids = _encode(self._plain_tokenizer(), text).ids
        elif len(kept) < len(controls):
            ids = self._around(text, kept)
        if own and ids[own : 2 * own] == self.opening:
            # typed, or written by a chat template: one start is enough
            ids, own = ids[own:], 0
        spelled = self._entries.spell(ids[own : len(ids) - self.closing])
        return ids, spelled.decode(errors="replace")

    def _around(self, text: str, kept: Sequence[Control]) -> list[int]:
        """Ids of ``text`` in which only the ``kept`` control strings are control tokens."""
        tokenizer = self._plain_tokenizer()
        frame = tokenizer.encode("").ids
        ids, position = list(self.opening), 0
        for control in kept:
            ids += _encode(tokenizer, text[position : control.start], frame=False).ids
            ids.append(control.id)
            position = control.stop
        ids += _encode(tokenizer, text[position:], frame=False).ids
        return ids + frame[len(frame) - self.closing :]

    def _plain_tokenizer(self) -> Tokenizer:
        """A private copy that reads control strings as text; the shared one never changes."""
        with self._lock:
            if self._plain is None:
                self._plain = private_copy(self._tokenizer, plain=True)
            return self._plain

    def _spellable(self, text: str) -> str:
        """``text`` with U+FFFD for characters whose bytes a byte-level vocabulary lacks."""
        if not isinstance(self._entries.pieces, ByteLevel):
            return text
        alphabet = byte_alphabet().items()
        missing = {byte for char, byte in alphabet if self._tokenizer.token_to_id(char) is None}
        return "".join("\ufffd" if missing & set(char.encode()) else char for char in text)


def _encode(tokenizer: Tokenizer, text: str, *, frame: bool = True) -> Encoding:
    try:
        return tokenizer.encode(text, add_special_tokens=frame)
    except Exception as error:  # the library raises nothing more exact
        raise Fault("text_unreadable", reason=str(error)) from error


def repair(text: str) -> str:
    """``text`` without lone surrogates, which no UTF-8 can hold: each becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def check_length(text: str) -> None:
    """Raises Fault above MAX_CHARACTERS."""
    if len(text) > MAX_CHARACTERS:
        raise Fault("prompt_too_many_characters", count=len(text), limit=MAX_CHARACTERS)


def private_copy(tokenizer: Tokenizer, *, plain: bool) -> Tokenizer:
    """A tokenizer of one's own that neither cuts nor pads; ``plain``: it knows no controls."""
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    copy.encode_special_tokens = plain
    return copy
