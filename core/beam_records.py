"""The records of a beam search: what was looked at, what lived, what lost and to whom.

A candidate's address is its ``Node``: (step, place among the candidates of that step). The
parent of a candidate is a live beam of the step before, so a text is a chain of addresses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from core.settings import BeamSettings

Fate = Literal["live", "finished", "lost"]
LossReason = Literal["outside_beam", "end_outside_beam", "worse_hypothesis"]
"""Why a candidate lost: not among the ``width`` best that go on; an end token that was not
among the ``width`` best of its step; complete, but ``width`` hypotheses were better."""
HypothesisEnd = Literal["end_token", "output_limit", "context_limit", "user"]
BeamStop = Literal[
    "full", "no_beam_can_win", "no_beam_left", "output_limit", "context_limit", "user"
]
Node = tuple[int, int]


@dataclass(frozen=True)
class Loss:
    reason: LossReason
    to: Node
    """The candidate that holds the last place this one could have had."""
    by: float
    """That one's score minus this one's; 0 for a tie, which goes to the older. For a place in
    a step of a diverse search: the same of what they were ``ranked`` by; in a sampled search,
    the difference of those themselves."""


@dataclass(frozen=True)
class BeamCandidate:
    """One token that a live beam could take."""

    parent: int
    """Which of the beams read at this step, in their order; 0 is the prompt at step 0."""
    token: int
    token_logprob: float
    """ln p of this token after its beam; finite."""
    logprob: float
    """Σ ln p of the generated tokens, this one included: what beams are ranked by."""
    score: float
    """logprob ÷ length^α: what hypotheses are ranked by."""
    is_end: bool
    fate: Fate
    """Lost also if it became a hypothesis at once too bad to be kept."""
    loss: Loss | None = None
    """Why and to whom; ``None`` unless the fate is "lost"."""
    ranked: float | None = None
    """What it was ranked by, where that is not ``logprob``. Sampled: its perturbed score, as
    the dice had it. Diverse: ``logprob`` minus what its token cost."""
    group: int | None = None
    """Of a diverse search: which group looked at it."""

    @property
    def probability(self) -> float:
        """Of this token after its beam, in the model's own distribution."""
        return math.exp(self.token_logprob)


@dataclass(frozen=True)
class Hypothesis:
    """A text that is complete, or was cut off by a limit."""

    tokens: tuple[int, ...]
    """Generated ids; an end token is the last of them."""
    token_logprobs: tuple[float, ...]
    """ln p of each token, given those before."""
    logprob: float
    """Their sum, in nats."""
    score: float
    end: HypothesisEnd
    path: tuple[int, ...]
    """Place of each token's candidate in its step, so (i, path[i]) is a Node. Empty where
    every text was tried, and none was a candidate."""
    loss: Loss | None = None
    """Set for a hypothesis that better ones displaced later."""
    ranked: float | None = None
    """Of a sampled search: its perturbed score, by which it keeps its place."""
    group: int | None = None
    """Of a diverse search: whose it is. Two groups may hold the same text."""

    @property
    def finished(self) -> bool:
        """Whether it closes with an end token."""
        return self.end == "end_token"

    @property
    def node(self) -> Node:
        return len(self.path) - 1, self.path[-1]


@dataclass(frozen=True)
class BeamStep:
    """One turn: every live beam is read, the best candidates are kept."""

    index: int
    beams: int
    """How many beams were read: as many rows of one batch."""
    candidates: tuple[BeamCandidate, ...]
    """All that were looked at, the highest ranked first; group by group, where there are any."""
    live: tuple[int, ...]
    """Candidates that are the beams of the next step, in their order; at the limit, those that
    were cut off and are held as hypotheses."""
    finished: tuple[int, ...]
    """Candidates that became hypotheses, ended or cut off."""
    displaced: tuple[Node, ...]
    """Ends of earlier hypotheses that no longer are among the best ``width``."""
    hypotheses: int
    """How many are held after this step."""
    hope: float | None
    """The best score that a live beam can still reach; ``None`` if none is alive, and in a
    sampled search, where no score decides."""
    bar: float | None
    """The score to beat: the worst one held; ``None`` while there is room for more."""
    ms: float = field(default=0.0, compare=False)
    """Measured time of the work, forward passes included and waits for others left out; 0 where
    everything was remembered."""


@dataclass(frozen=True)
class BeamSearch:
    """A whole search. Equal questions give equal searches; only the times differ."""

    prompt: tuple[int, ...]
    settings: BeamSettings
    end_ids: tuple[int, ...]
    limit: int
    """Most tokens generated: ``settings.max_new``, or fewer where the context ends before."""
    steps: tuple[BeamStep, ...]
    hypotheses: tuple[Hypothesis, ...]
    """The best ``settings.best`` of those held, the best first."""
    others: tuple[Hypothesis, ...]
    """Held but beyond ``nbest``, then those that were displaced: all with a lower score."""
    stop: BeamStop | None
    """``None``: it could go on."""

    @property
    def forwards(self) -> int:
        """Rows read: one for each beam of each step, all of a step in one pass."""
        return sum(step.beams for step in self.steps)

    @property
    def tokens_evaluated(self) -> int:
        """Positions the model must compute: the prompt once, then one for each beam."""
        return len(self.prompt) + self.forwards - 1 if self.steps else 0

    @property
    def ms(self) -> float:
        return sum(step.ms for step in self.steps)

    @property
    def timed(self) -> int:
        """Steps of which ``ms`` tells: the results of the others were remembered."""
        return sum(step.ms > 0 for step in self.steps)

    def chain(self, node: Node) -> tuple[Node, ...]:
        """The addresses from the first generated token to this one."""
        step, place = node
        back = [place]
        for index in range(step, 0, -1):
            parent = self.steps[index].candidates[back[-1]].parent
            back.append(self.steps[index - 1].live[parent])
        return tuple(enumerate(reversed(back)))

    def tokens_at(self, node: Node) -> tuple[int, ...]:
        """The generated tokens that a node stands for, its own the last."""
        return tuple(self.steps[s].candidates[c].token for s, c in self.chain(node))
