"""A beam search as data for its component: the tree, the ranking, greedy's path. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float

from core.beam_records import BeamCandidate, BeamSearch, BeamStep, Hypothesis, Loss, Node
from core.decode.candidates import top_ids
from core.decode.measure import log_softmax
from core.tokens import Vocabulary
from ui.i18n import HTML_LANG, Catalog

NEXT_ROWS: Final = 10
Shown = Literal["live", "finished", "cut", "lost"]
"""A fate as it is drawn; "cut": complete because the limit was reached."""
Leaves = Literal["whole", "lost", "unseen", "ended"]
"""How greedy's path goes in a search: it is one of its beams to the end; a candidate of it
lost; it was not even looked at; the search ended before it."""


@dataclass(frozen=True)
class Greedy:
    """Greedy's text, found in a search as far as it goes."""

    search: BeamSearch
    path: tuple[Node, ...]
    leaves: Leaves


def shown_fate(step: BeamStep, place: int) -> Shown:
    candidate = step.candidates[place]
    return "cut" if candidate.fate == "live" and place in step.finished else candidate.fate


def greedy_in(search: BeamSearch, greedy: BeamSearch) -> Greedy:
    """Where ``search`` met the text that ``greedy``, a beam of one, wrote."""
    if not greedy.hypotheses:
        return Greedy(greedy, (), "unseen")
    path: list[Node] = []
    tokens = greedy.hypotheses[0].tokens
    for index, (token, step) in enumerate(zip(tokens, search.steps, strict=False)):
        parent = path[-1][1] if path else None
        before = search.steps[index - 1].live if index else ()
        place = next(
            (
                place
                for place, candidate in enumerate(step.candidates)
                if candidate.token == token
                and (parent is None or before[candidate.parent] == parent)
            ),
            None,
        )
        if place is None:
            return Greedy(greedy, tuple(path), "unseen")
        path.append((index, place))
        if step.candidates[place].fate == "lost":
            return Greedy(greedy, tuple(path), "lost")
    return Greedy(greedy, tuple(path), "whole" if len(path) == len(tokens) else "ended")


def children(search: BeamSearch, node: Node) -> dict[int, int]:
    """Token → place among the next step's candidates, of those that continue ``node``."""
    step, place = node
    if step + 1 >= len(search.steps) or place not in search.steps[step].live:
        return {}
    beam = search.steps[step].live.index(place)
    after = enumerate(search.steps[step + 1].candidates)
    return {c.token: i for i, c in after if c.parent == beam}


def beam_data(
    search: BeamSearch,
    greedy: Greedy | None,
    vocabulary: Vocabulary,
    t: Catalog,
    *,
    node: Node | None,
    after: Float[np.ndarray, " vocabulary"] | None,
    can_continue: bool,
) -> dict[str, Any]:
    """What the component draws.

    ``node`` is the candidate in view, and ``after`` the logits that follow its text (``None``
    where it ends the text).
    """
    labels = _Labels(vocabulary)
    steps = [_step(search, index, labels) for index in range(len(search.steps))]
    held = [*search.hypotheses, *(h for h in search.others if h.loss is None)]
    return {
        "lang": HTML_LANG[t.lang],
        "strings": t.area("beam_search"),
        "id": _identity(search),
        "width": search.settings.width,
        "kind": search.settings.kind,
        "places": places_of(search),
        "limit": search.limit,
        "alpha": search.settings.length_penalty,
        "stop": search.stop,
        "steps": steps,
        "ranking": [_hypothesis(h, search, vocabulary, rank) for rank, h in enumerate(held, 1)],
        "wanted": len(search.hypotheses),
        "displaced": _displaced(search),
        "greedy": _greedy(greedy, labels),
        "node": list(node) if node else None,
        "next": _next(search, node, after, labels) if node else None,
        "text": vocabulary.text(search.tokens_at(node)) if node else "",
        "can_continue": can_continue,
        "labels": labels.texts,
        "special": sorted(labels.special),
        "ids": labels.ids,
    }


def _greedy(greedy: Greedy | None, labels: _Labels) -> dict[str, Any] | None:
    if greedy is None or not greedy.search.hypotheses:
        return None
    return {
        "path": [list(node) for node in greedy.path],
        "leaves": greedy.leaves,
        "tokens": [labels[token] for token in greedy.search.hypotheses[0].tokens],
    }


class _Labels:
    """Labels of tokens, each sent once."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._places: dict[int, int] = {}
        self.texts: list[str] = []
        self.ids: list[int] = []
        self.special: set[int] = set()

    def __getitem__(self, token: int) -> int:
        """The place of a token's label in ``texts``."""
        place = self._places.get(token)
        if place is None:
            place = self._places[token] = len(self.texts)
            self.texts.append(self._vocabulary.label(token))
            self.ids.append(token)
            if self._vocabulary.is_special(token):
                self.special.add(place)
        return place


def _step(search: BeamSearch, index: int, labels: _Labels) -> dict[str, Any]:
    step = search.steps[index]
    before = search.steps[index - 1].live if index else ()
    return {
        "beams": step.beams,
        "candidates": [
            _candidate(step, place, before[c.parent] if index else -1, labels)
            for place, c in enumerate(step.candidates)
        ],
        "hypotheses": step.hypotheses,
        "hope": step.hope,
        "bar": step.bar,
        "displaced": len(step.displaced),
    }


def _candidate(step: BeamStep, place: int, parent: int, labels: _Labels) -> dict[str, Any]:
    candidate: BeamCandidate = step.candidates[place]
    return {
        "parent": parent,
        "label": labels[candidate.token],
        "p": candidate.probability,
        "sum": candidate.logprob,
        "score": candidate.score,
        "ranked": candidate.ranked,
        "group": candidate.group,
        "fate": shown_fate(step, place),
        "end": candidate.is_end,
        "loss": _loss(_as_ranked(step, candidate)),
    }


def places_of(search: BeamSearch) -> int:
    """How many go on after a step: of a diverse search, in each group."""
    settings = search.settings
    return settings.width // settings.groups if settings.kind == "diverse" else settings.width


def _as_ranked(step: BeamStep, candidate: BeamCandidate) -> Loss | None:
    """Within a step candidates lose by what they were ranked by, which may not be the score."""
    loss = candidate.loss
    if loss is None or candidate.group is None or loss.reason == "worse_hypothesis":
        return loss
    winner = step.candidates[loss.to[1]]
    if candidate.ranked is None or winner.ranked is None:
        return loss
    return replace(loss, by=winner.ranked - candidate.ranked)


def _loss(loss: Loss | None) -> dict[str, Any] | None:
    return {"reason": loss.reason, "to": list(loss.to), "by": loss.by} if loss else None


def _hypothesis(
    hypothesis: Hypothesis, search: BeamSearch, vocabulary: Vocabulary, rank: int
) -> dict[str, Any]:
    return {
        "rank": rank,
        "text": vocabulary.text(hypothesis.tokens, skip_special=True),
        "sum": hypothesis.logprob,
        "score": hypothesis.score,
        "length": len(hypothesis.tokens),
        "end": hypothesis.end,
        "node": list(hypothesis.node),
        "group": hypothesis.group,
        "extra": rank > len(search.hypotheses),
    }


def _displaced(search: BeamSearch) -> list[dict[str, Any]]:
    """Complete texts that better ones pushed out later: which, at which step, by whom."""
    when = {node: step.index for step in search.steps for node in step.displaced}
    return [
        {"node": list(h.node), "step": when.get(h.node, len(search.steps) - 1), **lost}
        for h in search.others
        if h.path and (lost := _loss(h.loss))
    ]


def _next(
    search: BeamSearch,
    node: Node,
    after: Float[np.ndarray, " vocabulary"] | None,
    labels: _Labels,
) -> dict[str, Any] | None:
    """The likeliest tokens after a node, and what became of each in the search."""
    if after is None:
        return None
    logp = log_softmax(after)
    known = children(search, node)
    best: Sequence[int] = [int(i) for i in top_ids(logp, NEXT_ROWS) if logp[i] > -np.inf]
    step = search.steps[node[0] + 1] if known else None
    rows = [
        {
            "label": labels[token],
            "p": float(np.exp(logp[token])),
            "place": known.get(token),
            "fate": shown_fate(step, known[token]) if step and token in known else None,
        }
        for token in best
    ]
    shown = float(np.exp(logp[list(best)]).sum())
    count = int(np.count_nonzero(logp > -np.inf)) - len(rows)
    return {"rows": rows, "others": count, "rest": max(0.0, 1 - shown) if count else 0.0}


def _identity(search: BeamSearch) -> str:
    """Equal for equal searches, whatever rules they are judged by."""
    told = (search.prompt, search.settings.width, search.settings.kind, search.settings.seed)
    first = [[(c.parent, c.token) for c in step.candidates] for step in search.steps[:3]]
    return hashlib.sha256(repr((told, first)).encode()).hexdigest()[:16]
