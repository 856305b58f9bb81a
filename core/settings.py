"""What a run is asked to do, validated once, at the border.

``RunSpec`` is the whole question (model, prompt, settings): two equal specs give the same
run on any machine with the same model. It is what the address bar holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, get_args

from core.faults import Fault

Strategy = Literal["greedy", "sample"]
FilterName = Literal["temperature", "top_k", "top_p", "min_p", "typical_p"]
ProcessorName = Literal[
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "no_repeat_ngram",
    "banned",
    "pattern",
]
StageName = Literal[FilterName, ProcessorName]
StopRule = Literal["full", "best"]
BeamKind = Literal["plain", "sampled", "diverse"]

STRATEGIES: Final[tuple[Strategy, ...]] = get_args(Strategy)
BEAM_KINDS: Final[tuple[BeamKind, ...]] = get_args(BeamKind)
STOP_RULES: Final[tuple[StopRule, ...]] = get_args(StopRule)
STAGE_NAMES: Final[tuple[FilterName, ...]] = get_args(FilterName)
"""The filters in their default order (DESIGN §4), which is also transformers' order."""
PROCESSOR_NAMES: Final[tuple[ProcessorName, ...]] = get_args(ProcessorName)
"""What changes single scores by looking at the text so far, before any filter, in this order."""

MAX_TEMPERATURE: Final = 100.0
MAX_NEW_LIMIT: Final = 1024
MAX_SEED: Final = 2**63 - 1
MAX_BEAMS: Final = 256
"""Of the library; a page offers fewer."""
MAX_PENALTY: Final = 10.0
MAX_NGRAM: Final = 100
MAX_WORDS: Final = 50
MAX_PATTERN: Final = 500
"""Characters of a pattern, and of a banned text."""
MAX_ROLL: Final = 2**31
MAX_ENDS: Final = 32
"""Further end tokens of a beam search."""
MAX_END: Final = 100
"""Characters of one."""


def _number(name: str, value: object, low: float, high: float, *, open_low: bool = False) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Fault("setting_not_a_number", name=name, value=value)
    number = float(value)
    below = number <= low if open_low else number < low
    if not math.isfinite(number) or below or number > high:
        raise Fault(
            "setting_out_of_range_open" if open_low else "setting_out_of_range",
            name=name,
            value=value,
            low=low,
            high=high,
        )
    return number


def _whole(name: str, value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Fault("setting_not_whole", name=name, value=value)
    if not low <= value <= high:
        raise Fault("setting_out_of_range", name=name, value=value, low=low, high=high)
    return value


@dataclass(frozen=True)
class Settings:
    """How the next token is chosen, and how many. ``None`` means "off".

    Raises :class:`~core.faults.Fault` with one sentence for each illegal value.
    """

    strategy: Strategy = "sample"
    temperature: float = 1.0
    """Divides the logits. 0 means greedy; 1 leaves them as they are. Legal: 0 … 100."""
    top_k: int | None = None
    """Keep exactly the k highest tokens. Legal: ≥ 1."""
    top_p: float | None = None
    """Keep the smallest set whose probability reaches p. Legal: 0 < p ≤ 1."""
    min_p: float | None = None
    """Drop tokens below this share of the highest probability. Legal: 0 … 1."""
    typical_p: float | None = None
    """Keep the tokens whose surprise is closest to the entropy, until their probability
    reaches p (locally typical sampling, Meister et al. 2023). Legal: 0 < p ≤ 1."""
    repetition_penalty: float | None = None
    """Scores of tokens that the text has: positive ones are divided by it, negative ones
    multiplied (Keskar et al. 2019). Legal: 0.01 … 10; 1 changes nothing."""
    presence_penalty: float | None = None
    """Subtracted from the score of each token generated before. Legal: -10 … 10."""
    frequency_penalty: float | None = None
    """Subtracted once for each time that the token was generated. Legal: -10 … 10."""
    no_repeat_ngram: int | None = None
    """No sequence of this many tokens comes twice, prompt included. Legal: 1 … 100."""
    banned: tuple[str, ...] = ()
    """Texts that are never completed, each as the tokenizer writes it with and without a
    space before it."""
    pattern: str = ""
    """A regular expression that the whole generated text has to match; empty is off."""
    order: tuple[FilterName, ...] = STAGE_NAMES
    """The order in which the filters are applied; those left out follow in the usual one."""
    seed: int = 0
    """With the step's index, gives the random number ``u`` of that step."""
    rolls: tuple[tuple[int, int], ...] = ()
    """(step index, count) pairs: the dice of that step were thrown ``count`` times more."""
    max_new: int = 24
    """Stop after this many new tokens (the "output limit")."""
    forced: tuple[tuple[int, int], ...] = ()
    """(step index, token id) pairs that overrule the dice, sorted by step."""

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise Fault("unknown_strategy", value=self.strategy, allowed=", ".join(STRATEGIES))
        put = object.__setattr__
        put(self, "temperature", _number("temperature", self.temperature, 0, MAX_TEMPERATURE))
        if self.top_k is not None:
            _whole("top-k", self.top_k, 1, 2**31)
        if self.top_p is not None:
            put(self, "top_p", _number("top-p", self.top_p, 0, 1, open_low=True))
        if self.min_p is not None:
            put(self, "min_p", _number("min-p", self.min_p, 0, 1))
        if self.typical_p is not None:
            put(self, "typical_p", _number("typical-p", self.typical_p, 0, 1, open_low=True))
        self._check_processors()
        named = tuple(self.order)
        if len(set(named)) < len(named) or not set(named) <= set(STAGE_NAMES):
            raise Fault("bad_order", value=",".join(named), allowed=",".join(STAGE_NAMES))
        put(self, "order", (*named, *(name for name in STAGE_NAMES if name not in named)))
        _whole("seed", self.seed, 0, MAX_SEED)
        _whole("max-new", self.max_new, 1, MAX_NEW_LIMIT)
        put(self, "forced", _sorted_pairs("force", self.forced, 2**31))
        rolls = _sorted_pairs("roll", self.rolls, MAX_ROLL)
        put(self, "rolls", tuple(pair for pair in rolls if pair[1] > 0))

    def _check_processors(self) -> None:
        put = object.__setattr__
        if self.repetition_penalty is not None:
            penalty = _number("repetition-penalty", self.repetition_penalty, 0.01, MAX_PENALTY)
            put(self, "repetition_penalty", penalty)
        for name in ("presence_penalty", "frequency_penalty"):
            value = getattr(self, name)
            if value is not None:
                shown = name.replace("_", "-")
                put(self, name, _number(shown, value, -MAX_PENALTY, MAX_PENALTY))
        if self.no_repeat_ngram is not None:
            _whole("no-repeat-ngram", self.no_repeat_ngram, 1, MAX_NGRAM)
        words = tuple(dict.fromkeys(word for word in self.banned if word))
        if len(words) > MAX_WORDS or any(len(word) > MAX_PATTERN for word in words):
            raise Fault("banned_too_long", words=MAX_WORDS, characters=MAX_PATTERN)
        put(self, "banned", words)
        if len(self.pattern) > MAX_PATTERN:
            raise Fault("pattern_too_long", characters=MAX_PATTERN)

    def parameter(self, name: StageName) -> float | int | str | None:
        """The value that stage ``name`` works with; ``None`` when it is off."""
        value = getattr(self, name)
        if isinstance(value, tuple):
            return "\n".join(value) or None
        found: float | int | str | None = None if value == "" else value
        return found

    @property
    def filters(self) -> tuple[FilterName, ...]:
        """Those that a reader sees, in the order applied: typical-p only where it is on."""
        return tuple(n for n in self.order if n != "typical_p" or self.typical_p is not None)

    def filter(self, name: FilterName) -> float | int | None:
        """The number that a filter works with; ``None`` when it is off."""
        value: float | int | None = getattr(self, name)
        return value

    @property
    def processors(self) -> tuple[ProcessorName, ...]:
        """Those that are on, in the order applied."""
        return tuple(name for name in PROCESSOR_NAMES if self.parameter(name) is not None)

    @property
    def is_greedy(self) -> bool:
        """Whether the highest token is taken: the strategy says so, or the temperature is 0."""
        return self.strategy == "greedy" or self.temperature == 0

    def forced_at(self, step: int) -> int | None:
        """The token id forced at ``step``, or ``None``."""
        return dict(self.forced).get(step)

    def roll_at(self, step: int) -> int:
        """How many times the dice of ``step`` were thrown again."""
        return dict(self.rolls).get(step, 0)


def _sorted_pairs(
    name: str, pairs: Iterable[tuple[int, int]], most: int
) -> tuple[tuple[int, int], ...]:
    table: dict[int, int] = {}
    for step, value in pairs:
        _whole(name, step, 0, MAX_NEW_LIMIT - 1)
        _whole(name, value, 0, most)
        table[step] = value
    return tuple(sorted(table.items()))


@dataclass(frozen=True)
class BeamSettings:
    """How a beam search goes about it; it reads the model's raw log-probabilities.

    Raises :class:`~core.faults.Fault` with one sentence for each illegal value.
    """

    width: int = 4
    """Beams kept alive, and hypotheses held. 1 is greedy. Legal: 1 … MAX_BEAMS."""
    length_penalty: float = 0.0
    """α: a score is Σ ln p ÷ length^α. 0 is off; above 0 favours long texts, below 0 short
    ones. Legal: -10 … 10."""
    stop: StopRule = "best"
    """"full": as soon as ``width`` hypotheses are held. "best": then, but only once no live
    beam can still reach a better score than the worst of them."""
    nbest: int | None = None
    """Hypotheses wanted, 1 … width; ``None``: all that are held."""
    max_new: int = 24
    """Stop after this many new tokens (the "output limit")."""
    ends: tuple[str, ...] = ()
    """What ends a text besides the model's own end tokens, as ``core.decode.ends`` reads it."""
    kind: BeamKind = "plain"
    """"sampled": the candidates are drawn without putting back, not the best ones (Kool et al.
    2019). "diverse": groups of beams, each of which pays for tokens that the groups before it
    took at the same step (Vijayakumar et al. 2018)."""
    temperature: float = 1.0
    """Of the draws of the sampled kind; above 0."""
    seed: int = 0
    """Of the draws of the sampled kind."""
    groups: int = 2
    """Of the diverse kind; divides the width."""
    diversity: float = 0.5
    """What each such token costs, in nats. Legal: 0 … 100."""

    def __post_init__(self) -> None:
        _whole("beams", self.width, 1, MAX_BEAMS)
        penalty = _number("length-penalty", self.length_penalty, -MAX_PENALTY, MAX_PENALTY)
        object.__setattr__(self, "length_penalty", penalty)
        if self.stop not in STOP_RULES:
            raise Fault("unknown_stop_rule", value=self.stop, allowed=", ".join(STOP_RULES))
        if self.nbest is not None:
            _whole("nbest", self.nbest, 1, self.width)
        _whole("max-new", self.max_new, 1, MAX_NEW_LIMIT)
        ends = tuple(dict.fromkeys(self.ends))
        if len(ends) > MAX_ENDS or not all(0 < len(end) <= MAX_END for end in ends):
            raise Fault("bad_ends", count=MAX_ENDS, characters=MAX_END)
        object.__setattr__(self, "ends", ends)
        self._check_kind()

    def _check_kind(self) -> None:
        if self.kind not in BEAM_KINDS:
            raise Fault("unknown_beam_kind", value=self.kind, allowed=", ".join(BEAM_KINDS))
        put, high = object.__setattr__, MAX_TEMPERATURE
        put(self, "temperature", _number("temperature", self.temperature, 0, high, open_low=True))
        _whole("seed", self.seed, 0, MAX_SEED)
        _whole("groups", self.groups, 1, MAX_BEAMS)
        put(self, "diversity", _number("diversity", self.diversity, 0, 100))
        if self.kind == "diverse" and self.width % self.groups:
            raise Fault("groups_do_not_fit", groups=self.groups, width=self.width)

    @property
    def best(self) -> int:
        """How many hypotheses are wanted at most."""
        return self.width if self.nbest is None else self.nbest


@dataclass(frozen=True)
class RunSpec:
    """The whole question: which model reads which text, and how it is to answer."""

    model: str = "smollm2-135m"
    prompt: str = ""
    settings: Settings = Settings()
    literal: bool = False
    """Treat control strings in the prompt (``<|im_end|>``) as plain text."""
    chat: bool = False
    """Wrap the prompt in the model's chat template first."""
