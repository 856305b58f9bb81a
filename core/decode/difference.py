"""The first step at which one column parts from another, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.compare_records import Comparison, Difference, Text, Written
from core.decode.compare import Engines, seed_of
from core.decode.lanes import Ids, Lane
from core.decode.parting import Side, difference_at
from core.engine.protocol import Engine
from core.faults import Fault
from core.settings import BeamSettings, Settings
from core.tokens import Vocabulary

SAME = Difference(None, "same", None, None)


def difference(
    comparison: Comparison, engines: Engines, column: int, reference: int = 0, sample: int = 0
) -> Difference:
    """Where text ``sample`` of a column leaves that of the reference column.

    A column of one text is compared with this one text. Between two models the texts are
    compared byte by byte, because their tokens are not the same. As long as one text goes on
    beyond another that is still being written, they do not part. First samples cost nothing;
    for others the model reads the common text once more. Raises Fault where it cannot.
    """
    here, there = comparison.columns[column], comparison.columns[reference]
    mine, other = _text(here, sample), _text(there, sample)
    if mine is None or other is None or column == reference:
        return SAME
    names = [w.column.model or comparison.question.model for w in (here, there)]
    if names[0] != names[1]:
        both = [_engine(engines, name).vocabulary for name in names]
        return _between_models(mine, other, both)
    step = _common(mine.ids, other.ids)
    ends = [step == len(text.ids) for text in (mine, other)]
    if any(ends):
        shorter = mine if ends[0] else other
        if all(ends) or shorter.stop is None:
            return SAME
        ids = (_at(mine.ids, step), _at(other.ids, step))
        return Difference(step, "one_ended", *ids, removed_here=ends[0])
    searched = isinstance(here.column.settings, BeamSettings)
    if searched or isinstance(there.column.settings, BeamSettings):
        ids = (mine.ids[step], other.ids[step])
        return Difference(step, "search", *ids, removed_here=searched)
    noted = dict(here.parted).get(reference)
    if noted is not None and mine.sample == other.sample == 0:
        return noted
    engine = _engine(engines, names[0])
    return _read_again(comparison, engine, (column, reference), (mine, other), step)


def _text(written: Written, sample: int) -> Text | None:
    return written.texts[min(sample, len(written.texts) - 1)] if written.texts else None


def _engine(engines: Engines, name: str) -> Engine:
    found = engines.get(name, Fault("model_of_column", name=name))
    if isinstance(found, Fault):
        raise found
    return found


def _common(here: Sequence[int], there: Sequence[int]) -> int:
    """How many ids (or bytes) the two share from the start."""
    pairs = enumerate(zip(here, there, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(here), len(there)))


def _at(ids: Ids, place: int) -> int | None:
    return ids[place] if place < len(ids) else None


def _read_again(
    comparison: Comparison,
    engine: Engine,
    columns: tuple[int, int],
    texts: tuple[Text, Text],
    step: int,
) -> Difference:
    question = comparison.question
    read = engine.vocabulary.read(question.prompt, chat=question.chat, literal=question.literal)
    prompt, before = read.ids, texts[0].ids[:step]
    row = engine.next_logits([(*prompt, *before)], prompt_length=len(prompt))[0]
    sides = []
    for column, text in zip(columns, texts, strict=True):
        settings = question.columns[column].settings
        assert isinstance(settings, Settings)
        settings = replace(
            settings, seed=seed_of(question, column, text.sample), max_new=question.max_new
        )
        choice = Lane(settings, engine, prompt, text.sample).choice(row, before, with_stages=True)
        # What was written counts, should the last digits of the logits be others this time.
        sides.append(Side(settings, replace(choice, id=text.ids[step])))
    return difference_at(step, *sides)


def _between_models(here: Text, there: Text, both: Sequence[Vocabulary]) -> Difference:
    spans = [
        [vocabulary.bytes_of(id) for id in text.ids]
        for text, vocabulary in zip((here, there), both, strict=True)
    ]
    mine, other = (b"".join(parts) for parts in spans)
    place = _common(mine, other)
    ends = [place == len(text) for text in (mine, other)]
    running = [ended and text.stop is None for ended, text in zip(ends, (here, there), strict=True)]
    if all(ends) or any(running):
        return SAME
    steps = [_holding(parts, place) for parts in spans]
    ids = (_at(here.ids, steps[0]), _at(there.ids, steps[1]))
    return Difference(steps[0], "other_model", *ids)


def _holding(parts: Sequence[bytes], place: int) -> int:
    """The token that holds a byte; the number of tokens for the end of the text."""
    stop = 0
    for index, part in enumerate(parts):
        stop += len(part)
        if place < stop:
            return index
    return len(parts)
