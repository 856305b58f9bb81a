"""Finding tokens by what they look like."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from core.visible import MARKS, visible

_UNMARK = str.maketrans({mark: char for char, mark in MARKS.items()})


class Index:
    """All labels of a vocabulary as one string, so that a search is one scan in C.

    Labels never hold a newline (it is shown as ↵), which therefore separates them.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self._size = len(labels)
        self._tables = [_joined(labels), _joined([label.casefold() for label in labels])]

    def find(self, query: str, limit: int) -> tuple[int, ...]:
        """At most ``limit`` ids: the id itself, whole labels, beginnings, insides."""
        found: dict[int, None] = {}
        if re.fullmatch(r"[0-9]{1,9}", query.strip()) and int(query) < self._size:
            found[int(query)] = None
        for id in self._matches(query):
            if len(found) >= limit:
                break
            found[id] = None
        return tuple(found)[:limit]

    def _matches(self, query: str) -> Iterator[int]:
        plain = visible(query.translate(_UNMARK))
        forms = [plain] if query == plain or "\n" in query else [plain, query]
        forms = [form for form in forms if form]
        for patterns in (["\n{}\n", "\n␣{}\n"], ["\n{}", "\n␣{}"], ["{}"]):
            for fold, table in enumerate(self._tables):
                for pattern, form in itertools.product(patterns, forms):
                    sought = pattern.replace("{}", form.casefold() if fold else form)
                    yield from _scan(*table, sought)


def _joined(labels: Sequence[str]) -> tuple[str, list[int]]:
    """The labels between newlines, and the offset at which each begins."""
    starts = [1, *itertools.accumulate((len(label) + 1 for label in labels), initial=1)][1:-1]
    return "\n" + "\n".join(labels) + "\n", starts


def _scan(text: str, starts: list[int], sought: str) -> Iterator[int]:
    position = text.find(sought)
    lead = 1 if sought.startswith("\n") else 0
    while position >= 0:
        id = bisect_right(starts, position + lead) - 1
        yield id
        # on to the next label: one hit each is enough
        following = starts[id + 1] - 1 if id + 1 < len(starts) else len(text)
        position = text.find(sought, following)
