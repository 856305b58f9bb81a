"""Before the merges: what a tokenizer makes of the text, and the words that it reads apart."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tokenizers import Encoding, PreTokenizedString, Tokenizer

from core.text.pieces import SentencePiece, pieces_of
from core.tokens import Vocabulary

WIDE_STOP: Final = re.compile("[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]$")
"""Chinese and Japanese punctuation, which no space follows."""
NESTED: Final = ("normalizers", "pretokenizers")


@dataclass(frozen=True)
class Word:
    """A part of the text that is turned into tokens without a look at its neighbours."""

    text: str
    """As it stands in the text that is read."""
    span: tuple[int, int]
    """Code points ``start, stop`` in that text."""
    normal: str | None
    """What the merges start from: after normalisation, in the alphabet of the vocabulary.

    ``None`` where no merges take place (an added entry), or where that cannot be told.
    """
    positions: tuple[int, int]
    """Positions ``start, stop`` of its tokens in the prompt."""
    ids: tuple[int, ...]
    ends: tuple[int, ...] = ()
    """Where each token ends in ``normal``; -1 for one that ends inside a character."""
    added: bool = False
    """Found in the text as a whole before anything else, as an entry added to the vocabulary."""
    whole: bool = True
    """Not whole: a piece of a longer word, cut where a finished token begins with a space, or
    ends with Chinese punctuation.

    Merges never cross a border between finished tokens, so the piece alone gives the same.
    """


@dataclass(frozen=True)
class Cutting:
    """A prompt on its way from text to words."""

    text: str
    """The text that is read, with what a chat template writes."""
    normal: str
    """The same after normalisation."""
    words: tuple[Word, ...]
    """In the order of the text; none where the library reports other tokens than were read."""
    normalizer: tuple[str, ...]
    """The library's names of the steps of the normalisation; empty: there is none."""
    pre_tokenizer: tuple[str, ...]
    """The same for the cut into words."""
    opening: tuple[int, ...]
    """Ids that the tokenizer puts before every text by itself."""

    def word_at(self, position: int) -> int | None:
        """The index of the word that token ``position`` belongs to."""
        found = (i for i, w in enumerate(self.words) if w.positions[0] <= position < w.positions[1])
        return next(found, None)


def cut(
    vocabulary: Vocabulary, prompt: str, *, chat: bool = False, literal: bool = False
) -> Cutting:
    """The words of a prompt. Raises Fault as ``Vocabulary.read``."""
    text, stretches = vocabulary.stretches(prompt, chat=chat, literal=literal)
    ids = vocabulary.read(prompt, chat=chat, literal=literal).ids
    tokenizer = vocabulary.tokenizer
    words: list[Word] = []
    normal: list[str] = []
    for stretch in stretches:
        start, stop = stretch.span
        position = words[-1].positions[1] if words else 0
        if stretch.control is not None:
            part, places = text[start:stop], (position, position + 1)
            words.append(Word(part, stretch.span, None, places, (stretch.control,), added=True))
            normal.append(part)
        else:
            made = _Words(stretch.tokenizer, text[start:stop], start, position)
            words += made.words
            normal.append(made.normal)
    first = _first(words, ids, vocabulary.frame[1])
    return Cutting(
        text=text,
        normal="".join(normal),
        words=() if first is None else tuple(_moved(word, first) for word in words),
        normalizer=tuple(_names(tokenizer.normalizer)),
        pre_tokenizer=tuple(_names(tokenizer.pre_tokenizer)),
        opening=ids[: first or 0],
    )


def _first(words: Sequence[Word], ids: Sequence[int], closing: int) -> int | None:
    """The position of the first word's first token; ``None`` if its tokens were not read."""
    made = tuple(itertools.chain.from_iterable(word.ids for word in words))
    first = len(ids) - closing - len(made)
    return first if first >= 0 and tuple(ids[first : first + len(made)]) == made else None


def _moved(word: Word, by: int) -> Word:
    start, stop = word.positions
    return dataclasses.replace(word, positions=(start + by, stop + by))


def _names(component: Any) -> Iterator[str]:
    """The types of a normaliser or pre-tokenizer, sequences flattened, in the order applied."""
    stack = [json.loads(component.__getstate__())] if component is not None else []
    while stack:
        part = stack.pop(0)
        inner = next((part[key] for key in NESTED if key in part), None)
        if inner is None:
            yield str(part["type"])
        else:
            stack = [*inner, *stack]


class _Words:
    """The words of one stretch of text."""

    def __init__(self, tokenizer: Tokenizer, text: str, start: int, position: int) -> None:
        self.tokenizer = tokenizer
        self.text, self.start, self.position = text, start, position
        family = pieces_of(tokenizer)
        self.space = family.space if isinstance(family, SentencePiece) else None
        self.encoding = tokenizer.encode(text, add_special_tokens=False)
        self.words: list[Word] = []
        self._normal: list[str] = []
        first, since = 0, 0
        for index in _added(tokenizer, self.encoding):
            begin, end = self.encoding.offsets[index]
            self._plain(first, index, (since, begin))
            self._put(index, index + 1, None, added=True)
            self._normal.append(text[begin:end])
            first, since = index + 1, end
        self._plain(first, len(self.encoding.ids), (since, len(text)))

    @property
    def normal(self) -> str:
        return "".join(self._normal)

    def _put(self, first: int, last: int, normal: str | None, **more: Any) -> None:
        offsets = self.encoding.offsets[first:last]
        begin, end = min(o[0] for o in offsets), max(o[1] for o in offsets)
        self.words.append(
            Word(
                text=self.text[begin:end],
                span=(self.start + begin, self.start + end),
                normal=normal,
                positions=(self.position + first, self.position + last),
                ids=tuple(self.encoding.ids[first:last]),
                **more,
            )
        )

    def _plain(self, first: int, last: int, span: tuple[int, int]) -> None:
        """Words of the text between two added entries, whose tokens are ``first … last - 1``."""
        normal, parts = _parts(self.tokenizer, self.text[span[0] : span[1]])
        self._normal.append(normal)
        # the library gives offsets in bytes of the word
        made = [(part, self.tokenizer.model.tokenize(part)) for part in parts]
        if [t.id for _, tokens in made for t in tokens] != self.encoding.ids[first:last]:
            self._unexplained(first, last)
            return
        for part, tokens in made:
            data = part.encode()
            borders = [0, *self._borders(data, tokens), len(tokens)]
            for a, b in itertools.pairwise(borders):
                if a < b:
                    begin, end = tokens[a].offsets[0], tokens[b - 1].offsets[1]
                    ends = tuple(_letters(data[begin : t.offsets[1]]) for t in tokens[a:b])
                    piece = data[begin:end].decode()
                    self._put(first + a, first + b, piece, ends=ends, whole=len(borders) == 2)
            first += len(tokens)

    def _borders(self, data: bytes, tokens: Sequence[Any]) -> Iterator[int]:
        """Where a word that holds spaces, or sentences without any, can be cut."""
        if self.space is None:
            return
        space = self.space.encode()
        for index, token in enumerate(tokens):
            start = token.offsets[0]
            before = data[max(start - 3, 0) : start].decode(errors="ignore")
            if index and (data.startswith(space, start) or WIDE_STOP.search(before)):
                yield index

    def _unexplained(self, first: int, last: int) -> None:
        """Words as the library reports them, without what they were made from."""
        rows = zip(range(first, last), self.encoding.word_ids[first:last], strict=True)
        for _, group in itertools.groupby(rows, lambda row: row[1]):
            indices = [index for index, _ in group]
            self._put(indices[0], indices[-1] + 1, None)


def _letters(data: bytes) -> int:
    """How many code points ``data`` is; -1 when its last one is not complete."""
    try:
        return len(data.decode())
    except UnicodeDecodeError:
        return -1


def _parts(tokenizer: Tokenizer, text: str) -> tuple[str, list[str]]:
    """``text`` after normalisation, and the parts that the pre-tokenizer makes of that."""
    pre = PreTokenizedString(text)
    normalizer, pre_tokenizer = tokenizer.normalizer, tokenizer.pre_tokenizer
    if normalizer is not None:
        pre.normalize(normalizer.normalize)
    normal = "".join(part for part, _, _ in pre.get_splits())
    if pre_tokenizer is not None:
        pre_tokenizer.pre_tokenize(pre)
    return normal, [part for part, _, _ in pre.get_splits() if part]


def _added(tokenizer: Tokenizer, encoding: Encoding) -> Iterator[int]:
    """Indices of the tokens that were found as added entries."""
    entries = tokenizer.get_added_tokens_decoder()
    literal = tokenizer.encode_special_tokens
    sizes: dict[int | None, int] = {}
    for word in encoding.word_ids:
        sizes[word] = sizes.get(word, 0) + 1
    for index, (id, word) in enumerate(zip(encoding.ids, encoding.word_ids, strict=True)):
        entry = entries.get(id)
        if entry is not None and sizes[word] == 1 and not (literal and entry.special):
            yield index
