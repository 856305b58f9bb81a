"""The records of a comparison: strategies side by side on one prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from core.beam_records import BeamSearch
from core.faults import Fault
from core.settings import BeamSettings, Settings, StageName
from core.trace import Choice, Stop

Dice = Literal["same", "own"]
"""The random numbers of the columns: of each step, one number for all (but for those that name
another seed), or one for each."""
DICE: Final[tuple[Dice, ...]] = get_args(Dice)
MAX_SAMPLES: Final = 100


@dataclass(frozen=True)
class Column:
    """One strategy: how a text is written, and by which model."""

    settings: Settings | BeamSettings
    model: str | None = None
    """``None``: the model of the comparison."""
    seeded: bool = False
    """Whether the seed is meant even where it is 0; another one always is."""


@dataclass(frozen=True)
class Question:
    """What is compared. Equal questions give equal answers; only the times differ.

    Raises Fault for a number of texts or tokens that is not legal.
    """

    prompt: str
    model: str
    columns: tuple[Column, ...]
    samples: int = 1
    """Texts drawn by each sampling column; greedy and beam search write the same one always."""
    dice: Dice = "same"
    max_new: int = 24
    literal: bool = False
    chat: bool = False

    def __post_init__(self) -> None:
        if self.dice not in DICE:
            raise Fault("unknown_dice", value=self.dice, allowed=", ".join(DICE))
        if not 1 <= self.samples <= MAX_SAMPLES:
            name, high = "samples", MAX_SAMPLES
            raise Fault("setting_out_of_range", name=name, value=self.samples, low=1, high=high)
        Settings(max_new=self.max_new)


@dataclass(frozen=True)
class Text:
    """One text that a column wrote."""

    sample: int
    """From 0."""
    choices: tuple[Choice, ...]
    """One a token, without stages. For a beam: of the best hypothesis, with ranks and entropies
    of the model's distribution, ``probability_filtered`` equal to the model's, no ``u``."""
    stop: Stop | None
    """``None``: it is still being written."""

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(choice.id for choice in self.choices)


@dataclass(frozen=True)
class Written:
    """What one column has written so far."""

    column: Column
    texts: tuple[Text, ...] = ()
    """All that it will write, from the start; empty ones have not begun. None if it failed
    before it could begin."""
    search: BeamSearch | None = None
    """For a beam: the whole search, with what lost."""
    forwards: int = 0
    """Rows that the model computed for this column: one for each text (or beam) and step."""
    ms: float = 0.0
    """Measured: its share, by rows, of the time of each batch, and its own choosing."""
    fault: Fault | None = None
    """Why this column failed; the others go on."""
    parted: tuple[tuple[int, Difference], ...] = ()
    """(other column, first difference of the first texts), noted as it happened, for columns
    of one model that are no searches. :func:`core.decode.difference` answers for all."""

    @property
    def done(self) -> bool:
        return self.fault is not None or (
            bool(self.texts) and all(text.stop is not None for text in self.texts)
        )


@dataclass(frozen=True)
class Comparison:
    """All columns after some step of the lock-step."""

    question: Question
    columns: tuple[Written, ...]
    steps: int
    """Turns of the lock-step: batches computed, where there is one model."""
    ms: float
    """Measured wall time so far."""
    cancelled: bool = False

    @property
    def done(self) -> bool:
        return self.cancelled or all(column.done for column in self.columns)


Reason = Literal[
    "same",
    "removed",
    "moved",
    "reordered",
    "other_dice",
    "not_drawn",
    "search",
    "forced",
    "other_model",
    "one_ended",
]
"""Why two columns part: "removed": a stage of one removed what the other took; "moved": the
same dice fell on another token because the bar was another; "reordered": without dice, a
processor of one put another token on top; "other_dice"; "not_drawn": one took the top without
dice; "search": a beam looked ahead; "one_ended": the other text goes on."""


@dataclass(frozen=True)
class Difference:
    """The first step at which a column parts from another."""

    step: int | None
    """``None``: they do not part."""
    reason: Reason
    here: int | None
    """Token taken by the column; ``None`` where its text had ended."""
    there: int | None
    """Token taken by the other."""
    stage: StageName | None = None
    """Name of the stage that removed ``there`` in the column (or ``here`` in the other); for
    "moved" and "reordered", the first stage that the two set differently."""
    parameter: float | int | str | None = None
    """What that stage is set to, where it is on."""
    removed_here: bool = True
    """Whether it was the column's stage; else the other's. For "forced", "not_drawn", "search"
    and "one_ended": whether it is the column that was forced, took the top, searched, ended."""


@dataclass(frozen=True)
class Figures:
    """Numbers about what a column wrote; ``None`` where they cannot be said (too short).

    They are of all texts of the column that have begun, control tokens included.
    """

    tokens: int
    """Of all texts."""
    logprob: float
    """Σ ln p under the model's own distribution; over several texts, their mean."""
    perplexity: float | None
    """exp(-Σ ln p ÷ tokens) over all texts: among how many equally likely tokens the model
    would be as unsure (Jelinek et al. 1977)."""
    bits_per_byte: float | None
    """-Σ log2 p ÷ bytes of text: comparable between tokenizers (Gao et al. 2020)."""
    entropy: float | None
    """Mean of the model's entropy at each step, in nats (Shannon 1948)."""
    rank: float | None
    """Mean rank of the chosen tokens in the model's order; 1 is its favourite."""
    distinct: tuple[float | None, float | None, float | None]
    """Different n-grams ÷ n-grams of all texts, n = 1, 2, 3 (Li et al. 2016)."""
    longest_repeat: int
    """Tokens of the longest sequence that comes at least twice in one text; the two may
    overlap."""
    repeated_4grams: float | None
    """Share of the 4-grams that came before in the same text (Welleck et al. 2020)."""
    zipf: float | None
    """Slope s of ln frequency = c - s · ln rank over the tokens of all texts, by least squares
    (Zipf 1949; Holtzman et al. 2020)."""
    self_bleu: float | None
    """Mean BLEU-4 of each text against the others, in the model's tokens (Papineni et al. 2002;
    Zhu et al. 2018); needs two texts."""
    forwards: int
    """As in ``Written``."""
    tokens_per_second: float | None
    """Tokens ÷ the column's share of the time."""
