"""What a tokenizer learned: its table of merges, or the scores of its pieces."""

from __future__ import annotations

import json
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from tokenizers import Tokenizer

Kind = Literal["bpe", "unigram", "wordpiece", "wordlevel", "other"]

_KINDS: Final[dict[str, Kind]] = {
    "BPE": "bpe",
    "Unigram": "unigram",
    "WordPiece": "wordpiece",
    "WordLevel": "wordlevel",
}
UNKNOWN_PENALTY: Final = 10.0
"""How far below the worst piece the library puts a character that no piece covers."""


class Rule(NamedTuple):
    rank: int
    """Place in the table, from 0: the smaller, the earlier it was learned, and it wins."""
    result: int
    """Id of the merged entry."""


class Rules:
    """Read from a tokenizer once; never changes."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        model: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
        self.kind: Final[Kind] = _KINDS.get(str(model.get("type")), "other")
        self.dropout: Final[float] = model.get("dropout") or 0.0
        """Share of the merges that are left out at random; above 0 nothing can be replayed."""
        self.ignore_merges: Final = bool(model.get("ignore_merges"))
        """Whether a word that is an entry itself is taken without merging."""
        self.byte_fallback: Final = bool(model.get("byte_fallback"))
        self.fuse_unknown: Final = bool(model.get("fuse_unk", self.kind == "unigram"))
        self.prefix: Final[str] = model.get("continuing_subword_prefix") or ""
        self.suffix: Final[str] = model.get("end_of_word_suffix") or ""
        self.merges = 0
        """How many merges the table holds."""
        self.unknown: int | None = None
        """Id that stands for characters that the vocabulary lacks."""
        self.scores: dict[str, float] = {}
        """ln p of each piece, for "unigram"."""
        self.longest = 0
        """Code points of the longest of them."""
        self._model = tokenizer.model
        if self.kind == "unigram":
            self.scores = dict(model["vocab"])
            self.longest = max(map(len, self.scores), default=0)
            self.unknown = model.get("unk_id")
        elif self.kind == "bpe":
            self._table(model["vocab"], model["merges"])
            unknown = model.get("unk_token")
            self.unknown = None if unknown is None else self.id_of(unknown)

    def _table(self, ids: dict[str, int], pairs: list[list[str]]) -> None:
        skip = len(self.prefix)
        self.merges = len(pairs)
        keys = np.fromiter((ids[a] << 32 | ids[b] for a, b in pairs), np.int64, len(pairs))
        # of equal pairs the library keeps the last
        self._ranks = np.argsort(keys, kind="stable")
        self._keys = keys[self._ranks]
        self._results = np.fromiter((ids[a + b[skip:]] for a, b in pairs), np.int64, len(pairs))

    def id_of(self, piece: str) -> int | None:
        """The entry that is written ``piece``, if there is one."""
        found: int | None = self._model.token_to_id(piece)
        return found

    def fallback(self, text: str) -> list[int] | None:
        """Ids of the bytes of ``text``, if this tokenizer has an entry for each."""
        if not self.byte_fallback:
            return None
        ids = [self.id_of(f"<0x{byte:02X}>") for byte in text.encode()]
        found = [id for id in ids if id is not None]
        return found if len(found) == len(ids) else None

    @property
    def unknown_score(self) -> float:
        return min(self.scores.values(), default=0.0) - UNKNOWN_PENALTY

    def rule(self, left: int, right: int) -> Rule | None:
        """The merge of two neighbouring entries, if the table has one."""
        if not self.merges:
            return None
        key = left << 32 | right
        place = int(np.searchsorted(self._keys, key, side="right")) - 1
        if place < 0 or self._keys[place] != key:
            return None
        rank = int(self._ranks[place])
        return Rule(rank, int(self._results[rank]))


def rules_of(tokenizer: Tokenizer) -> Rules:
    """The rules; a vocabulary of 260,000 entries takes about three seconds. Keep them."""
    return Rules(tokenizer)
