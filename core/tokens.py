"""Text to tokens and back: what the model reads, shown without loss.

One law holds everything together: the bytes of the tokens of ``encode(text)``, joined, are
the UTF-8 of the text that was read; where a tokenizer reads something else than was typed,
``Encoded.text`` says what, and a note says why.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final

from tokenizers import Tokenizer

from core.faults import Fault
from core.text import characters
from core.text.chat import render
from core.text.entries import Entries
from core.text.reader import (
    MAX_CHARACTERS,
    Control,
    Encoded,
    Reader,
    Region,
    Stretch,
    check_length,
    private_copy,
    repair,
)
from core.text.search import Index
from core.trace import Token
from core.visible import visible

__all__ = ["MAX_CHARACTERS", "Control", "Encoded", "Vocabulary", "visible"]

_SLOT: Final = "\ue000\ue001"
"""Stands for the user's message while its place in a chat is sought."""


class Vocabulary:
    """A tokenizer and everything the pages ask about its tokens.

    Never changes after construction, so all users and threads share one. The tokenizer
    handed in must not be changed afterwards.

    Args:
        size: the model's number of logits V; may exceed the tokenizer's number of entries
            (padding rows). Default: the tokenizer's.
        end_ids: tokens that end a text; they count as special.
        chat_template: the model's jinja template, if it has one.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        size: int | None = None,
        end_ids: Iterable[int] = (),
        chat_template: str | None = None,
    ) -> None:
        if tokenizer.truncation or tokenizer.padding or tokenizer.encode_special_tokens:
            tokenizer = private_copy(tokenizer, plain=False)
        self.end_ids: Final = tuple(end_ids)
        self._entries = Entries(tokenizer, size, self.end_ids)
        self._reader = Reader(self._entries)
        self._template = chat_template
        self._lock = threading.Lock()
        self._labels: tuple[str, ...] | None = None
        self._index: Index | None = None

    @property
    def size(self) -> int:
        """V: valid ids are 0 … V - 1."""
        return self._entries.size

    @property
    def tokenizer(self) -> Tokenizer:
        """The library's tokenizer, which must not be changed."""
        return self._entries.tokenizer

    @property
    def frame(self) -> tuple[tuple[int, ...], int]:
        """What the tokenizer adds to every text: ids before it, and how many tokens after it."""
        return tuple(self._reader.opening), self._reader.closing

    # --- text → tokens

    def encode(self, text: str, *, literal: bool = False) -> Encoded:
        """The tokens of ``text``, with those that the tokenizer adds itself (``<bos>``).

        ``literal`` reads control strings such as ``<|im_end|>`` as plain text. A text that
        already begins with the tokenizer's own start token doesn't get a second one. The
        empty text may give no token at all. Raises Fault for a text above MAX_CHARACTERS.
        """
        clean, plain = self._wrapped(text, False, literal, None)
        return self._noted(self._reader.read(clean, plain), text, clean, literal)

    def read(
        self, prompt: str, *, chat: bool = False, literal: bool = False, system: str | None = None
    ) -> Encoded:
        """What the model reads for a prompt: as typed, or wrapped as a message of a chat.

        With both ``chat`` and ``literal`` the template's control strings stay control
        tokens, and those inside the prompt are plain text. Raises Fault as ``encode`` and
        ``chat`` do.
        """
        if not chat:
            return self.encode(prompt, literal=literal)
        text, plain = self._wrapped(prompt, chat, literal, system)
        return self._noted(self._reader.read(text, plain), prompt, repair(prompt), literal)

    def stretches(
        self, prompt: str, *, chat: bool = False, literal: bool = False, system: str | None = None
    ) -> tuple[str, tuple[Stretch, ...]]:
        """The text of ``read``, cut where another tokenizer takes over. Raises Fault alike.

        Most texts are one stretch; control strings read as plain text make it several.
        """
        return self._reader.stretches(*self._wrapped(prompt, chat, literal, system))

    def _wrapped(
        self, prompt: str, chat: bool, literal: bool, system: str | None
    ) -> tuple[str, Region]:
        """What is read, and the part of it in which control strings are plain text."""
        check_length(prompt)
        clean = repair(prompt)
        if not chat:
            return clean, (0, len(clean)) if literal else (0, 0)
        text = self.chat(clean, system=system)
        check_length(text)
        return text, self._message(text, system) if literal else (0, 0)

    def _noted(self, encoded: Encoded, typed: str, clean: str, literal: bool) -> Encoded:
        notes = encoded.notes
        if clean.count("\ufffd") > typed.count("\ufffd"):
            notes = ("surrogate_replaced", *notes)
        # most prompts hold no special token at all: their tokens tell
        if not literal and not self._entries.special.isdisjoint(encoded.ids):
            notes += ("control_in_prompt",) if self.control_spans(clean) else ()
        return dataclasses.replace(encoded, notes=notes)

    def _message(self, text: str, system: str | None) -> Region:
        """Where the user's message stands in a rendered chat."""
        parts = self.chat(_SLOT, system=system).split(_SLOT)
        if len(parts) != 2 or not (text.startswith(parts[0]) and text.endswith(parts[1])):
            raise Fault("chat_template_failed", reason="the message is not copied as it is")
        return len(parts[0]), len(text) - len(parts[1])

    def control_spans(self, text: str) -> tuple[Control, ...]:
        """Where control strings stand in ``text``: what becomes a control token, not text."""
        return self._reader.controls(text)

    def chat(self, text: str, *, system: str | None = None) -> str:
        """One user's message in the model's chat template, up to where the answer begins.

        Raises Fault when the model has no template, or when the template fails.
        """
        if self._template is None:
            raise Fault("no_chat_template")
        start, end = self._reader.opening[:1], self.end_ids[:1]
        names = [self._entries.piece(ids[0]) or "" if ids else "" for ids in (start, end)]
        return render(self._template, text, system=system, start=names[0], end=names[1])

    @property
    def has_chat(self) -> bool:
        """Whether the model comes with a chat template."""
        return self._template is not None

    # --- tokens → text

    def tokens(self, ids: Sequence[int], prompt_length: int) -> tuple[Token, ...]:
        """The record of each token; the first ``prompt_length`` are the prompt's.

        Groups tile the positions, spans tile ``text(ids)``. Raises Fault for an unknown id.
        """
        tokens: list[Token] = []
        offset = 0
        for run, data in self._entries.runs(ids):
            text, groups = characters.group(data)
            first = len(tokens)
            for group in groups:
                for index in range(*group.parts):
                    id, position = run[index], first + index
                    token = Token(
                        id=id,
                        position=position,
                        text=data[index].decode(errors="ignore"),
                        label=self.label(id),
                        piece=self._entries.piece(id) or "",
                        bytes=data[index],
                        special=id in self._entries.special,
                        source="prompt" if position < prompt_length else "generated",
                        group=(first + group.parts[0], first + group.parts[1]),
                        span=(offset + group.span[0], offset + group.span[1]),
                    )
                    tokens.append(token)
            offset += len(text)
        return tuple(tokens)

    def text(self, ids: Sequence[int], skip_special: bool = False) -> str:
        """The text of ``ids``; broken or unfinished characters are shown as U+FFFD."""
        return self._entries.spell(ids, skip_special=skip_special).decode(errors="replace")

    def settled(self, ids: Sequence[int], skip_special: bool = False) -> str:
        """The text of ``ids`` without an unfinished character at its end.

        More tokens never change it: ``settled(ids[:n])`` begins ``text(ids)`` for every n.
        """
        data = self._entries.spell(ids, skip_special=skip_special)
        return data[: len(data) - characters.unfinished(data)].decode(errors="replace")

    # --- the vocabulary

    def bytes_of(self, id: int) -> bytes:
        """The bytes of one token alone; empty for an unused row. Raises Fault if unknown."""
        return self._entries.bytes_of(id)

    def spellings(self, *, first: bool = False) -> list[bytes]:
        """The bytes that each of the V ids adds to a text: to one that goes on, or as its first
        token. None for special ids and unused rows."""
        return self._entries.spellings(first=first)

    @property
    def drops_first_space(self) -> bool:
        """Whether a text does not begin with the space that its first token brings."""
        return self._entries.drops_first_space

    def is_special(self, id: int) -> bool:
        """Whether the token is an instruction (``<|im_end|>``) and not text."""
        return self._entries.known(id) in self._entries.special

    def label(self, id: int) -> str:
        """The token in a form that is safe and readable anywhere, never empty.

        Labels may hold right-to-left letters: draw each in its own ``<bdi>`` or SVG text.
        """
        known = self._entries.known(id)
        if self._labels is not None:
            return self._labels[known]
        return self._entries.label(known, self._entries.piece(known))

    def labels(self) -> tuple[str, ...]:
        """The labels of all V ids, made once."""
        with self._lock:
            if self._labels is None:
                pieces = {id: piece for piece, id in self._entries.tokenizer.get_vocab().items()}
                make = self._entries.label
                self._labels = tuple(make(id, pieces.get(id)) for id in range(self.size))
            return self._labels

    @cached_property
    def unused(self) -> frozenset[int]:
        """Rows of the model that no entry of the vocabulary belongs to."""
        used = self._entries.tokenizer.get_vocab().values()
        return frozenset(range(self.size)).difference(used)

    def search(self, query: str, limit: int = 50) -> tuple[int, ...]:
        """Ids of tokens for a query: a number is an id; then whole, beginning, inside.

        Spaces may be typed or written ␣, or left out at the start; capitals matter only
        for the order. The empty query finds nothing.
        """
        labels = self.labels()
        with self._lock:
            if self._index is None:
                self._index = Index(labels)
        return self._index.find(query, limit)
