"""Which batches a question has read so far, so that its next one continues them.

The numbers of a batched pass depend, in their last digits, on the rows that were read beside
each other in it and before it. So keys and values are named by the whole history of batches
that made them; a step that was forgotten can be made again from the start, to the bit.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal

import numpy as np
from jaxtyping import Int

from core.engine.memory import ByteLRU, Ids

Way = Literal["single", "prompts", "fan", "gather", "next"]
"""How a batch is read. "single": one row, as a run of one text. "prompts": whole prompts, each
for itself. "fan": continuations of one text. "gather": texts of different prompts or lengths,
each from its own cache. "next": each row is a token more than a row of the batch before."""

ENTRY: Final = 400
"""Bytes that a batch weighs besides its arrays, roughly."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Distinct rows read together, and the batch that they continue."""

    way: Way
    size: int
    """Rows."""
    longest: int
    """Tokens of the longest one, or a few more where that one is gone."""
    prompt_length: int | None
    """Of every row; ``None``: of each the length that it had in the first batch."""
    texts: tuple[Ids, ...] = ()
    """The rows themselves, where nothing is before them."""
    before: Batch | None = None
    parents: Int[np.ndarray, " row"] | None = None
    """Which row of ``before`` each one continues …"""
    tokens: Int[np.ndarray, " row"] | None = None
    """… and by which token."""
    depth: int = 0
    """Batches before this one."""
    lone: bool = False
    """It and all before it have one row."""
    padded: bool = False
    """Its rows are of different lengths, or were."""
    cells: int = 0
    """Where padded: the most positions that it or a batch before it holds."""
    named: bool = True
    """Whether the question has a name, and so may go on."""

    def rows(self) -> tuple[Ids, ...]:
        """The texts, in the order asked."""
        added, index, first = [], np.arange(self.size), self
        while first.before is not None and first.tokens is not None and first.parents is not None:
            added.append(first.tokens[index])
            index, first = first.parents[index], first.before
        if not added:
            return self.texts
        new = np.stack(added[::-1], axis=1).tolist()
        return tuple((*first.texts[i], *row) for i, row in zip(index.tolist(), new, strict=True))

    def prompt_of(self, row: Ids) -> int:
        """The length of a row's prompt."""
        return len(row) - self.depth if self.prompt_length is None else self.prompt_length


@dataclass
class _Tree:
    """The batches of one question, the oldest first."""

    batches: list[Batch] = field(default_factory=list)
    size: int = 0


class Histories:
    """The batches of all questions, within a byte budget; those longest unused are dropped.

    A question asks one sequence of batches, as often as it likes. Where two sequences differ
    they are two questions and need two names.
    """

    def __init__(self, limit: int) -> None:
        self._trees: ByteLRU[Hashable, _Tree] = ByteLRU(limit)
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        return self._trees.used

    def place(self, run: Hashable, prompt_length: int | None, rows: tuple[Ids, ...]) -> Batch:
        """The batch of these distinct rows: a known one, or the next, or a first one."""
        if run is None:
            return _first(rows, prompt_length, named=False)
        key = (run, prompt_length)
        with self._lock:
            tree = self._trees.get(key) or _Tree()
            found, before = _search(tree.batches, rows)
            if found is None:
                found = _first(rows, prompt_length) if before is None else _after(before, rows)
                tree.batches.append(found)
                tree.size += ENTRY + 16 * found.size + 8 * sum(map(len, found.texts))
            self._trees.put(key, tree, tree.size)
            return found


def _search(batches: Sequence[Batch], rows: tuple[Ids, ...]) -> tuple[Batch | None, Batch | None]:
    """(the batch of just these rows, the oldest one that all of them continue)."""
    wanted, before = {row[:-1] for row in rows}, None
    most = max(map(len, rows))
    for batch in batches:
        same = batch.size == len(rows) and batch.longest >= most
        parent = before is None and batch.size >= len(wanted) and batch.longest >= most - 1
        if not (same or parent):
            continue
        held = batch.rows()
        if held == rows:
            return batch, None
        if parent and wanted <= set(held):
            before = batch
    return None, before


def _first(rows: tuple[Ids, ...], prompt_length: int | None, *, named: bool = True) -> Batch:
    longest, way, start = max(map(len, rows)), "gather", prompt_length
    if len(rows) == 1:
        way = "single"
    elif start is None or all(len(row) == start for row in rows):
        way = "prompts"
    elif all(len(a) == len(b) and a[:start] == b[:start] for a, b in pairwise(rows)):
        way = "fan"
    padded = way == "gather"
    return Batch(
        way=way,  # type: ignore[arg-type]
        size=len(rows),
        longest=longest,
        prompt_length=prompt_length,
        texts=rows,
        lone=len(rows) == 1,
        padded=padded,
        cells=len(rows) * longest if padded else 0,
        named=named,
    )


def _after(before: Batch, rows: tuple[Ids, ...]) -> Batch:
    place = {row: index for index, row in enumerate(before.rows())}
    way: Way = "next"
    if before.lone:
        way = "single" if len(rows) == 1 else "fan"
    elif before.way == "prompts":
        way = "gather"
    padded = before.padded or way == "gather"
    return Batch(
        way=way,
        size=len(rows),
        longest=before.longest + 1,
        prompt_length=before.prompt_length,
        before=before,
        parents=np.array([place[row[:-1]] for row in rows]),
        tokens=np.array([row[-1] for row in rows]),
        depth=before.depth + 1,
        lone=way == "single",
        padded=padded,
        cells=max(before.cells, len(rows) * (before.longest + 1)) if padded else 0,
    )
