"""A regular expression that the whole generated text has to match, token by token.

The library llguidance follows the expression through the bytes of the vocabulary, so that it
serves any tokenizer: a token is possible when the text with it can still be completed to a
match, however the tokenizer itself would have written it. What it understands is the syntax of
Rust's regex crate: no looking around, no references back, and so no exponential time.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import numpy as np
from jaxtyping import Bool

from core.faults import Fault
from core.text.reader import repair
from core.tokens import Vocabulary

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLParserLimits, LLTokenizer

Bits = np.ndarray[Any, np.dtype[np.uint8]]
VOCABULARIES: Final = 4
"""Whose tries of bytes are remembered; that of 262,144 tokens takes about 20 MB."""
_GRAMMAR: Final = '%llguidance {{"no_forcing": true}}\nstart: /{}/\n'
"""``no_forcing``: every way to write a text is possible, not the tokenizer's own alone."""

_HEAVY: Final = ("limit", "fuel", "too many", "too big", "too large", "too complex")
"""Words of the library's errors that tell of its limits."""


class _Bytes:
    """What llguidance calls a tokenizer and makes a trie of: the bytes of every id, and one
    more id for the end.

    Where a text drops the space that its first token brings, ids have a second entry, V later,
    with their bytes as a first token.
    """

    bos_token_id = None
    is_tokenizer_wrapper = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        twice = vocabulary.drops_first_space
        opening = vocabulary.spellings(first=True) if twice else []
        self.tokens = [*vocabulary.spellings(), *opening, b"<end>"]
        self.eos_token_id = len(self.tokens) - 1
        self.special_token_ids = [self.eos_token_id]

    def __call__(self, text: str) -> list[int]:
        """Would be asked to write a text that is forced; with ``no_forcing`` none ever is."""
        raise ValueError(text)


@lru_cache(maxsize=VOCABULARIES)
def _trie(vocabulary: Vocabulary) -> LLTokenizer:
    from llguidance import LLTokenizer  # noqa: PLC0415 - few runs need it
    from llguidance import TokenizerWrapper as Wrapper  # noqa: PLC0415

    return LLTokenizer(cast(Wrapper, _Bytes(vocabulary)), slices=[])


def _limits() -> LLParserLimits:
    """Against patterns that would take long: a step of the automaton takes at most 50 ms."""
    from llguidance import LLParserLimits  # noqa: PLC0415

    return LLParserLimits(
        initial_lexer_fuel=500_000,
        step_lexer_fuel=500_000,
        max_lexer_states=20_000,
        max_grammar_size=100_000,
        verbose_errors=False,
    )


class Pattern:
    """One pattern on one vocabulary. Safe to share between threads.

    Raises Fault for a pattern that is no regular expression, or too heavy a one.
    """

    def __init__(self, pattern: str, vocabulary: Vocabulary) -> None:
        self._text = repair(pattern)
        self._vocabulary = vocabulary
        self._ends = np.array(vocabulary.end_ids, dtype=int)
        self._lock = threading.Lock()
        self._fresh = self._compiled()

    def allowed(self, generated: Sequence[int]) -> Bool[np.ndarray, " vocabulary"]:
        """Which tokens may come after these: an end token exactly where the text matches.

        All False where the text can no longer match, and where it matches, cannot go on, and
        the vocabulary has no end token. Raises Fault when the pattern turns out too heavy.
        """
        read, start = self._entries(generated)
        with self._lock:
            found = _following(self._fresh.deep_copy(), read)
            if isinstance(found, str):
                # All copies add to one automaton; what fills it may have been other texts.
                self._fresh = self._compiled()
                found = _following(self._fresh.deep_copy(), read)
        if isinstance(found, str):
            raise Fault("pattern_too_heavy")
        if found is None:
            return np.zeros(self._vocabulary.size, dtype=bool)
        mask, matches = found
        bits = np.unpackbits(mask, bitorder="little")
        keeps = bits[start : start + self._vocabulary.size].astype(bool)
        keeps[self._ends] = matches
        return keeps

    def _entries(self, generated: Sequence[int]) -> tuple[list[int], int]:
        """The entries of the trie for these ids, and where those of the next id begin."""
        vocabulary = self._vocabulary
        read = [id for id in generated if not vocabulary.is_special(id)]
        if not vocabulary.drops_first_space:
            return read, 0
        if not read:
            return read, vocabulary.size
        return [read[0] + vocabulary.size, *read[1:]], 0

    def _compiled(self) -> LLMatcher:
        from llguidance import LLMatcher, regex_to_lark  # noqa: PLC0415

        grammar = _GRAMMAR.format(regex_to_lark(self._text, use_ascii=""))
        trie = _trie(self._vocabulary)
        matcher = LLMatcher(trie, grammar, log_level=0, limits=_limits())
        if matcher.is_error():
            self._refuse(matcher.get_error())
        return matcher

    @staticmethod
    def _refuse(message: str) -> NoReturn:
        if _is_heavy(message):
            raise Fault("pattern_too_heavy")
        raise Fault("pattern_not_understood", reason=_reason(message))


def _following(matcher: LLMatcher, generated: Sequence[int]) -> tuple[Bits, bool] | str | None:
    """(one bit an id, whether the text matches as it is) after these tokens; ``None`` where they
    are no beginning of a match; or which limit the automaton has met."""
    read = matcher.try_consume_tokens(list(generated))
    mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
    matches = matcher.is_accepting()
    if _is_heavy(matcher.get_error()):
        return matcher.get_error()
    if read < len(generated) or matcher.is_error():
        return None
    return mask, matches


def _is_heavy(message: str) -> bool:
    told = message.lower()
    return any(word in told for word in _HEAVY)


def _reason(message: str) -> str:
    """The library's own reason, without the picture around it."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (errors or lines or ["?"])[0].rpartition("(in regex): ")[2].partition(";")[0]
