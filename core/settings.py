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
StageName = Literal["temperature", "top_k", "top_p", "min_p"]
StopRule = Literal["full", "best"]

STRATEGIES: Final[tuple[Strategy, ...]] = get_args(Strategy)
STOP_RULES: Final[tuple[StopRule, ...]] = get_args(StopRule)
STAGE_NAMES: Final[tuple[StageName, ...]] = get_args(StageName)
"""The filters in their default order (DESIGN §4), which is also transformers' order."""

MAX_TEMPERATURE: Final = 100.0
MAX_NEW_LIMIT: Final = 1024
MAX_SEED: Final = 2**63 - 1
MAX_BEAMS: Final = 256
"""Of the library; a page offers fewer."""
MAX_PENALTY: Final = 10.0


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
    order: tuple[StageName, ...] = STAGE_NAMES
    """The order in which the filters are applied: each name exactly once."""
    seed: int = 0
    """With the step's index, gives the random number ``u`` of that step."""
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
        if sorted(self.order) != sorted(STAGE_NAMES):
            raise Fault("bad_order", value=",".join(self.order), allowed=",".join(STAGE_NAMES))
        put(self, "order", tuple(self.order))
        _whole("seed", self.seed, 0, MAX_SEED)
        _whole("max-new", self.max_new, 1, MAX_NEW_LIMIT)
        put(self, "forced", _sorted_pairs(self.forced))

    def parameter(self, name: StageName) -> float | int | None:
        """The value that stage ``name`` works with; ``None`` when it is off."""
        value: float | int | None = getattr(self, name)
        return value

    @property
    def is_greedy(self) -> bool:
        """Whether the highest token is taken: the strategy says so, or the temperature is 0."""
        return self.strategy == "greedy" or self.temperature == 0

    def forced_at(self, step: int) -> int | None:
        """The token id forced at ``step``, or ``None``."""
        return dict(self.forced).get(step)


def _sorted_pairs(pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    table: dict[int, int] = {}
    for step, token in pairs:
        _whole("force", step, 0, MAX_NEW_LIMIT - 1)
        _whole("force", token, 0, 2**31)
        table[step] = token
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

    def __post_init__(self) -> None:
        _whole("beams", self.width, 1, MAX_BEAMS)
        penalty = _number("length-penalty", self.length_penalty, -MAX_PENALTY, MAX_PENALTY)
        object.__setattr__(self, "length_penalty", penalty)
        if self.stop not in STOP_RULES:
            raise Fault("unknown_stop_rule", value=self.stop, allowed=", ".join(STOP_RULES))
        if self.nbest is not None:
            _whole("nbest", self.nbest, 1, self.width)
        _whole("max-new", self.max_new, 1, MAX_NEW_LIMIT)

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
