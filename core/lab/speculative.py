"""Speculative decoding: a quick model drafts, the large one checks many tokens in one pass.

Leviathan et al. 2023, Chen et al. 2023. The law of the text is the large model's own: a drafted
token x is kept with probability min(1, p(x) ÷ q(x)), and where it is not, a token is drawn from
what p has above q. Here are the rules, on whole distributions and without any model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from core.decode.draw import draw, needle
from core.decode.measure import checked, weights
from core.decode.past import Past
from core.decode.processors import Row, processed
from core.decode.rules import Rules
from core.decode.stages import funnel
from core.settings import Settings


@dataclass(frozen=True, eq=False)
class Law:
    """The distribution of one next token, after the settings."""

    p: Float[np.ndarray, " vocabulary"]
    """Probabilities, float64."""
    order: Int[np.ndarray, " survivors"]
    """The ids that are possible, likeliest first."""
    bar: Float[np.ndarray, " survivors"]
    """Running sums along that order, not normalised."""

    def draw(self, u: float) -> int:
        """The token on which ``u`` falls: the same one that plain decoding takes."""
        return int(self.order[needle(self.bar, u)])


def law(logits: Row, settings: Settings, past: Past, rules: Rules) -> Law:
    """What ``settings`` make of one row of scores; greedy puts everything on one token.

    The very distribution that :func:`core.decode.choose.choose` draws from. Raises Fault like
    it, also where the processors leave no token ("no_token_left").
    """
    flow = processed(logits, settings, past, rules)
    if settings.is_greedy:
        row = checked(flow.last)
        best = int(row.argmax())
        p = np.zeros(row.size)
        p[best] = 1.0
        return Law(p, np.array([best]), np.ones(1))
    found = funnel(flow.last, settings)
    last = found.last
    order = found.order[last.start : last.stop]
    p = np.zeros(found.logits.size)
    share = weights(last.sorted[: last.length], last.sorted[0], last.temperature)
    p[order] = share / last.total
    return Law(p, order, last.cumulative[: last.length])


def chance(p: Float[np.ndarray, " v"], q: Float[np.ndarray, " v"], token: int) -> float:
    """Probability with which a token drawn from the draft's ``q`` is kept: min(1, p ÷ q)."""
    return float(min(1.0, p[token] / q[token])) if q[token] > 0 else 1.0


def overlap(p: Float[np.ndarray, " v"], q: Float[np.ndarray, " v"]) -> float:
    """Σ min(p, q): the probability that whatever ``q`` draws is kept."""
    return float(np.minimum(p, q).sum())


def leftover(p: Float[np.ndarray, " v"], q: Float[np.ndarray, " v"]) -> Float[np.ndarray, " v"]:
    """What a rejected token is replaced from: max(p - q, 0), made to sum to 1."""
    rest = np.maximum(p - q, 0.0)
    total = rest.sum()
    # Equal laws never reject; two that differ by rounding alone leave nothing to divide.
    return np.asarray(rest / total) if total > 0 else p


def replacement(p: Law, q: Law, u: float) -> int:
    """The token that takes the place of a rejected one."""
    return draw(leftover(p.p, q.p), u)


def expected_tokens(acceptance: float, drafted: int) -> float:
    """Tokens that one pass of the large model gives on average, if each drafted token is kept
    with the same probability: (1 - α^(γ+1)) ÷ (1 - α)."""
    if acceptance >= 1:
        return float(drafted + 1)
    return (1 - acceptance ** (drafted + 1)) / (1 - acceptance)


def expected_speed(
    acceptance: float, drafted: int, draft_cost: float, check_cost: float = 1.0
) -> float:
    """How many times as fast as plain decoding, by the same reasoning.

    ``draft_cost`` is the time of one pass of the draft, and ``check_cost`` that of the pass that
    checks, both in passes of the large model over one token.
    """
    return expected_tokens(acceptance, drafted) / (drafted * draft_cost + check_cost)
