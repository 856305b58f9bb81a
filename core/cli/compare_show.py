"""A comparison for people at a terminal: texts token by token, then the figures."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from core.cli.compare_records import reference_of, vocabulary_of
from core.compare_records import Comparison, Difference, Figures, Question, Written
from core.decode import difference, figures
from core.decode.compare import seed_of, throws
from core.engine.protocol import Engine
from core.faults import Fault
from core.tokens import Vocabulary

Engines = Mapping[str, Engine | Fault]
NAME: Final = 28
"""Columns of the terminal for the name of a strategy; longer ones are cut."""
CELL: Final = 16
ACROSS: Final = 7
"""Columns whose figures fit side by side."""
NOTHING: Final = "–"


def _number(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


FIGURES: Final[tuple[tuple[str, Callable[[Figures], str]], ...]] = (
    ("tokens", lambda f: str(f.tokens)),
    ("ln p", lambda f: _number(f.logprob, 2)),
    ("perplexity", lambda f: NOTHING if f.perplexity is None else f"{f.perplexity:.4g}"),
    ("entropy", lambda f: _number(f.entropy, 2)),
    ("rank", lambda f: _number(f.rank, 1)),
    ("distinct-2", lambda f: _number(f.distinct[1], 3)),
    ("longest", lambda f: str(f.longest_repeat)),
    ("rep-4", lambda f: _number(f.repeated_4grams, 3)),
    ("Zipf", lambda f: _number(f.zipf, 2)),
    ("self-BLEU", lambda f: _number(f.self_bleu, 3)),
    ("rows", lambda f: str(f.forwards)),
    ("tokens/s", lambda f: _number(f.tokens_per_second, 1)),
)


def listing(found: Comparison, engines: Engines, lines: Sequence[str]) -> None:
    """Everything that fits a terminal; JSON has the rest."""
    names = [f"{place + 1}  {_cut(line, NAME - 4)}" for place, line in enumerate(lines)]
    words = [vocabulary_of(found, engines, place) for place in range(len(names))]
    reference = reference_of(found)
    parts = {
        place: difference(found, engines, place, reference)
        for place, written in enumerate(found.columns)
        if written.texts and place != reference
    }
    _rows(found, names, words, parts)
    for place, written in enumerate(found.columns):
        _text(names[place], written, words[place])
        if written.fault is not None:
            print(f"    failed: {written.fault}")
        if place in parts:
            print(f"    {sentence(parts[place], reference, words[place], words[reference])}")
    _figures(found, names, words)
    print(f"\n{_dice(found.question)}; {found.steps} turns, {found.ms / 1000:.2f} s", end="")
    print("; you stopped it" if found.cancelled else "")


def _dice(question: Question) -> str:
    if question.dice == "own":
        return "dice of their own"
    drawn = [place for place, c in enumerate(question.columns) if throws(c.settings)]
    alike = len({seed_of(question, place) for place in drawn}) < 2
    return "the same dice for all" if alike else "the same dice for all that name no other seed"


def width(text: str) -> int:
    """Columns of a terminal: Chinese characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def _cut(text: str, most: int) -> str:
    while width(text) > most:
        text = text[:-2] + "…"
    return text


def _padded(text: str, to: int) -> str:
    return text + " " * (to - width(text))


def _rows(
    found: Comparison,
    names: Sequence[str],
    words: Sequence[Vocabulary | None],
    parts: Mapping[int, Difference],
) -> None:
    """The first text of every column, step below step; [brackets] where it parts."""
    table = {
        place: _cells(written, words[place], parts.get(place))
        for place, written in enumerate(found.columns)
        if written.texts
    }
    steps = max(map(len, table.values()), default=0)
    room = max(40, shutil.get_terminal_size((100, 24)).columns) - NAME
    start = 0
    while start < steps:
        wide: list[int] = []
        used, stop = 0, start
        while stop < steps:
            cells = [row[stop] for row in table.values() if stop < len(row)]
            need = max(map(width, (*cells, str(stop)))) + 2
            if used + need > room and wide:
                break
            wide.append(need)
            used, stop = used + need, stop + 1
        heads = [_padded(str(step), wide[step - start]) for step in range(start, stop)]
        print((_padded("step", NAME) + "".join(heads)).rstrip())
        for place, row in table.items():
            padded = map(_padded, row[start:stop], wide)
            print((_padded(names[place], NAME) + "".join(padded)).rstrip())
        print()
        start = stop


def _cells(written: Written, words: Vocabulary | None, parts: Difference | None) -> list[str]:
    if words is None:
        return []
    cells = [_cut(words.label(id), CELL) for id in written.texts[0].ids]
    if parts is not None and parts.step is not None and parts.step < len(cells):
        cells[parts.step] = f"[{cells[parts.step]}]"
    return cells


def _text(name: str, written: Written, words: Vocabulary | None) -> None:
    print(name)
    if words is None:
        return
    for text in written.texts:
        said = words.text(text.ids, skip_special=True)
        print("\n".join(f"    {line}" for line in said.split("\n")))


def sentence(
    parts: Difference, reference: int, here: Vocabulary | None, there: Vocabulary | None
) -> str:
    """Where a column parts from the reference, and why."""
    other = f"column {reference + 1}"
    if parts.step is None:
        return f"the same as {other}"
    mine, theirs = _label(parts.here, here), _label(parts.there, there)
    owner = "this column" if parts.removed_here else other
    stage = "" if parts.stage is None else parts.stage.replace("_", "-")
    value = "off" if parts.parameter is None else str(parts.parameter)
    acting = f"{stage} = {value} of {owner}"
    gone, by = (theirs, other) if parts.removed_here else (mine, "this column")
    why = {
        "removed": f"{acting} removed {gone}, which {by} took",
        "moved": f"{acting} moved the bar, so the same dice fell elsewhere",
        "reordered": f"{acting} put another token on top",
        "other_dice": "the dice were others",
        "not_drawn": f"{owner} takes the top without dice",
        "search": f"{owner} is a search, which looks ahead",
        "forced": f"the token of {owner} was forced",
        "other_model": "another model wrote it",
        "one_ended": f"{owner} has ended",
    }
    what = f"{mine} instead of {theirs}: " if parts.reason != "one_ended" else ""
    return f"parts from {other} at step {parts.step}: {what}{why[parts.reason]}"


def _label(id: int | None, words: Vocabulary | None) -> str:
    return "nothing" if id is None or words is None else words.label(id)


def _figures(found: Comparison, names: Sequence[str], words: Sequence[Vocabulary | None]) -> None:
    """A figure a row, side by side as the columns are; many columns become the rows."""
    heads = [head for head, _ in FIGURES]
    table: dict[str, list[str]] = {}
    for name, written, vocabulary in zip(names, found.columns, words, strict=True):
        if vocabulary is not None and written.texts:
            own = figures(written, vocabulary)
            table[name] = [say(own) for _, say in FIGURES]
    print()
    if len(table) > ACROSS:
        print(_padded("", NAME) + "".join(f"{head:>{len(head) + 3}}" for head in heads))
        for name, cells in table.items():
            row = [f"{cell:>{len(head) + 3}}" for cell, head in zip(cells, heads, strict=True)]
            print(_padded(name, NAME) + "".join(row))
        return
    print(f"{'column':<12}" + "".join(f"{name.split()[0]:>12}" for name in table))
    for place, head in enumerate(heads):
        print(f"{head:<12}" + "".join(f"{cells[place]:>12}" for cells in table.values()))
