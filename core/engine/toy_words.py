"""The toy's tokenizer: a word is a token, and words are separated by spaces."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Sequence
from typing import Final

from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from core.faults import Fault
from core.text.reader import Stretch
from core.tokens import Control, Encoded, Vocabulary, visible
from core.trace import Token

SPREAD: Final = 1_000_000
"""Words outside the vocabulary get ids from V to V + SPREAD - 1, the same on every machine."""
MOST_WORDS: Final = 10_000
"""Words outside the vocabulary that are remembered; the oldest are forgotten first."""


class ToyVocabulary(Vocabulary):
    """A vocabulary of whole words.

    A prompt may use other words too. Those become *prompt-only* tokens with ids ≥ V: the model
    can never choose them, for it has no logit for them.
    """

    def __init__(self, words: Sequence[str], end_ids: Sequence[int] = ()) -> None:
        rows = {str(id): id for id in range(len(words))}
        super().__init__(Tokenizer(WordLevel(rows, unk_token="0")), end_ids=end_ids)
        self._words = tuple(words)
        self._ids = {word: id for id, word in reversed(list(enumerate(words)))}
        self._guard = threading.Lock()
        self._others: dict[int, str] = {}

    # --- text → tokens

    def encode(self, text: str, *, literal: bool = False) -> Encoded:
        """One token a word. ``literal`` reads an end word as a prompt-only token."""
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        words = clean.split()
        ids = tuple(self._id(word, literal) for word in words)
        read = " ".join(words)
        notes = {
            "surrogate_replaced": clean != text,
            "text_changed": read != clean,
            "control_in_prompt": any(id in self.end_ids for id in ids),
        }
        return Encoded(ids, read, tuple(note for note, true in notes.items() if true))

    def _id(self, word: str, literal: bool) -> int:
        id = self._ids.get(word)
        if id is not None and not (literal and id in self.end_ids):
            return id
        slot = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big") % SPREAD
        with self._guard:
            while self._others.get(other := self.size + slot, word) != word:
                slot = (slot + 1) % SPREAD
            self._others[other] = word
            if len(self._others) > MOST_WORDS:
                del self._others[next(iter(self._others))]
        return other

    def stretches(
        self, prompt: str, *, chat: bool = False, literal: bool = False, system: str | None = None
    ) -> tuple[str, tuple[Stretch, ...]]:
        """Always raises Fault: nothing was learned that could be played again."""
        raise Fault("toy_no_merges")

    def control_spans(self, text: str) -> tuple[Control, ...]:
        """The end words in a text."""
        return tuple(
            Control(match.start(), match.end(), self._ids[match[0]])
            for match in re.finditer(r"\S+", text)
            if self._ids.get(match[0]) in self.end_ids
        )

    # --- tokens → text

    def tokens(self, ids: Sequence[int], prompt_length: int) -> tuple[Token, ...]:
        """A token's text begins with the space that parts it from the word before."""
        tokens: list[Token] = []
        offset = 0
        for position, id in enumerate(ids):
            word = self._word(id)
            text = f" {word}" if position else word
            tokens.append(
                Token(
                    id=id,
                    position=position,
                    text=text,
                    label=self.label(id),
                    piece=word,
                    bytes=text.encode(),
                    special=id in self.end_ids,
                    source="prompt" if position < prompt_length else "generated",
                    group=(position, position + 1),
                    span=(offset, offset + len(text)),
                )
            )
            offset += len(text)
        return tuple(tokens)

    def text(self, ids: Sequence[int], skip_special: bool = False) -> str:
        """The words, one space between them."""
        shown = [id for id in ids if not (skip_special and id in self.end_ids)]
        return " ".join(self._word(id) for id in shown)

    def settled(self, ids: Sequence[int], skip_special: bool = False) -> str:
        """The same: a word is never unfinished."""
        return self.text(ids, skip_special)

    # --- the vocabulary

    def _word(self, id: int) -> str:
        word = self._words[id] if 0 <= id < self.size else self._others.get(id)
        if word is None:
            raise Fault("unknown_token", id=id, limit=self.size - 1)
        return word

    def bytes_of(self, id: int) -> bytes:
        return self._word(id).encode()

    def spellings(self, *, first: bool = False) -> list[bytes]:
        """Every word, with the space before it where it does not open the text."""
        space = "" if first else " "
        return [
            b"" if id in self.end_ids else f"{space}{word}".encode()
            for id, word in enumerate(self._words)
        ]

    @property
    def drops_first_space(self) -> bool:
        return True

    def is_special(self, id: int) -> bool:
        self._word(id)
        return id in self.end_ids

    def label(self, id: int) -> str:
        return visible(self._word(id)) or "‹empty›"

    def labels(self) -> tuple[str, ...]:
        return tuple(map(self.label, range(self.size)))

    @property
    def unused(self) -> frozenset[int]:
        return frozenset()
