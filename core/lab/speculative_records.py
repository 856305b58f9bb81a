"""What speculative decoding leaves behind: rounds of drafted tokens, and times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from core.edits.spec import MARK, split
from core.lab.machine import Machine
from core.lab.speculative import expected_speed, expected_tokens
from core.lab.timing import Spread
from core.model_info import ModelInfo
from core.settings import Settings

GAMMA: Final = 4
MOST_DRAFTED: Final = 16
MOST_NEW: Final = 256
DRAFT: Final = "#int8"
"""What is done to the copy of the model that drafts, unless another one is named."""

Ending = Literal["replaced", "bonus", "end", "stuck"]
"""How a round ended: a drafted token was rejected and replaced; all were kept and one more came
for nothing; a kept token ended the text; the settings leave no token that could follow."""


@dataclass(frozen=True)
class Drafted:
    """One token that the draft proposed."""

    id: int
    q: float
    """Its probability in the draft's distribution."""
    p: float | None
    """In the checking model's; ``None`` where an earlier rejection left it unread."""
    kept: bool | None
    """``None``: never judged."""
    u: float | None = None
    """The random number against which min(1, p ÷ q) was held."""
    overlap: float | None = None
    """Σ min(p, q) over the vocabulary: the chance that whatever was drafted here is kept."""


@dataclass(frozen=True)
class Round:
    """One pass of the large model, and the drafts before it."""

    start: int
    """New tokens before this round."""
    drafted: tuple[Drafted, ...]
    ending: Ending
    extra: int | None
    """The token that the large model added itself: the replacement, or the bonus."""
    extra_p: float | None
    """Its probability in what it was drawn from."""
    draft_ms: tuple[float, ...]
    """Of each pass of the draft."""
    check_ms: float
    """Of the one pass of the large model over all drafted tokens."""
    choose_ms: float
    """Of everything that is no pass: distributions, draws, verdicts."""
    positions: int
    """That the checking pass read."""

    @property
    def accepted(self) -> int:
        return sum(token.kept is True for token in self.drafted)

    @property
    def judged(self) -> int:
        return sum(token.kept is not None for token in self.drafted)

    @property
    def ids(self) -> tuple[int, ...]:
        """What the round adds to the text."""
        kept = tuple(token.id for token in self.drafted if token.kept)
        return kept if self.extra is None else (*kept, self.extra)

    @property
    def ms(self) -> float:
        return sum(self.draft_ms) + self.check_ms + self.choose_ms


@dataclass(frozen=True)
class PlainStep:
    """One token written without a draft, in the same run."""

    id: int
    pass_ms: float
    choose_ms: float

    @property
    def ms(self) -> float:
        return self.pass_ms + self.choose_ms


@dataclass(frozen=True)
class Speculation:
    """A text written with a draft, and one written without, in turns."""

    model: str
    draft: str
    prompt: tuple[int, ...]
    gamma: int
    max_new: int
    greedy: bool
    rounds: tuple[Round, ...]
    plain: tuple[PlainStep, ...]
    draft_bytes: int
    model_bytes: int
    machine: Machine | None
    done: bool
    progress: float

    @classmethod
    def begun(
        cls, model: ModelInfo, draft: str, prompt: tuple[int, ...], gamma: int, settings: Settings
    ) -> Speculation:
        """Nothing read yet; the draft may still have to be loaded."""
        return cls(
            model=model.name,
            draft=draft,
            prompt=prompt,
            gamma=gamma,
            max_new=settings.max_new,
            greedy=settings.is_greedy,
            rounds=(),
            plain=(),
            draft_bytes=0,
            model_bytes=model.bytes_in_memory,
            machine=None,
            done=False,
            progress=0.0,
        )

    @property
    def ids(self) -> tuple[int, ...]:
        """New tokens, with the draft."""
        return tuple(token for each in self.rounds for token in each.ids)

    @property
    def plain_ids(self) -> tuple[int, ...]:
        """New tokens, without it."""
        return tuple(step.id for step in self.plain)

    @property
    def full(self) -> tuple[Round, ...]:
        """Rounds that could draft as many as was asked: not cut short by the end of the text."""
        return tuple(r for r in self.rounds if len(r.drafted) == self.gamma)

    @property
    def accepted(self) -> int:
        return sum(r.accepted for r in self.rounds)

    @property
    def judged(self) -> int:
        """Drafted tokens that were looked at: all up to the first rejected one of each round."""
        return sum(r.judged for r in self.rounds)

    @property
    def proposed(self) -> int:
        return sum(len(r.drafted) for r in self.rounds)

    @property
    def acceptance(self) -> float | None:
        """α: kept ÷ judged."""
        return self.accepted / self.judged if self.judged else None

    @property
    def mean_overlap(self) -> float | None:
        """The mean of Σ min(p, q) where a drafted token was judged: what α comes to in the long
        run."""
        found = [t.overlap for r in self.rounds for t in r.drafted if t.overlap is not None]
        return sum(found) / len(found) if found else None

    @property
    def tokens_per_pass(self) -> float | None:
        """Tokens for each pass of the large model, over the full rounds."""
        return sum(len(r.ids) for r in self.full) / len(self.full) if self.full else None

    @property
    def expected(self) -> float | None:
        """The same by the formula, from the acceptance rate."""
        alpha = self.acceptance
        return None if alpha is None else expected_tokens(alpha, self.gamma)

    @property
    def ms_a_token(self) -> float | None:
        """With the draft: all of its time over all of its tokens."""
        return sum(r.ms for r in self.rounds) / len(self.ids) if self.ids else None

    @property
    def plain_ms_a_token(self) -> float | None:
        return sum(s.ms for s in self.plain) / len(self.plain) if self.plain else None

    @property
    def speed(self) -> float | None:
        """How many times as fast as plain decoding; below 1 it is slower."""
        if not self.ms_a_token or not self.plain_ms_a_token:
            return None
        return self.plain_ms_a_token / self.ms_a_token

    @property
    def plain_ms(self) -> Spread | None:
        """Of one pass over one token, by the large model."""
        return _spread([s.pass_ms for s in self.plain])

    @property
    def draft_ms(self) -> Spread | None:
        """Of one pass by the draft."""
        return _spread([ms for r in self.rounds for ms in r.draft_ms])

    @property
    def check_ms(self) -> Spread | None:
        """Of one checking pass, over the full rounds."""
        return _spread([r.check_ms for r in self.full])

    @property
    def round_ms(self) -> Spread | None:
        """Of a full round, all in all."""
        return _spread([r.ms for r in self.full])

    @property
    def expected_speed(self) -> float | None:
        """By the formula, from the acceptance rate and the measured times of passes."""
        plain, draft, check, alpha = self.plain_ms, self.draft_ms, self.check_ms, self.acceptance
        if plain is None or draft is None or check is None or alpha is None:
            return None
        relative = (draft.median / plain.median, check.median / plain.median)
        return expected_speed(alpha, self.gamma, *relative)

    @property
    def same_text(self) -> bool:
        """Whether both wrote the same, as far as both have come: greedy must."""
        shared = min(len(self.ids), len(self.plain_ids))
        return self.ids[:shared] == self.plain_ids[:shared]


def _spread(times: list[float]) -> Spread | None:
    return Spread.of(times) if times else None


def draft_name(model: str, typed: str) -> str:
    """The model that drafts: as it is named, or a copy of ``model`` with something done to it."""
    return split(model)[0] + typed if typed.startswith(MARK) else typed
