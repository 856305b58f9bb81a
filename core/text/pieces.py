"""From entries of a vocabulary to bytes, as the tokenizer's own decoder would do it.

Three families cover what exists: byte-level BPE (each byte has a printable stand-in),
SentencePiece-like (``▁`` is a space, ``<0xE5>`` is a byte) and all others, for which the
tokenizer's decoder is asked. The family is read from the tokenizer's parts, never guessed
from a model's name.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol

from tokenizers import Tokenizer

_BYTE_PIECE: Final = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class Pieces(Protocol):
    """How one family of tokenizers spells bytes in its vocabulary."""

    def bytes_of(self, id: int, piece: str) -> bytes:
        """The bytes of one entry, taken alone."""

    def run(self, entries: Sequence[tuple[int, str]], *, first: bool) -> list[bytes]:
        """The bytes of each of several neighbouring entries; ``first``: they open the text."""

    def is_byte(self, piece: str) -> bool:
        """Whether the entry stands for a single byte and not for a character."""


@cache
def byte_alphabet() -> dict[str, int]:
    """GPT-2's table: the printable stand-in of each byte → the byte."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {chr(b): b for b in plain} | {chr(256 + n): b for n, b in enumerate(rest)}


@dataclass(frozen=True)
class ByteLevel:
    """GPT-2, Llama 3, SmolLM2, Qwen: ``Ġcapital`` is `` capital``."""

    def bytes_of(self, id: int, piece: str) -> bytes:
        try:
            return bytes(map(byte_alphabet().__getitem__, piece))
        except KeyError:
            return piece.encode(errors="replace")

    def run(self, entries: Sequence[tuple[int, str]], *, first: bool) -> list[bytes]:
        return [self.bytes_of(*entry) for entry in entries]

    def is_byte(self, piece: str) -> bool:
        return False


@dataclass(frozen=True)
class SentencePiece:
    """Llama 2, Gemma, Mistral: ``▁capital`` is `` capital``, ``<0xE5>`` is one byte."""

    space: str = "▁"
    fallback: bool = True
    """Whether ``<0xE5>`` is a byte."""
    strip: bool = False
    """Whether a space was put before the text, which the decoder takes away again."""

    def bytes_of(self, id: int, piece: str) -> bytes:
        if self.is_byte(piece):
            return bytes([int(piece[3:5], 16)])
        return piece.replace(self.space, " ").encode(errors="replace")

    def run(self, entries: Sequence[tuple[int, str]], *, first: bool) -> list[bytes]:
        data = [self.bytes_of(*entry) for entry in entries]
        if first and self.strip and data:
            data[0] = data[0].removeprefix(b" ")
        return data

    def is_byte(self, piece: str) -> bool:
        return self.fallback and _BYTE_PIECE.fullmatch(piece) is not None


@dataclass(frozen=True)
class Decoded:
    """Any other tokenizer: an entry is what the decoder adds to the text for it."""

    tokenizer: Tokenizer

    def _text(self, *ids: int) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=False)

    def bytes_of(self, id: int, piece: str) -> bytes:
        return self._text(id).encode(errors="replace")

    def run(self, entries: Sequence[tuple[int, str]], *, first: bool) -> list[bytes]:
        data = [self.bytes_of(*entry) for entry in entries[:1]]
        for (before, _), (id, piece) in itertools.pairwise(entries):
            alone, both = self._text(before), self._text(before, id)
            added = both[len(alone) :] if both.startswith(alone) else None
            data.append(
                self.bytes_of(id, piece) if added is None else added.encode(errors="replace")
            )
        return data

    def is_byte(self, piece: str) -> bool:
        return False


def _parts(component: Any) -> Iterator[dict[str, Any]]:
    """The plain descriptions of a decoder or pre-tokenizer, sequences flattened."""
    stack = [json.loads(component.__getstate__())] if component is not None else []
    while stack:
        part = stack.pop(0)
        inner = part.get("decoders") or part.get("pretokenizers")
        if inner:
            stack = [*inner, *stack]
        else:
            yield part


def pieces_of(tokenizer: Tokenizer) -> Pieces:
    """The family of this tokenizer, decided from its decoder and pre-tokenizer."""
    decoders = list(_parts(tokenizer.decoder))
    names = {part["type"] for part in decoders}
    if "ByteLevel" in names or (
        not names and any(p["type"] == "ByteLevel" for p in _parts(tokenizer.pre_tokenizer))
    ):
        return ByteLevel()
    space: str | None = None
    strip = False
    for part in decoders:
        if part["type"] == "Replace" and part["content"] == " ":
            space = part["pattern"].get("String")
        elif part["type"] == "Metaspace":
            space = part["replacement"]
            strip = part.get("prepend_scheme", "always") != "never"
        elif part["type"] == "Strip" and part["content"] == " " and part["start"] > 0:
            strip = True
    fallback = "ByteFallback" in names
    if space is None and not fallback:
        return Decoded(tokenizer)
    return SentencePiece(space or "▁", fallback, strip)
