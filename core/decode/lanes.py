"""The texts of one column of a comparison while they are being written.

A ``Lane`` says which prefixes it wants read next and is given their logits; a ``Track`` is the
column that its lanes belong to.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from core.compare_records import Column, Difference, Question, Text, Written
from core.decode.beam import BeamRun
from core.decode.choose import choose
from core.decode.ends import end_ids
from core.decode.generate import stop_reason
from core.decode.measure import checked, entropy, probabilities, rank
from core.decode.past import Past
from core.decode.rules import rules_for
from core.engine.cost import check_prompt
from core.engine.protocol import Engine
from core.faults import Fault
from core.settings import BeamSettings, Settings
from core.trace import Choice, Stop

Ids = tuple[int, ...]
Row = Float[np.ndarray, " vocabulary"]


class Lane:
    """One text, a token at a time. Raises Fault for a pattern that is not understood."""

    def __init__(self, settings: Settings, engine: Engine, prompt: Ids, sample: int) -> None:
        self.settings = settings
        self._rules = rules_for(settings, engine.vocabulary)
        self.text = Text(sample, (), None)
        self.ids: Ids = ()
        self.leads = sample == 0
        self._info, self._prompt = engine.info, prompt

    @property
    def open(self) -> bool:
        return self.text.stop is None

    @property
    def wanted(self) -> tuple[Ids, ...]:
        return (self.ids,)

    def choice(self, row: Row, ids: Ids, *, with_stages: bool = False) -> Choice:
        """What these settings choose after the generated ``ids``. Raises Fault as ``choose``."""
        return choose(
            row,
            self.settings,
            step=len(ids),
            past=Past((*self._prompt, *ids), len(self._prompt)),
            rules=self._rules,
            with_stages=with_stages,
        )

    def take(self, rows: Sequence[Row]) -> None:
        """Write the token that ``rows`` [1, V] lead to. Raises Fault as ``choose``."""
        try:
            chosen = self.choice(rows[0], self.ids)
        except Fault as fault:
            # As in a run: what was written stays, and with nothing written the column fails.
            if fault.code != "no_token_left" or not self.ids:
                raise
            self.text = replace(self.text, stop="no_token_left")
            return
        self.ids = (*self.ids, chosen.id)
        stop = stop_reason(self._info, self.settings, len(self._prompt), self.ids)
        self.text = Text(self.text.sample, (*self.text.choices, chosen), stop)

    def cut(self) -> None:
        self.text = replace(self.text, stop=self.text.stop or "user")


class BeamLane:
    """The leading text of a beam search, and the search."""

    leads = False

    def __init__(self, settings: BeamSettings, engine: Engine, prompt: Ids) -> None:
        ends = end_ids(settings, engine)
        self.run = BeamRun(settings, ends, prompt=prompt, context=engine.info.context)
        self.text = Text(0, (), None)
        self._choices: dict[tuple[int, int], Choice] = {}

    @property
    def open(self) -> bool:
        return bool(self.run.wanted)

    @property
    def wanted(self) -> tuple[Ids, ...]:
        return self.run.wanted

    def take(self, rows: Sequence[Row]) -> None:
        """One step of the search with ``rows`` [beam, V]. Raises Fault as ``advance``."""
        began = time.perf_counter()
        step = self.run.advance(rows)
        table = [checked(row) for row in rows]
        unsure = [entropy(probabilities(row)) for row in table]
        for place, candidate in enumerate(step.candidates):
            if candidate.fate != "lost":
                self._choices[step.index, place] = Choice(
                    id=candidate.token,
                    rule="greedy",
                    probability_model=candidate.probability,
                    probability_filtered=candidate.probability,
                    rank=rank(table[candidate.parent], candidate.token),
                    u=None,
                    entropy_model=unsure[candidate.parent],
                    entropy_filtered=unsure[candidate.parent],
                )
        self.spend((time.perf_counter() - began) * 1000)
        self._lead()

    def spend(self, ms: float) -> None:
        """Add to the measured time of the last step."""
        last = self.run.steps[-1]
        self.run.steps = (*self.run.steps[:-1], replace(last, ms=last.ms + ms))

    def cut(self) -> None:
        self.run.cut()
        self._lead()

    def _lead(self) -> None:
        """The best text so far: of those complete and those alive, while it is running."""
        path, stop = self._best()
        choices = tuple(self._choices[node] for node in enumerate(path))
        self.text = Text(0, choices, stop)

    def _best(self) -> tuple[Sequence[int], Stop | None]:
        state, penalty = self.run.state, self.run.question.settings.length_penalty
        held = state.held[0] if state.held else None
        if state.stop is not None:
            return (held.path, held.end) if held else ((), "user")
        if not state.beams or not state.beams[0].path:
            return (held.path if held else (), None)
        alive = max(state.beams, key=lambda beam: beam.logprob)
        ahead = held is not None and held.score >= alive.logprob / len(alive.tokens) ** penalty
        return (held.path if held and ahead else alive.path), None


AnyLane = Lane | BeamLane


class Track:
    """One column. ``engine`` is a Fault where its model is not there."""

    def __init__(
        self, column: Column, question: Question, engine: Engine | Fault, seeds: Sequence[int]
    ) -> None:
        self.column = column
        self.model = column.model or question.model
        self.fault: Fault | None = None
        self.forwards, self.ms = 0, 0.0
        self.prompt: Ids = ()
        self.lanes: list[AnyLane] = []
        self.parted: dict[int, Difference] = {}
        try:
            self._begin(question, engine, seeds)
        except Fault as fault:
            self.fault = fault
        self.texts = [lane.text for lane in self.lanes]

    def _begin(self, question: Question, engine: Engine | Fault, seeds: Sequence[int]) -> None:
        if isinstance(engine, Fault):
            raise engine
        read = engine.vocabulary.read(question.prompt, chat=question.chat, literal=question.literal)
        self.prompt = read.ids
        check_prompt(engine.info, len(self.prompt))
        settings = replace(self.column.settings, max_new=question.max_new)
        if isinstance(settings, BeamSettings):
            self.lanes = [BeamLane(replace(settings, seed=seeds[0]), engine, self.prompt)]
            return
        self.lanes = [
            Lane(replace(settings, seed=seed), engine, self.prompt, sample)
            for sample, seed in enumerate(seeds)
        ]

    @property
    def done(self) -> bool:
        return self.fault is not None or not any(lane.open for lane in self.lanes)

    @property
    def first_open(self) -> int:
        """The first text that is not finished."""
        return next(place for place, lane in enumerate(self.lanes) if lane.open)

    def open(self, samples: Iterable[int]) -> list[AnyLane]:
        """Unfinished texts among these."""
        if self.fault is not None:
            return []
        return [self.lanes[s] for s in samples if s < len(self.lanes) and self.lanes[s].open]

    def take(self, lane: AnyLane, rows: Sequence[Row | Fault], each: float) -> None:
        """Give a text the logits it wanted; ``each`` row took so many milliseconds."""
        began = time.perf_counter()
        try:
            bad = [row for row in rows if isinstance(row, Fault)]
            if bad:
                raise bad[0]
            lane.take([row for row in rows if not isinstance(row, Fault)])
        except Fault as fault:
            self.fault = fault
        spent = each * len(rows)
        if isinstance(lane, BeamLane) and self.fault is None:
            lane.spend(spent)
        self.texts[lane.text.sample] = lane.text
        self.forwards += len(rows)
        self.ms += spent + (time.perf_counter() - began) * 1000

    def cut(self) -> None:
        for place, lane in enumerate(self.lanes):
            if lane.open:
                lane.cut()
            self.texts[place] = lane.text

    def written(self) -> Written:
        beams = [lane.run.result() for lane in self.lanes if isinstance(lane, BeamLane)]
        return Written(
            column=self.column,
            texts=tuple(self.texts),
            search=beams[0] if beams else None,
            forwards=self.forwards,
            ms=self.ms,
            fault=self.fault,
            parted=tuple(sorted(self.parted.items())),
        )
