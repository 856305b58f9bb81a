"""Strategies side by side: all of them take their next step together, as one batch.

Each turn, every text still being written says which prefix it wants read. Equal prefixes are
read once, whoever wants them, and all that one model is asked in a turn is one batch. So two
sampling columns whose filters leave the same tokens write the same text, to the bit.

Dice. ``seed_of`` is the seed of each text. With the dice "same", a column that throws dice
(sampled beams, too) and names no seed has that of the first one that does, and 0 if none does;
one that names a seed keeps it, since it was asked for. With "own", a column keeps
its seed unless one before it has the same, and then gets one derived from it. The first sample
has that seed itself, so it is what Generate writes with it; the others have derived ones.
"""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from jaxtyping import Float

from core.compare_records import Column, Comparison, Question
from core.decode.generate import Stopped
from core.decode.lanes import AnyLane, Ids, Track
from core.decode.parting import parted
from core.engine.protocol import Engine
from core.engine.work import working
from core.faults import Fault
from core.settings import MAX_SEED, BeamSettings, Settings

__all__ = ["MOST_ROWS", "UNREAD", "compare", "seed_of", "shared_seed", "texts_of", "throws"]

Engines = Mapping[str, "Engine | Fault"]
"""By the names that the question uses; a Fault says why a model is not there."""
OnTurn = Callable[[Comparison], None]
Row = Float[np.ndarray, " vocabulary"]
UNREAD: Final = Column(Settings(strategy="greedy"))
"""Holds the place of a column that is no strategy."""
MOST_ROWS: Final = 64
"""Texts of sampling columns written at a time. More samples come in waves: memory stays
bounded, and a reader who stops waits for one turn of these only."""


def compare(
    engines: Engines,
    question: Question,
    *,
    failed: Mapping[int, Fault] = MappingProxyType({}),
    on_turn: OnTurn | None = None,
) -> Iterator[Comparison]:
    """The comparison after each turn, in which every unfinished text gets one token.

    A column that fails, for its settings or for its model, holds its Fault, and the others go
    on; nothing is raised. ``failed`` are columns whose line could not even be read, by place:
    they only hold their place, such as ``UNREAD``.

    Whoever has enough stops iterating, or raises :class:`Stopped` from ``on_turn`` or into the
    generator: then one more comparison comes, with all that is there, ``cancelled``. Raises
    Fault for a question without columns.
    """
    if not question.columns:
        raise Fault("no_columns")
    return _turns(Lockstep(engines, question, failed), on_turn)


def _turns(run: Lockstep, on_turn: OnTurn | None) -> Iterator[Comparison]:
    if run.done:
        yield run.result()
    try:
        while not run.done:
            run.advance()
            now = run.result()
            if on_turn is not None:
                on_turn(now)
            yield now
    except Stopped:
        if not run.done:
            run.cut()
        yield run.result()


def texts_of(question: Question, column: int) -> int:
    """How many texts a column writes: several only where dice are thrown, token by token."""
    settings = question.columns[column].settings
    return question.samples if throws(settings) and isinstance(settings, Settings) else 1


def throws(settings: Settings | BeamSettings) -> bool:
    """Whether dice are thrown: by sampling, and by beams that are drawn."""
    if isinstance(settings, BeamSettings):
        return settings.kind == "sampled"
    return not settings.is_greedy


def seed_of(question: Question, column: int, sample: int = 0) -> int:
    """The seed of the dice of one text; :func:`core.decode.run` (or ``beam_search``) with it
    writes the same."""
    own = [column.settings.seed for column in question.columns]
    dice = [i for i, column in enumerate(question.columns) if throws(column.settings)]
    seed = own[column]
    if column not in dice:
        return seed
    if question.dice == "same":
        asked = question.columns
        seed = seed if names_seed(asked[column]) else shared_seed(asked)
    else:
        before = sum(own[i] == seed for i in dice if i < column)
        seed = _derived(seed, "column", before) if before else seed
    return _derived(seed, "sample", sample) if sample else seed


def shared_seed(columns: Iterable[Column]) -> int:
    """The seed of all columns that name none: the first named one, or 0."""
    return next((c.settings.seed for c in columns if throws(c.settings) and names_seed(c)), 0)


def names_seed(column: Column) -> bool:
    """Whether a column has a seed of its own to keep."""
    return column.seeded or column.settings.seed != 0


def _derived(seed: int, what: str, number: int) -> int:
    """63 bits of SHA-256("seed/what/number")."""
    digest = hashlib.sha256(f"{seed}/{what}/{number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") & MAX_SEED


class Lockstep:
    """A comparison between two turns."""

    def __init__(self, engines: Engines, question: Question, failed: Mapping[int, Fault]) -> None:
        self.question = question
        self.tracks = [
            Track(
                column,
                question,
                failed.get(place) or _found(engines, column.model or question.model),
                [seed_of(question, place, s) for s in range(texts_of(question, place))],
            )
            for place, column in enumerate(question.columns)
        ]
        drawing = sum(len(track.lanes) > 1 for track in self.tracks)
        self._at_once = max(1, MOST_ROWS // max(1, drawing))
        self._engines, self._failed = dict(engines), tuple(sorted(failed))
        self._steps, self._ms, self._cancelled = 0, 0.0, False

    @property
    def done(self) -> bool:
        return self._cancelled or all(track.done for track in self.tracks)

    def advance(self) -> None:
        """One turn: a token for every unfinished text of this wave."""
        began = time.perf_counter()
        wave = min(track.first_open for track in self.tracks if not track.done) // self._at_once
        samples = range(wave * self._at_once, (wave + 1) * self._at_once)
        groups: dict[str, list[tuple[Track, AnyLane]]] = defaultdict(list)
        for track in self.tracks:
            for lane in track.open(samples):
                groups[track.model].append((track, lane))
        for model, lanes in groups.items():
            self._turn(model, lanes, wave)
        self._steps += 1
        self._ms += (time.perf_counter() - began) * 1000

    def _turn(self, model: str, lanes: Sequence[tuple[Track, AnyLane]], wave: int) -> None:
        prompt = lanes[0][0].prompt
        wanted = dict.fromkeys(ids for _, lane in lanes for ids in lane.wanted)
        with working() as work:
            rows = self._read(model, prompt, list(wanted), wave)
        each = work.ms / sum(len(lane.wanted) for _, lane in lanes)
        starts = [(track, lane.wanted[0]) for track, lane in lanes if lane.leads]
        for track, lane in lanes:
            if track.fault is None:  # of another of its texts
                track.take(lane, [rows[ids] for ids in lane.wanted], each)
        parted(starts, rows, self.tracks)

    def _read(
        self, model: str, prompt: Ids, wanted: Sequence[Ids], wave: int
    ) -> dict[Ids, Row | Fault]:
        """Logits after each generated prefix; where a batch fails, what fails in it alone."""
        engine = self._engines[model]
        assert not isinstance(engine, Fault)  # such a column wants nothing
        length = len(prompt)
        try:
            batch = engine.next_logits(
                [(*prompt, *ids) for ids in wanted],
                prompt_length=length,
                run=("compare", self.question, self._failed, model, wave),
            )
            return dict(zip(wanted, batch, strict=True))
        except Fault:
            found: dict[Ids, Row | Fault] = {}
        for ids in wanted:
            try:
                found[ids] = engine.next_logits([(*prompt, *ids)], prompt_length=length)[0]
            except Fault as fault:
                found[ids] = fault
        return found

    def cut(self) -> None:
        """The reader has seen enough: texts end where they are."""
        self._cancelled = True
        for track in self.tracks:
            track.cut()

    def result(self) -> Comparison:
        """Where all columns stand. Nothing in it changes later."""
        return Comparison(
            question=self.question,
            columns=tuple(track.written() for track in self.tracks),
            steps=self._steps,
            ms=self._ms,
            cancelled=self._cancelled,
        )


def _found(engines: Engines, name: str) -> Engine | Fault:
    return engines[name] if name in engines else Fault("model_of_column", name=name)
