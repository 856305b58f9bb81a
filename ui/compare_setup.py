"""What the Compare page is asked: columns from the link, the models they need, the question."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from core.compare_records import Column, Question
from core.decode.columns import parse_column, spell
from core.decode.compare import shared_seed, texts_of, throws
from core.engine.protocol import Engine
from core.engine.store import BUSY, HEAVY_LIMIT
from core.faults import Fault, NotReady
from core.models.catalog import CATALOGUE, TOY_PREFIX
from core.recorded import RecordedEngine
from core.settings import MAX_SEED, BeamSettings, RunSpec
from core.tokens import Vocabulary
from ui import state
from ui.figures.compare_words import name
from ui.i18n import Catalog
from ui.view import COLUMNS_CAP, View

FIRST: Final = ("greedy", "beam", "sample,top_p=0.9", "sample")
"""What a first visit shows: the four strategies of the nucleus-sampling paper."""
QUICK: Final = 1000
"""Texts × tokens up to which a comparison runs by itself."""
QUICK_PROMPT: Final = 400
"""Prompt tokens up to which it does."""


@dataclass(frozen=True)
class Slot:
    """One column as it stands in the link; one that cannot be read has its Fault."""

    text: str
    column: Column | None
    fault: Fault | None = None


@dataclass(frozen=True)
class Setup:
    """The columns, and who answers for each."""

    slots: tuple[Slot, ...]
    question: Question | None
    """Of the columns that can be read; ``None`` if there is none."""
    engines: dict[str, Engine | Fault]
    """By the names that the question uses; without those on their way."""
    waiting: tuple[str, ...]
    """Models on their way."""

    @property
    def places(self) -> tuple[int | None, ...]:
        """Where each slot's column stands in the question."""
        count, found = 0, []
        for slot in self.slots:
            found.append(count if slot.column else None)
            count += slot.column is not None
        return tuple(found)

    @property
    def key(self) -> Hashable:
        """What tells one answer from another: the question, and the engines that answer."""
        who = {name: _number(engine) for name, engine in self.engines.items()}
        return self.question, tuple(sorted(who.items()))

    def vocabulary(self, slot: int) -> Vocabulary | None:
        """Of the model of a column."""
        column = self.slots[slot].column
        if column is None or self.question is None:
            return None
        engine = self.engines.get(column.model or self.question.model)
        return None if engine is None or isinstance(engine, Fault) else engine.vocabulary

    def prompt(self, slot: int) -> tuple[int, ...]:
        """The prompt as a column's model reads it; empty where it cannot."""
        vocabulary, question = self.vocabulary(slot), self.question
        if vocabulary is None or question is None:
            return ()
        try:
            read = vocabulary.read(question.prompt, chat=question.chat, literal=question.literal)
        except Fault:
            return ()
        return read.ids

    def name(self, slot: int, t: Catalog) -> str:
        """A column in a few words; one that cannot be read as it was written."""
        found = self.slots[slot]
        return name(found.column, t) if found.column else found.text[:60]

    def rows(self, question: Question) -> int:
        """Texts × tokens: at most so many rows does the model compute."""
        return question.max_new * sum(
            column.settings.width
            if isinstance(column.settings, BeamSettings)
            else texts_of(question, place)
            for place, column in enumerate(question.columns)
        )

    @property
    def quick(self) -> bool:
        """Whether it may run without being asked for: a table of words always may."""
        question = self.question
        if question is None:
            return False
        real = [e for e in self.engines.values() if not isinstance(e, Fault) and e.info.layers]
        long = any(len(self.prompt(slot)) > QUICK_PROMPT for slot in range(len(self.slots)))
        limit = QUICK if real else 20 * QUICK
        return self.rows(question) <= limit and not (real and long)


def _number(engine: Engine | Fault) -> str:
    return engine.code if isinstance(engine, Fault) else str(state.number(engine))


def setup(spec: RunSpec, view: View) -> Setup:
    """The columns of the link, or those of a first visit."""
    slots = tuple(_slot(text) for text in view.columns or FIRST)
    columns = tuple(slot.column for slot in slots if slot.column)
    question = Question(
        prompt=spec.prompt,
        model=spec.model,
        columns=columns,
        samples=view.samples,
        dice="own" if view.dice == "own" else "same",
        max_new=spec.settings.max_new,
        literal=spec.literal,
        chat=spec.chat,
    )
    names = dict.fromkeys([spec.model, *(column.model or spec.model for column in columns)])
    engines, waiting = _engines(names)
    return Setup(slots, question if columns else None, engines, waiting)


def _slot(text: str) -> Slot:
    try:
        return Slot(text, parse_column(text))
    except Fault as fault:
        return Slot(text, None, fault)


def _engines(names: Iterable[str]) -> tuple[dict[str, Engine | Fault], tuple[str, ...]]:
    engines: dict[str, Engine | Fault] = {}
    waiting, heavy = [], 0
    for model in names:
        heavy += not _light(model)
        if heavy > HEAVY_LIMIT:
            engines[model] = Fault("too_many_models", most=HEAVY_LIMIT, name=model)
            continue
        found = _answers(model)
        if found is None:
            waiting.append(model)
        else:
            engines[model] = found
    return engines, tuple(waiting)


def _light(model: str) -> bool:
    return model.startswith(TOY_PREFIX) or (model in CATALOGUE and CATALOGUE[model].light)


def _answers(model: str) -> Engine | Fault | None:
    """Who answers for a model, why nobody can, or ``None`` while it is on its way."""
    try:
        engine = state.engine_for(RunSpec(model=model))
        if engine is not None and not isinstance(engine, RecordedEngine):
            return engine
        found = state.store().state(model)
    except Fault as fault:
        return fault
    if found.status in BUSY:
        return None
    return found.fault or NotReady("model_not_loaded", name=model)


# ---------------------------------------------------------------- changing the columns


def texts() -> list[str]:
    """The columns as the link spells them."""
    return list(state.place().view.columns or FIRST)


def put(columns: list[str], **changes: Any) -> None:
    """Other columns; at least one and at most six."""
    if 1 <= len(columns) <= COLUMNS_CAP:
        last = len(columns) - 1
        reference = min(changes.pop("reference", state.place().view.reference), last)
        state.look(columns=tuple(columns), reference=reference, **changes)


def swap(index: int, column: Column) -> None:
    """Column ``index`` is now this one."""
    found = texts()
    if 0 <= index < len(found):
        found[index] = spell(column)
        put(found)


def with_seed(change: Callable[[int], int]) -> list[str]:
    """The columns with another seed wherever dice are thrown."""
    return [_seeded(text, change) for text in texts()]


def thrown() -> list[str]:
    """The columns with the next seed. With the same dice, those that name none get the next one
    of the seed that they share, so that they go on sharing it."""
    columns = [slot.column for slot in map(_slot, texts()) if slot.column]
    shared = 0 if state.place().view.dice == "own" else shared_seed(columns)
    return with_seed(lambda seed: ((seed or shared) + 1) % (MAX_SEED + 1))


def _seeded(text: str, change: Callable[[int], int]) -> str:
    column = _slot(text).column
    if column is None:
        return text
    settings = column.settings
    if not throws(settings):
        return text
    return spell(replace(column, settings=replace(settings, seed=change(settings.seed))))
