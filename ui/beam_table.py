"""Toy tables on the Beam search page: the classics, and one that the reader writes. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from core.beam_records import BeamSearch
from core.decode import search
from core.engine.toy_classics import CLASSICS, classic_path, limit_of
from core.engine.toy_table import ToyTable, parse_table
from core.faults import Fault
from core.settings import BeamSettings

PARTS: Final = ("vocab", "end", "next")


@dataclass(frozen=True)
class Lesson:
    """What a classic shows: the same search with one setting changed."""

    field: str
    """A field of ``ui.view.View``."""
    values: tuple[Any, ...]
    start: dict[str, Any]
    """The other settings, and the first value of ``field`` to look at."""


LESSONS: Final = {
    "beam_beats_greedy": Lesson("beams", (1, 2), {"beams": 2, "alpha": 0.0, "rule": "best"}),
    "wider_is_worse": Lesson("beams", (1, 2, 3), {"beams": 2, "alpha": 0.0, "rule": "best"}),
    "length_penalty": Lesson("alpha", (0.0, 1.0), {"beams": 2, "alpha": 0.0, "rule": "best"}),
    "early_stopping": Lesson("rule", ("full", "best"), {"beams": 2, "alpha": 0.0, "rule": "full"}),
}


def content_of(name: str) -> dict[str, Any]:
    """The file of a classic. Raises KeyError for another name."""
    content: dict[str, Any] = json.loads(classic_path(name).read_text(encoding="utf-8"))
    return content


@cache
def outcomes(name: str) -> tuple[BeamSearch, ...]:
    """The searches that a classic's lesson compares, one for each of its values."""
    lesson, table = LESSONS[name], table_of(name)
    found = []
    for value in lesson.values:
        asked = {**lesson.start, lesson.field: value}
        settings = BeamSettings(
            width=asked["beams"],
            length_penalty=asked["alpha"],
            stop=asked["rule"],
            max_new=limit_of(name),
        )
        found.append(
            search(lambda prefixes: [table.row(p) for p in prefixes], settings, table.end_ids)
        )
    return tuple(found)


def table_of(text: str) -> ToyTable:
    """The table that ``View.table`` names or spells. Raises Fault with one sentence."""
    if text in CLASSICS:
        return parse_table(content_of(text))
    return parse_table(_json(text))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Fault("table_not_json", line=error.lineno, column=error.colno) from None
    except (ValueError, RecursionError):
        raise Fault("table_not_json", line=1, column=1) from None


def packed(text: str) -> str:
    """The shortest spelling of a table for a link; what is no table stays as it was typed."""
    try:
        content = _json(text)
        parse_table(content)
    except Fault:
        return text.strip()
    return json.dumps(
        {part: content[part] for part in PARTS if part in content},
        ensure_ascii=False,
        separators=(",", ":"),
    )


def pretty(text: str) -> str:
    """A table as people write it, one row a line; what is no table stays as it was typed."""
    try:
        content = content_of(text) if text in CLASSICS else _json(text)
        parse_table(content)
    except Fault:
        return text
    width = max(len(_spell(history)) for history in content["next"])
    rows = [
        f"    {_spell(history) + ':':<{width + 2}}{_spell(row)}"
        for history, row in content["next"].items()
    ]
    head = f'{{\n  "vocab": {_spell(content["vocab"])},\n  "end": {_spell(content.get("end", []))},'
    return "\n".join((head, '  "next": {', ",\n".join(rows), "  }", "}"))


def _spell(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
