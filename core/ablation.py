"""What changes when heads or layers are switched off: the next token, and the text after it.

The edit belongs to one forward pass; the model, and everybody else's run, stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from core.decode.candidates import top_ids
from core.decode.choose import choose
from core.decode.generate import stop_reason
from core.decode.measure import log_softmax, rank
from core.decode.past import Past
from core.decode.rules import rules_for
from core.engine.protocol import Engine
from core.faults import Fault
from core.settings import Settings
from core.trace import Capture, Edit

PLAIN = Capture(attention=False)


@dataclass(frozen=True)
class Shift:
    """One token before and after the edit."""

    id: int
    before: float
    """Probability under the unchanged model (temperature 1, no filter)."""
    after: float
    rank_before: int
    rank_after: int
    logit_before: float
    logit_after: float


@dataclass(frozen=True)
class Effect:
    """The distribution of the next token before and after an edit."""

    chosen: Shift
    """The token that the run chose at this step."""
    top: tuple[Shift, ...]
    """The first tokens of both distributions together, likeliest before the edit first."""
    kl: float
    """Σ p·ln(p/q) in nats, p before and q after: 0 = nothing changed."""


def effect(
    before: Float[np.ndarray, " vocabulary"],
    after: Float[np.ndarray, " vocabulary"],
    chosen: int,
    *,
    top: int = 10,
) -> Effect:
    """Compare two rows of logits. Raises Fault where one of them is no distribution."""
    p, q = log_softmax(before), log_softmax(after)
    shown = dict.fromkeys([*top_ids(before, top), *top_ids(after, top)])
    live = p > -np.inf
    kl = float(np.exp(p[live]) @ (p[live] - q[live]))

    def shift(token: int) -> Shift:
        return Shift(
            id=token,
            before=float(np.exp(p[token])),
            after=float(np.exp(q[token])),
            rank_before=rank(before, token),
            rank_after=rank(after, token),
            logit_before=float(before[token]),
            logit_after=float(after[token]),
        )

    rows = sorted((shift(token) for token in shown), key=lambda row: row.rank_before)
    return Effect(chosen=shift(chosen), top=tuple(rows), kl=max(0.0, kl))


def next_logits(
    engine: Engine, ids: Sequence[int], prompt_length: int, edit: Edit
) -> Float[np.ndarray, " vocabulary"]:
    """Logits after ``ids`` under ``edit``. Raises Fault where the engine cannot edit."""
    forward = engine.forward(ids, prompt_length=prompt_length, capture=PLAIN, edit=edit)
    return forward.logits


def continuation(
    engine: Engine,
    ids: Sequence[int],
    settings: Settings,
    *,
    prompt_length: int,
    edit: Edit,
    steps: int,
) -> Iterator[int]:
    """The next ``steps`` tokens after ``ids``, chosen by ``settings`` with the run's own dice.

    Forced tokens are left out; an end token and a full context end the text. Each turn is
    one forward pass, so a caller may stop between them.
    """
    free = replace(settings, forced=())
    path = list(ids)
    rules = rules_for(free, engine.vocabulary)
    for _ in range(steps):
        made = len(path) - prompt_length
        logits = next_logits(engine, path, prompt_length, edit)
        past = Past(tuple(path), prompt_length)
        try:
            choice = choose(logits, free, step=made, past=past, rules=rules, with_stages=False)
        except Fault as fault:
            if fault.code == "no_token_left":
                return
            raise
        token = choice.id
        path.append(token)
        yield token
        ended = stop_reason(engine.info, free, prompt_length, path[prompt_length:])
        if ended in ("end_token", "context_limit"):
            return
