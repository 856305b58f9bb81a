"""``compare``: strategies side by side on one prompt, as JSON or for people."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, cast

from core.cli import show
from core.cli.compare_records import comparison_record
from core.cli.compare_show import listing
from core.cli.numbers import whole
from core.cli.output import check_target, write_json
from core.compare_records import DICE, Column, Comparison, Dice, Question
from core.decode import compare, parse_column, parse_sweep, sweep_columns
from core.decode.compare import UNREAD
from core.engine.protocol import Engine
from core.engine.store import build
from core.faults import Fault
from core.models.catalog import resolve
from core.settings import Settings

MOST_COLUMNS: Final = 12
USUAL: Final = ("greedy", "beam", "sample", "sample,top_p=0.9")


@dataclass(frozen=True)
class Asked:
    """The columns as they were typed; ``failed`` are those that are no strategy, by place."""

    lines: tuple[str, ...]
    columns: tuple[Column, ...]
    failed: dict[int, Fault]


def run(typed: argparse.Namespace) -> None:
    """Write all columns at once. Raises Fault where nothing at all can be compared.

    A strategy that cannot be read, or that fails on the way, fails alone.
    """
    asked = _swept(typed) if typed.sweep else _listed(typed.column or USUAL)
    question = Question(
        prompt=typed.prompt,
        model=typed.model,
        columns=asked.columns,
        samples=_whole("samples", typed.samples, 1),
        # The question refuses unknown ones.
        dice=DICE[0] if typed.dice is None else cast(Dice, typed.dice),
        max_new=_whole("max-new", typed.max_new, Settings().max_new),
        literal=typed.literal,
        chat=typed.chat,
    )
    check_target(typed.json)
    engines = _engines(question, asked)
    found = _compared(engines, question, asked)
    faults = [written.fault for written in found.columns if written.fault is not None]
    if len(faults) == len(found.columns):
        raise faults[0]
    if typed.json:
        write_json(comparison_record(found, engines, asked.lines), typed.json)
    else:
        listing(found, engines, asked.lines)


def _listed(lines: tuple[str, ...]) -> Asked:
    if len(lines) > MOST_COLUMNS:
        raise Fault("too_many_columns", count=len(lines), most=MOST_COLUMNS)
    columns, failed = [], {}
    for place, line in enumerate(lines):
        try:
            columns.append(parse_column(line))
        except Fault as fault:
            columns.append(UNREAD)
            failed[place] = fault
    return Asked(tuple(lines), tuple(columns), failed)


def _swept(typed: argparse.Namespace) -> Asked:
    """One column with each value of the sweep. Raises Fault for more than one to start from."""
    if typed.column and len(typed.column) > 1:
        raise Fault("sweep_of_one")
    base = parse_column(typed.column[0]) if typed.column else Column(Settings())
    sweep = parse_sweep(typed.sweep)
    columns = sweep_columns(base, sweep)
    return Asked(tuple(f"{sweep.name}={value:g}" for value in sweep.values), columns, {})


def _whole(name: str, text: str | None, usual: int) -> int:
    found = whole(name, text)
    return usual if found is None else found


def _engines(question: Question, asked: Asked) -> dict[str, Engine | Fault]:
    """Every model that a column needs, or why it is not there."""
    wanted = [
        column.model or question.model
        for place, column in enumerate(asked.columns)
        if place not in asked.failed
    ]
    engines: dict[str, Engine | Fault] = {}
    for name in dict.fromkeys(wanted):
        try:
            with show.Progress(name) as progress:
                engines[name] = build(resolve(name), progress)
        except Fault as fault:
            engines[name] = fault
    return engines


def _compared(engines: dict[str, Engine | Fault], question: Question, asked: Asked) -> Comparison:
    with show.Interrupt() as interrupt, _Turns() as turns:
        after: Callable[[Comparison], None] = interrupt.after(turns)
        for found in compare(engines, question, failed=asked.failed, on_turn=after):
            last = found
    return last


class _Turns:
    """One line on stderr that says how far the comparison is, where somebody looks at it."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()

    def __enter__(self) -> _Turns:
        return self

    def __call__(self, now: Comparison) -> None:
        if self._live:
            texts = [text for written in now.columns for text in written.texts]
            ready = sum(text.stop is not None for text in texts)
            line = f"turn {now.steps}: {ready} of {len(texts)} texts are complete (Ctrl-C stops)"
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    def __exit__(
        self, _t: type[BaseException] | None, _e: BaseException | None, _b: TracebackType | None
    ) -> None:
        if self._live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
