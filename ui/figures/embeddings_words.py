"""Sums of words: which token a typed word stands for, and what the sum is near to. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.faults import Fault
from core.tokens import Vocabulary
from ui.figures.embeddings import Label, Near, nearest
from ui.i18n import Catalog

EXAMPLE: Final = ("king", "man", "woman")
SHOWN: Final = 8
_SHOWN_PIECES: Final = 6


@dataclass(frozen=True)
class Word:
    """A typed word, and the one token that stands for it."""

    typed: str
    id: int
    spaced: bool
    """Whether the token with a space in front was taken, as words stand within a text."""


def word_of(typed: str, vocabulary: Vocabulary) -> Word:
    """The single token of a word, as it stands within a text; ``#42`` names an id.

    Where words are written apart that is the token with a space in front, if there is one.

    Raises Fault for an empty word, one that takes several tokens, and an unknown id.
    """
    text = typed.strip()
    if not text:
        raise Fault("word_empty")
    if text[0] == "#" and text[1:].isdecimal() and len(text) < 12:
        id = int(text[1:])
        vocabulary.bytes_of(id)
        return Word(typed, id, spaced=False)
    # Chinese and Japanese words stand in a text without spaces.
    wide = unicodedata.east_asian_width(text[0]) in ("W", "F")
    for spaced in (False, True) if wide else (True, False):
        ids = _plain_ids((" " if spaced else "") + text, vocabulary)
        if len(ids) == 1:
            return Word(typed, ids[0], spaced)
    ids = _plain_ids(text, vocabulary)
    pieces = [vocabulary.label(id) for id in ids]
    more = " …" if len(pieces) > _SHOWN_PIECES else ""
    listed = " · ".join(pieces[:_SHOWN_PIECES]) + more
    raise Fault("word_several_tokens", word=text, n=len(pieces), pieces=listed)


def _plain_ids(text: str, vocabulary: Vocabulary) -> tuple[int, ...]:
    """The tokens of a text without those that the tokenizer puts around every text."""
    return tuple(
        id for id in vocabulary.encode(text, literal=True).ids if not vocabulary.is_special(id)
    )


def words_typed(text: str) -> tuple[str, str, str]:
    """The three words of a link, one a line; the example where there are none."""
    if not text:
        return EXAMPLE
    first, second, third, *_ = [*text.split("\n"), "", "", ""]
    return first, second, third


def sum_data(
    words: Sequence[Word], ids: Sequence[int], cosines: Sequence[float], label: Label, t: Catalog
) -> dict[str, Any]:
    """The ranking of the sum's neighbours, without the three inputs and with them.

    ``ids`` and ``cosines`` are the nearest rows, best first, at least SHOWN + 3 of them.
    """
    used = [word.id for word in words]
    names = [label(id) for id in used]
    included = nearest(ids, cosines, SHOWN)
    excluded = nearest(ids, cosines, SHOWN, used)
    formula = t("embeddings.sum_formula", a=names[0], b=names[1], c=names[2])
    first = included[0]
    verdict = "embeddings.sum_stays" if first.id in used else "embeddings.sum_leaves"
    return {
        "headline": formula,
        "lists": [
            _list(t, "excluded", excluded, used, label),
            _list(t, "included", included, used, label),
        ],
        "verdict": t(verdict, token=label(first.id), cosine=f"{first.cosine:.3f}"),
    }


def _list(
    t: Catalog, kind: str, found: Sequence[Near], used: Sequence[int], label: Label
) -> dict[str, Any]:
    return {
        "title": t(f"embeddings.sum_{kind}"),
        "note": t(f"embeddings.sum_{kind}_note"),
        "kind": "cosine",
        "rows": [
            {
                "rank": rank,
                "id": near.id,
                "label": label(near.id),
                "value": near.cosine,
                "marked": near.id in used,
                "aside": t("embeddings.sum_input") if near.id in used else "",
            }
            for rank, near in enumerate(found, 1)
        ],
    }
