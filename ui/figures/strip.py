"""The shared strip as data: the text as chips, and where the player stands. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from core.trace import Generation, StepTrace, Token
from core.visible import visible, visible_bytes
from ui.i18n import HTML_LANG, Catalog


def strip_data(
    generation: Generation, tokens: Sequence[Token], view: int, t: Catalog
) -> dict[str, Any]:
    """What the strip draws.

    ``tokens`` are the prompt's and the generated ones in order, grouped over the whole text;
    ``view`` is the index of the step in view, -1 before the first.
    """
    limit = generation.spec.settings.max_new
    return {
        "lang": HTML_LANG[t.lang],
        "strings": t.area("strip"),
        "chips": [_chip(part, generation) for part in groups(tokens)],
        "steps": [tokens[-len(generation.steps) + s.index].label for s in generation.steps],
        "prompt": len(generation.prompt),
        "view": view,
        "made": len(generation.steps),
        "limit": max(limit, len(generation.steps)),
        # Who pauses may go on: for the player that is no end.
        "stop": None if generation.stop == "user" else generation.stop,
        "paused": generation.stop == "user",
        "run": _identity(generation),
    }


def groups(tokens: Sequence[Token]) -> list[tuple[Token, ...]]:
    """The tokens cut into chips: those that together make one character stay together."""
    starts = [
        i for i, token in enumerate(tokens) if i == 0 or token.position >= _end(tokens[i - 1])
    ]
    return [tuple(tokens[a:b]) for a, b in pairwise([*starts, len(tokens)])] if tokens else []


def whole(group: Sequence[Token]) -> str:
    """The visible text of a chip: a token's own label, or the character that several make."""
    if len(group) == 1:
        return group[0].label
    data = b"".join(token.bytes for token in group)
    try:
        return visible(data.decode(), whole=True)
    except UnicodeDecodeError:
        return visible_bytes(data)


def _end(token: Token) -> int:
    return max(token.group[1], token.position + 1)


def _chip(group: Sequence[Token], generation: Generation) -> dict[str, Any]:
    prompt = len(generation.prompt)
    steps = [generation.steps[t.position - prompt] for t in group if t.position >= prompt]
    return {
        "label": whole(group),
        "parts": [{"label": t.label, "id": t.id, "position": t.position} for t in group],
        "special": any(t.special for t in group),
        "steps": [_step(step) for step in steps],
    }


def _step(step: StepTrace) -> dict[str, Any]:
    choice = step.choice
    return {
        "index": step.index,
        "p": choice.probability_model,
        "after": choice.probability_filtered,
        "rank": choice.rank,
        "rule": choice.rule,
    }


def _identity(generation: Generation) -> str:
    """Changes with the prompt or the model, and not with a step or a setting."""
    ids = ",".join(str(token.id) for token in generation.prompt)
    return hashlib.sha256(f"{generation.spec.model}/{ids}".encode()).hexdigest()[:16]
