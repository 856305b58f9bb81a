"""One round: the draft proposes, the large model reads all proposals in one pass, and judges.

The random numbers of a run are ``uniform(seed, step)`` for the draw of a token, as in plain
decoding, and the second and third number of the same step for the verdict and the replacement.
A proposal that was never judged leaves no trace, so its step's numbers may be used again. With
a draft that equals the large model the text is thus the one that plain decoding writes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from jaxtyping import Float

from core.decode.draw import uniform
from core.decode.past import Past
from core.decode.rules import Rules
from core.faults import Fault
from core.lab.speculative import Law, chance, law, leftover, overlap, replacement
from core.lab.speculative_readers import Reader
from core.lab.speculative_records import Drafted, Ending, PlainStep, Round
from core.settings import Settings

TOKEN, VERDICT, REPLACEMENT = 0, 1, 2
"""Which of a step's random numbers is thrown for what."""
STUCK: Final = "no_token_left"


@dataclass
class Text:
    """A text that grows; everything that choosing its next token depends on."""

    ids: list[int]
    prompt: int
    settings: Settings
    rules: Rules
    ends: tuple[int, ...] = ()

    @property
    def step(self) -> int:
        """New tokens so far."""
        return len(self.ids) - self.prompt

    def law(self, logits: Float[np.ndarray, " v"], ahead: Sequence[int] = ()) -> Law | None:
        """Of the token after the text and those ``ahead``; ``None`` where there is none."""
        past = Past((*self.ids, *ahead), self.prompt)
        try:
            return law(logits, self.settings, past, self.rules)
        except Fault as fault:
            if fault.code != STUCK:
                raise
            return None

    def u(self, offset: int, kind: int) -> float:
        return uniform(self.settings.seed, self.step + offset, kind)


@dataclass
class _Proposals:
    tokens: list[Drafted] = field(default_factory=list)
    laws: list[Law] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.tokens]


def round_of(text: Text, draft: Reader, model: Reader, gamma: int) -> Round:
    """Up to ``gamma`` + 1 further tokens; ``text`` grows by them, both readers are left behind
    its last token. Raises Fault for scores that are no numbers.
    """
    began, start = time.perf_counter(), text.step
    proposals = _proposals(text, draft, gamma)
    unread = text.ids[model.length :]
    rows = model.read([*unread, *proposals.ids])[len(unread) - 1 :]
    check_ms = model.ms
    drafted, ending, extra, extra_p = _judged(text, proposals, rows)
    accepted = sum(token.kept is True for token in drafted)
    text.ids += [token.id for token in drafted[:accepted]]
    model.back(model.length - len(text.ids))
    draft.back(max(0, draft.length - len(text.ids)))
    if extra is not None:
        text.ids.append(extra)
    whole = (time.perf_counter() - began) * 1000
    return Round(
        start=start,
        drafted=tuple(drafted),
        ending=ending,
        extra=extra,
        extra_p=extra_p,
        draft_ms=tuple(proposals.ms),
        check_ms=check_ms,
        choose_ms=max(0.0, whole - check_ms - sum(proposals.ms)),
        positions=len(unread) + len(drafted),
    )


def _proposals(text: Text, draft: Reader, gamma: int) -> _Proposals:
    """What the draft would write; it stops at an end token, and where its settings leave none."""
    found = _Proposals()
    while len(found.tokens) < gamma:
        ahead = found.ids
        row = draft.read([*text.ids, *ahead][draft.length :])[-1]
        found.ms.append(draft.ms)
        q = text.law(row, ahead)
        if q is None:
            break
        token = q.draw(text.u(len(ahead), TOKEN))
        found.laws.append(q)
        found.tokens.append(Drafted(token, float(q.p[token]), None, None))
        if token in text.ends:
            break
    return found


def _judged(
    text: Text, proposals: _Proposals, rows: Float[np.ndarray, "position v"]
) -> tuple[list[Drafted], Ending, int | None, float | None]:
    """(the proposals with their verdicts, how the round ends, its last token, that one's p)."""
    drafted = list(proposals.tokens)
    for place, (token, q) in enumerate(zip(proposals.tokens, proposals.laws, strict=True)):
        p = text.law(rows[place], proposals.ids[:place])
        if p is None:
            return drafted, "stuck", None, None
        u = text.u(place, VERDICT)
        kept = u < chance(p.p, q.p, token.id)
        drafted[place] = replace(
            token, p=float(p.p[token.id]), kept=kept, u=u, overlap=overlap(p.p, q.p)
        )
        if not kept:
            other = replacement(p, q, text.u(place, REPLACEMENT))
            return drafted, "replaced", other, float(leftover(p.p, q.p)[other])
        if token.id in text.ends:
            return drafted, "end", None, None
    p = text.law(rows[len(drafted)], proposals.ids)
    if p is None:
        return drafted, "stuck", None, None
    bonus = p.draw(text.u(len(drafted), TOKEN))
    return drafted, "bonus", bonus, float(p.p[bonus])


def plain_step(text: Text, model: Reader) -> PlainStep | None:
    """One token without a draft; ``None`` where the settings leave none."""
    began = time.perf_counter()
    row = model.read(text.ids[model.length :])[-1]
    pass_ms = model.ms
    p = text.law(row)
    # Sliding windows may now forget what they dropped.
    model.back(0)
    if p is None:
        return None
    token = p.draw(text.u(0, TOKEN))
    text.ids.append(token)
    whole = (time.perf_counter() - began) * 1000
    return PlainStep(token, pass_ms, max(0.0, whole - pass_ms))
