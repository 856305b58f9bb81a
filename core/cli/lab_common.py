"""What the experiments of ``lab`` share: their options, the model, progress, the end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, Protocol, TypeVar

from core.cli import show
from core.cli.output import check_target, write_json
from core.decode.generate import Stopped
from core.engine.protocol import Engine
from core.engine.store import build
from core.faults import Fault
from core.models.catalog import resolve
from core.settings import RunSpec

PROMPT: Final = "The capital of France is"


class Answer(Protocol):
    """A record of an experiment: more and more of it, until it is done."""

    @property
    def done(self) -> bool: ...


T = TypeVar("T", bound=Answer)


def add_model(parser: argparse.ArgumentParser) -> None:
    """The model, what is done to it, and where the result goes."""
    parser.add_argument(
        "--model",
        default=RunSpec().model,
        metavar="NAME|PATH",
        help=f"a name of the catalogue, a hub id or a folder (default: {RunSpec().model})",
    )
    add_edit(parser)
    add_json(parser)


def add_edit(parser: argparse.ArgumentParser) -> None:
    """What is done to the weights."""
    parser.add_argument(
        "--edit",
        metavar="EDIT",
        help="what is done to the weights first, such as bits:4:group:64 or neurons:0.2+int8",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", metavar="-|FILE", nargs="?", const="-", help="JSON to the screen or to a file"
    )


def add_prompt(parser: argparse.ArgumentParser) -> None:
    """A text to work on."""
    parser.add_argument(
        "prompt", metavar="PROMPT", nargs="?", default=PROMPT, help=f"default: {PROMPT}"
    )


def engine_of(typed: argparse.Namespace) -> Engine:
    """The model that was asked for. Raises Fault when it cannot be had."""
    with show.Progress(typed.model) as progress:
        return build(resolve(typed.model), progress)


def ids_of(engine: Engine, prompt: str) -> tuple[int, ...]:
    """The prompt as it is read. Raises Fault for an empty one."""
    ids = engine.vocabulary.read(prompt).ids
    if not ids:
        raise Fault("empty_prompt")
    return ids


def to_the_end(turns: Generator[T, None, Any]) -> T:
    """The last record of an experiment; Ctrl-C stops it and leaves what there is.

    Raises KeyboardInterrupt where there is nothing yet.
    """
    last: T | None = None
    try:
        with _Progress() as tell:
            for last in turns:
                tell(getattr(last, "progress", 0.0))
                if last.done:
                    break
    except (KeyboardInterrupt, Stopped):
        turns.close()
    if last is None:
        raise KeyboardInterrupt
    return last


class _Progress:
    """One line on stderr, where somebody looks at it."""

    def __enter__(self) -> _Progress:
        self._live = sys.stderr.isatty()
        return self

    def __call__(self, share: float) -> None:
        if self._live:
            line = f"\r\033[K{share:.0%} (Ctrl-C stops)"
            print(line, end="", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        if self._live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def written(
    typed: argparse.Namespace,
    make: Callable[[], dict[str, Any]],
    lines: Callable[[dict[str, Any]], Iterable[str]],
) -> None:
    """Find out whether the result can be written, make it, and write it: as JSON, or in lines."""
    check_target(typed.json)
    record = make()
    if typed.json:
        write_json(record, typed.json)
        return
    for line in lines(record):
        print(line)
