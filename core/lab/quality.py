"""How far an edited model is from the original: on fixed texts, over whole distributions."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from core.engine.local import LocalEngine
from core.lab.texts import NAMES, text
from core.lab.turns import ended
from core.tokens import Vocabulary

MOST: Final = 256
"""Tokens of each text that are read."""


@dataclass(frozen=True)
class Quality:
    """What an edit costs. Measured over ``positions`` next-token distributions."""

    kl: float
    """KL(original ‖ edited) in nats, mean over the positions: 0 means the same predictions."""
    top1: float
    """Share of the positions at which both have the same likeliest token."""
    perplexity: float
    """Of the edited model: e to the mean surprise at the tokens that really follow."""
    positions: int


@dataclass(frozen=True, eq=False)
class Row:
    """One text as the original reads it."""

    name: str
    ids: tuple[int, ...]
    log_probs: Tensor
    """[position, vocabulary], float32, on the model's device."""


def text_ids(vocabulary: Vocabulary, name: str, most: int = MOST) -> tuple[int, ...]:
    """The first ``most`` tokens of a fixed text."""
    return vocabulary.read(text(name), literal=True).ids[:most]


def log_probs(model: Any, ids: Sequence[int]) -> Tensor:
    """ln p of every next token after each position, [position, vocabulary], as float32.

    ``model`` is any transformers causal language model; no cache, no gradients.
    """
    with torch.inference_mode():
        tokens = torch.tensor([list(ids)], device=model.device)
        logits = model(tokens, use_cache=False).logits[0]
        return torch.log_softmax(logits.float(), dim=-1)


def reference(
    engine: LocalEngine, names: Sequence[str] = NAMES, most: int = MOST
) -> Generator[float, None, tuple[Row, ...]]:
    """The rows of the original, a text at a time; yields the share done, returns the rows."""
    most, rows = min(most, engine.info.context), []
    for place, name in enumerate(names):
        ids = text_ids(engine.vocabulary, name, most)
        with engine.borrowed() as model:
            rows.append(Row(name, ids, log_probs(model, ids)))
        yield (place + 1) / len(names)
    return tuple(rows)


def judged(model: Any, rows: Sequence[Row]) -> Generator[float, None, Quality]:
    """An edited model on the same texts; yields the share done, returns the quality."""
    kl = same = surprise = 0.0
    positions = targets = 0
    for place, row in enumerate(rows):
        found = log_probs(model, row.ids)
        kl += float(divergence(row.log_probs, found).sum())
        same += float((row.log_probs.argmax(-1) == found.argmax(-1)).sum())
        surprise -= float(following(found, row.ids).sum())
        positions += len(row.ids)
        targets += len(row.ids) - 1
        yield (place + 1) / len(rows)
    mean = surprise / targets
    return Quality(
        kl=max(kl / positions, 0.0),
        top1=same / positions,
        perplexity=math.exp(mean) if mean < 700 else math.inf,
        positions=positions,
    )


def divergence(original: Tensor, edited: Tensor) -> Tensor:
    """KL(original ‖ edited) in nats of each row of ln p, [position]."""
    # A probability of 0 adds nothing, however small the other one is.
    terms = torch.where(original.exp() > 0, original.exp() * (original - edited), 0.0)
    return terms.sum(-1)


def following(found: Tensor, ids: Sequence[int]) -> Tensor:
    """ln p of the token that really follows each position but the last, [position - 1]."""
    targets = torch.tensor(list(ids[1:]), device=found.device)
    return found[:-1].gather(1, targets[:, None])[:, 0]


def quality(model: Any, rows: Sequence[Row]) -> Quality:
    """``judged`` without stopping."""
    return ended(judged(model, rows))
