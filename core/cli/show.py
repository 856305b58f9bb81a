"""Results for people at a terminal."""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, Final, TypeVar

from core.amounts import counted, in_bytes
from core.decode import Stopped, bits, probabilities
from core.decode.candidates import columns, top_ids
from core.engine.protocol import Engine
from core.models.catalog import ModelEntry, terms_text
from core.trace import Choice, Generation, StepTrace

T = TypeVar("T")
WORK: Final = {
    "download": "downloading",
    "unpack": "unpacking",
    "convert": "converting",
    "load": "loading",
    "wait": "waiting for another process that fetches it",
}
STOPS: Final = {
    "end_token": "the model chose an end token",
    "output_limit": "the output limit is reached",
    "context_limit": "the context is full",
    "no_token_left": "the rules leave no token that could come next",
    "user": "you stopped it",
}


class Progress:
    """One line on stderr that says how far the work is; a line each 10 % if that is a file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._shown = ""
        self._live = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __call__(self, fraction: float, code: str) -> None:
        percent = math.floor(100 * fraction)
        if not self._live and code != "wait":
            percent -= percent % 10
        line = f"{self.name}: {WORK.get(code, code)}, {percent} %"
        # A log wants to know of downloads, not that a model was loaded in two seconds.
        if line != self._shown and (self._live or code != "load"):
            self._shown = line
            print(
                f"\r\033[K{line}" if self._live else line,
                end="" if self._live else "\n",
                file=sys.stderr,
                flush=True,
            )

    def __exit__(self, *_: object) -> None:
        if self._live and self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class Interrupt:
    """Within it, Ctrl-C ends the run after the step at hand instead of the program."""

    def __init__(self) -> None:
        self._asked = False
        self._before: Any = None

    def __enter__(self) -> Interrupt:
        self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True

    def after(self, on_step: Callable[[T], None] | None) -> Callable[[T], None]:
        def step(trace: T) -> None:
            if on_step is not None:
                on_step(trace)
            if self._asked:
                raise Stopped

        return step

    def __exit__(
        self, _t: type[BaseException] | None, _e: BaseException | None, _b: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)


class Listing:
    """A run, line by line as it is made."""

    def __init__(self, engine: Engine) -> None:
        self.vocabulary = engine.vocabulary

    def step(self, step: StepTrace) -> None:
        choice, logits = step.choice, step.forward.logits
        if step.index == 0:
            print(
                f"{'step':>4}  {'token':<18}{'model':>8}{'filtered':>10}{'rank':>7}  "
                f"{'rule':<8}the model's favourites"
            )
        model = probabilities(logits)
        best = ", ".join(
            f"{self.vocabulary.label(token)} {model[token]:.1%}" for token in top_ids(logits, 3)
        )
        print(
            f"{step.index:>4}  {self.vocabulary.label(choice.id):<18}"
            f"{choice.probability_model:>8.2%}{choice.probability_filtered:>10.2%}"
            f"{choice.rank:>7}  {choice.rule:<8}{best}",
            flush=True,
        )

    def end(self, run: Generation) -> None:
        text = self.vocabulary.text(run.ids)
        perplexity = "–" if run.perplexity is None else f"{run.perplexity:.4g}"
        print(f"\n{text}\n")
        ended = STOPS[run.stop or "user"]
        print(f"{counted(len(run.prompt), 'prompt token')}, {len(run.steps)} new; {ended}.")
        print(f"total log-probability {run.logprob:.4f} nats, perplexity {perplexity}")


def stages(choice: Choice) -> None:
    """The stages as a table, and the choice below it."""
    width = max(12, *(len(stage.name) + 1 for stage in choice.stages))
    for stage, column in zip(choice.stages, columns(choice.stages), strict=True):
        setting = _setting(stage.parameter)
        kept = stage.keeps.nonzero()[0].tolist()
        shares = ", ".join(f"{token}: {column[token]:.4f}" for token in kept)
        kept_of = f"keeps {stage.survivors} ({stage.mass:.4f})"
        print(f"{stage.name:<{width}}{setting:>7}  {kept_of}  {shares}")
    dice = "" if choice.u is None else f" at u = {choice.u:.4f}"
    print(
        f"choice: token {choice.id} ({choice.rule}{dice}), probability "
        f"{choice.probability_model:.4f} in the model, {choice.probability_filtered:.4f} filtered"
    )
    print(
        f"entropy: {choice.entropy_model:.4f} nats ({bits(choice.entropy_model):.4f} bits) before "
        f"the filters, {choice.entropy_filtered:.4f} nats after"
    )


def _setting(parameter: float | int | str | None) -> str:
    if parameter is None:
        return "off"
    return parameter if isinstance(parameter, str) else f"{parameter:g}"


def catalogue(rows: Sequence[dict[str, Any]]) -> None:
    """The models as a table."""
    print(f"{'name':<16}{'state':<8}{'parameters':>13}{'on disk':>13}{'in memory':>13}  licence")
    for row in rows:
        print(
            f"{row['name']:<16}{row['state']:<8}{row['parameters']:>13,}"
            f"{_size(row['bytes_on_disk']):>13}{_size(row['bytes_in_memory']):>13}"
            f"  {row['licence']}"
        )


def _size(count: int | None) -> str:
    return "–" if not count else in_bytes(count)


def terms(entry: ModelEntry) -> None:
    """Whose terms fetching accepts, said before it starts."""
    text = terms_text(entry)
    if text:
        print(text, file=sys.stderr)
    licence = entry.licence or "the licence that its page names"
    print(
        f"{entry.name} comes under {licence} ({entry.licence_url}); to fetch it is to accept this.",
        file=sys.stderr,
    )
