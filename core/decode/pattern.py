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
from typing import Any, Final, cast

import numpy as np
from jaxtyping import Bool

from core.faults import Fault
from core.tokens import Vocabulary

VOCABULARIES: Final = 4
"""Whose tries of bytes are remembered; that of 262,144 tokens takes about 20 MB."""
_GRAMMAR: Final = '%llguidance {{"no_forcing": true}}\nstart: /{}/\n'
"""``no_forcing``: every way to write a text is possible, not the tokenizer's own alone."""


class _Trie:
    """What llguidance calls a tokenizer: the bytes of every id, and one more id for the end."""

    bos_token_id = None
    is_tokenizer_wrapper = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.tokens = [*vocabulary.spellings(), b"<end>"]
        self.eos_token_id = vocabulary.size
        self.special_token_ids = [vocabulary.size]

    def __call__(self, text: str) -> list[int]:
        raise NotImplementedError("nothing is ever forced, so no text has to be written in tokens")


@lru_cache(maxsize=VOCABULARIES)
def _tokenizer(vocabulary: Vocabulary) -> Any:
    from llguidance import LLTokenizer  # noqa: PLC0415 - few runs need it
    from llguidance import TokenizerWrapper as Wrapper  # noqa: PLC0415

    return LLTokenizer(cast(Wrapper, _Trie(vocabulary)), slices=[])


def _limits() -> Any:
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
        from llguidance import LLMatcher, regex_to_lark  # noqa: PLC0415

        self._text = pattern
        self._size = vocabulary.size
        self._ends = np.array(vocabulary.end_ids, dtype=int)
        self._lock = threading.Lock()
        whole = f"(?:{pattern})"
        # The tokens of such a vocabulary bring a space that the text does not begin with.
        spaced = f" ?{whole}" if vocabulary.drops_first_space else whole
        grammar = _GRAMMAR.format(regex_to_lark(spaced, use_ascii=""))
        self._fresh = LLMatcher(_tokenizer(vocabulary), grammar, log_level=0, limits=_limits())
        if self._fresh.is_error():
            self._refuse(self._fresh.get_error())

    def allowed(self, generated: Sequence[int]) -> Bool[np.ndarray, " vocabulary"]:
        """Which tokens may come after these: an end token exactly where the text matches.

        All False where the text can no longer match, and where it matches, cannot go on, and
        the vocabulary has no end token. Raises Fault when the pattern turns out too heavy.
        """
        with self._lock:
            matcher = self._fresh.deep_copy()
        keeps = np.zeros(self._size, dtype=bool)
        if not self._follow(matcher, generated):
            return keeps
        mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
        if matcher.is_error():
            self._refuse(matcher.get_error())
        keeps[:] = np.unpackbits(mask, count=self._size, bitorder="little")
        keeps[self._ends] = matcher.is_accepting()
        return keeps

    def _follow(self, matcher: Any, generated: Sequence[int]) -> bool:
        """Whether the text so far can be the beginning of a match."""
        read = matcher.try_consume_tokens(list(generated))
        return bool(read == len(generated))

    def _refuse(self, message: str) -> None:
        told = message.lower()
        heavy = any(word in told for word in ("limit", "fuel", "complex", "too big", "too large"))
        if heavy:
            raise Fault("pattern_too_heavy", pattern=self._text)
        raise Fault("pattern_not_understood", pattern=self._text, reason=_reason(message))


def _reason(message: str) -> str:
    """The library's own reason, without the picture around it."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (errors or lines or ["?"])[0]
