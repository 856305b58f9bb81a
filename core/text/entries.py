"""The entries of a vocabulary: what each id is, and what ids spell together."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from tokenizers import Tokenizer

from core.faults import Fault
from core.text.pieces import Decoded, SentencePiece, pieces_of
from core.visible import visible, visible_bytes


class Entries:
    """Ids → raw pieces, bytes and text. Read-only."""

    def __init__(self, tokenizer: Tokenizer, size: int | None, end_ids: Iterable[int]) -> None:
        self.tokenizer: Final = tokenizer
        self.pieces: Final = pieces_of(tokenizer)
        added = tokenizer.get_added_tokens_decoder()
        self._added: Final = frozenset(added)
        self.special: Final = frozenset(i for i, t in added.items() if t.special) | set(end_ids)
        self.size: Final = size or 1 + max(tokenizer.get_vocab().values(), default=-1)

    @property
    def drops_first_space(self) -> bool:
        """Whether a text does not begin with the space that its first token brings."""
        if isinstance(self.pieces, Decoded):
            probe = self._probe
            return probe is not None and self._inside(probe) == b" " + self.bytes_of(probe)
        return isinstance(self.pieces, SentencePiece) and self.pieces.strip

    def spellings(self, *, first: bool) -> list[bytes]:
        """The bytes that each id adds to a text, as its first token or to one that goes on; none
        for special and unused ids."""
        spell = self._opening if first and self.drops_first_space else self._inside
        return [b"" if id in self.special else spell(id) for id in range(self.size)]

    def _opening(self, id: int) -> bytes:
        """The bytes of one token that opens a text."""
        if self._is_verbatim(id):
            return self.bytes_of(id)
        return self.bytes_of(id).removeprefix(b" ")

    def _inside(self, id: int) -> bytes:
        """The bytes of one token behind another one."""
        probe = self._probe
        if probe is None or not isinstance(self.pieces, Decoded) or self._is_verbatim(id):
            return self.bytes_of(id)
        # A decoder is asked by id; it needs no pieces.
        return self.pieces.run([(probe, ""), (id, "")], first=True)[1]

    @cached_property
    def _probe(self) -> int | None:
        """Some plain token."""
        plain = (id for id in range(self.size) if not self._is_verbatim(id) and self.bytes_of(id))
        return next(plain, None)

    def known(self, id: int) -> int:
        """The id itself. Raises Fault if the model has no such row."""
        if not 0 <= id < self.size:
            raise Fault("unknown_token", id=id, limit=self.size - 1)
        return id

    def piece(self, id: int) -> str | None:
        """The raw entry; ``None`` for a row of the model that no entry belongs to."""
        piece: str | None = self.tokenizer.id_to_token(id)
        return piece

    def bytes_of(self, id: int) -> bytes:
        """The bytes of one token alone; empty for an unused row."""
        piece = self.piece(self.known(id))
        if piece is None:
            return b""
        if self._is_verbatim(id):
            return piece.encode(errors="replace")
        return self.pieces.bytes_of(id, piece)

    def _is_verbatim(self, id: int) -> bool:
        """Added tokens are matched in the text as they are written."""
        return id in self._added or id in self.special

    def label(self, id: int, piece: str | None) -> str:
        """The entry in a form that is safe and readable anywhere, never empty."""
        if piece is None:
            return f"‹unused {id}›"
        if self._is_verbatim(id):
            return visible(piece) or "‹empty›"
        data = self.pieces.bytes_of(id, piece)
        if self.pieces.is_byte(piece):
            return f"‹{data.hex().upper()}›"
        return visible_bytes(data) or "‹empty›"

    def runs(self, ids: Sequence[int]) -> Iterator[tuple[list[int], list[bytes]]]:
        """Neighbouring plain tokens together, special ones alone, with the bytes of each."""
        first = True
        for special, group in itertools.groupby(ids, lambda id: self.known(id) in self.special):
            run = list(group)
            if special:
                yield from (([id], [self.bytes_of(id)]) for id in run)
            else:
                yield run, list(self._run_bytes(run, first=first))
                first = False

    def _run_bytes(self, run: Sequence[int], *, first: bool) -> Iterator[bytes]:
        pieces = [self.piece(id) for id in run]
        verbatim = [id in self._added or p is None for id, p in zip(run, pieces, strict=True)]
        start = 0
        for fixed, part in itertools.groupby(verbatim):
            stop = start + len(list(part))
            if fixed:
                yield from map(self.bytes_of, run[start:stop])
            else:
                entries = [(run[i], pieces[i] or "") for i in range(start, stop)]
                yield from self.pieces.run(entries, first=first and start == 0)
            start = stop

    def spell(self, ids: Sequence[int], *, skip_special: bool = False) -> bytes:
        """The bytes of all tokens, joined."""
        if skip_special:
            ids = [id for id in ids if self.known(id) not in self.special]
        return b"".join(itertools.chain.from_iterable(data for _, data in self.runs(ids)))
