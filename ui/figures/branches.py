"""The branches of a run as a tree: lanes side by side that part where their tokens do. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pandas as pd

from core.trace import Generation, Rule, Stop
from ui.figures.words import signed
from ui.i18n import HTML_LANG, Catalog

Label = Callable[[int], str]
LONGEST: Final = 300
"""Characters of a part's text that travel to the browser."""
WIDEST: Final = 10
"""Tokens after which a column grows no wider."""


@dataclass(frozen=True)
class Taken:
    """One token of a path."""

    id: int
    label: str
    p: float
    after: float
    rank: int
    rule: Rule
    u: float | None


@dataclass(frozen=True)
class Path:
    """One path through the tree, walked; or the sentence why it could not be."""

    index: int | None
    """Place among the branches; ``None``: the run in view, which is not kept."""
    name: str
    current: bool
    tokens: tuple[Taken, ...] = ()
    text: str = ""
    logprob: float = 0.0
    stop: Stop | None = None
    rolls: tuple[tuple[int, int], ...] = ()
    fault: str | None = None
    comparable: bool = True
    """Whether it fits into a column of the Compare page."""

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(token.id for token in self.tokens)


def tokens_of(run: Generation, label: Label) -> tuple[Taken, ...]:
    """What a run took, step by step."""
    made = (step.choice for step in run.steps)
    return tuple(
        Taken(
            c.id,
            label(c.id),
            c.probability_model,
            c.probability_filtered,
            c.rank,
            c.rule,
            c.u,
        )
        for c in made
    )


def shared(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two paths have in common from the first on."""
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))


def parts(path: Path, current: Path) -> int | None:
    """Index of the step at which a path parts from the one in view; ``None``: it does not."""
    same = shared(path.ids, current.ids)
    return None if same == len(path.ids) == len(current.ids) else same


# ---------------------------------------------------------------- the tree


@dataclass(frozen=True)
class Lane:
    """One path in the tree, from where it parts from the lane above it."""

    path: Path
    parent: int | None
    """Place of that lane; ``None`` for the first."""
    start: int
    """Index of its first own step."""
    cuts: tuple[int, ...] = ()
    """Steps at which other lanes part from this one."""


def lanes(paths: Sequence[Path]) -> list[Lane]:
    """The path in view first; each other hangs on the lane with which it shares most."""
    order = sorted(range(len(paths)), key=lambda i: (not paths[i].current, i))
    out: list[Lane] = []
    for i in order:
        ids = paths[i].ids
        if not out:
            out.append(Lane(paths[i], None, 0))
            continue
        same = [shared(ids, lane.path.ids) for lane in out]
        # The one where it parts late, and of those the one that owns that step.
        best = max(same)
        parent = next(
            j for j, lane in enumerate(out) if same[j] == best and (lane.start < best or best == 0)
        )
        out.append(Lane(paths[i], parent, best))
    cut: dict[int, set[int]] = {}
    for lane in out[1:]:
        cut.setdefault(lane.parent or 0, set()).add(lane.start)
    return [
        Lane(lane.path, lane.parent, lane.start, tuple(sorted(cut.get(j, ()))))
        for j, lane in enumerate(out)
    ]


def columns(found: Sequence[Lane]) -> list[tuple[int, int]]:
    """(first step, tokens) of each column: one begins wherever a lane does."""
    starts = sorted({0} | {lane.start for lane in found})
    ends = [*starts[1:], max([starts[-1] + 1, *(len(lane.path.tokens) for lane in found)])]
    return [(a, b - a) for a, b in zip(starts, ends, strict=True)]


def tree(paths: Sequence[Path]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(columns, lanes) as data; a lane is a row of parts, a part some tokens in a row."""
    found = lanes(paths)
    table = columns(found)
    starts = [start for start, _ in table]
    heads = [{"step": start + 1, "weight": min(WIDEST, count)} for start, count in table]
    return heads, [_lane(lane, starts) for lane in found]


def _lane(lane: Lane, starts: Sequence[int]) -> dict[str, Any]:
    size = len(lane.path.tokens)
    inner = [cut for cut in lane.cuts if lane.start < cut < size]
    edges = [lane.start, *inner, size]
    cells = [_cell(lane.path, a, b, starts) for a, b in pairwise(edges) if b > a]
    return {
        "index": lane.path.index,
        "current": lane.path.current,
        "parent": lane.parent,
        "column": bisect_right(starts, lane.start) - 1,
        "cells": cells,
    }


def _cell(path: Path, start: int, stop: int, starts: Sequence[int]) -> dict[str, Any]:
    taken = path.tokens[start:stop]
    first = taken[0]
    rolled = dict(path.rolls).get(start, 0) > 0
    return {
        "from": bisect_right(starts, start) - 1,
        "to": bisect_right(starts, stop - 1),
        "step": start,
        "stop": stop,
        "first": first.label,
        "rest": "".join(token.label for token in taken[1:])[:LONGEST],
        "how": "forced" if first.rule == "forced" else "rolled" if rolled else "",
        "p": first.p,
    }


# ---------------------------------------------------------------- the list


def branches_data(paths: Sequence[Path], prompt: str, view: int, t: Catalog) -> dict[str, Any]:
    """What the component draws; ``prompt`` is what all paths begin with, as visible text."""
    current = next(path for path in paths if path.current)
    heads, rows = tree(paths)
    return {
        "lang": HTML_LANG[t.lang],
        "strings": t.area("generate"),
        "prompt": prompt[-LONGEST:],
        "view": view,
        "columns": heads,
        "lanes": rows,
        "paths": [_row(path, current, t) for path in paths],
    }


def _row(path: Path, current: Path, t: Catalog) -> dict[str, Any]:
    parting = parts(path, current)
    return {
        "index": path.index,
        "name": path.name,
        "current": path.current,
        "text": path.text[:LONGEST],
        "logprob": signed(path.logprob) if path.fault is None else "",
        "count": len(path.tokens),
        "parts": None if parting is None else parting + 1,
        "comparable": path.comparable,
        "fault": path.fault,
        "ended": t("generate.branch_ended") if path.stop == "end_token" else "",
    }


def branches_table(paths: Sequence[Path], t: Catalog) -> pd.DataFrame:
    """The same as a table."""
    current = next(path for path in paths if path.current)
    parting = [parts(path, current) for path in paths]
    return pd.DataFrame(
        {
            t("generate.branch_name"): [path.name or t("generate.branch_this") for path in paths],
            t("generate.branch_text"): [path.fault or path.text for path in paths],
            t("generate.branch_tokens"): [len(path.tokens) for path in paths],
            t("generate.col_sum"): [path.logprob if path.tokens else math.nan for path in paths],
            t("generate.branch_parts"): pd.array(
                [None if at is None else at + 1 for at in parting], dtype="Int64"
            ),
            t("generate.branch_view"): ["◀" if path.current else "" for path in paths],
        }
    )
