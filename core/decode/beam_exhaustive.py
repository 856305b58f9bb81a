"""Every text that a small model can write, to compare a beam search with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from core.beam_records import Hypothesis, HypothesisEnd
from core.decode.beam import Provider
from core.decode.beam_rules import Beam, hypothesis_of
from core.decode.measure import log_softmax
from core.faults import Fault
from core.settings import BeamSettings

MOST: Final = 20_000
"""Texts: about a second's work."""


@dataclass(frozen=True)
class Exhaustive:
    hypotheses: tuple[Hypothesis, ...]
    """The best ``settings.best`` of all texts, the best first; equal ones by their ids."""
    texts: int
    """All texts of a probability above 0."""
    forwards: int
    """Prefixes read to know them all."""
    passes: int
    """How often the provider was asked: once for each length."""


def exhaustive(provider: Provider, settings: BeamSettings, end_ids: Sequence[int]) -> Exhaustive:
    """Score every text that ends with an end token or has ``settings.max_new`` tokens.

    ``width`` and ``stop`` play no part. Raises Fault when there are more than MOST.
    """
    ends = frozenset(end_ids)
    complete: list[Hypothesis] = []
    alive: list[Beam] = [Beam()]
    forwards = passes = 0
    for length in range(1, settings.max_new + 1):
        if not alive:
            break
        forwards += len(alive)
        passes += 1
        rows = provider(tuple(beam.tokens for beam in alive))
        grown = [new for beam, row in zip(alive, rows, strict=True) for new in _grow(beam, row)]
        if len(complete) + len(grown) > MOST:
            raise Fault("too_many_texts", most=MOST)
        alive = []
        for beam in grown:
            ended = beam.tokens[-1] in ends
            if ended or length == settings.max_new:
                end: HypothesisEnd = "end_token" if ended else "output_limit"
                complete.append(hypothesis_of(beam, end, settings.length_penalty))
            else:
                alive.append(beam)
    complete.sort(key=lambda hypothesis: (-hypothesis.score, hypothesis.tokens))
    return Exhaustive(tuple(complete[: settings.best]), len(complete), forwards, passes)


def _grow(beam: Beam, row: ArrayLike) -> list[Beam]:
    logp = log_softmax(np.asarray(row))
    return [
        Beam(
            (*beam.tokens, int(token)),
            (*beam.token_logprobs, float(logp[token])),
            (),
            beam.logprob + float(logp[token]),
        )
        for token in np.flatnonzero(logp > -np.inf)
    ]
