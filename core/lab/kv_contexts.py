"""One step with a cache against one without, at the end of longer and longer texts."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Final

from core.engine.local import LocalEngine
from core.engine.memory import cache_bytes
from core.lab.kv_cost import work
from core.lab.kv_passes import new_cache, read, shape_in
from core.lab.kv_records import ContextPoint, Contexts
from core.lab.kv_steps import in_both_ways
from core.lab.machine import machine
from core.lab.texts import CALIBRATION, NAMES, text
from core.lab.turns import between, shares, through

LENGTHS: Final = (16, 64, 128, 256, 512, 1024)
REPEATS: Final = 5


def at_lengths(
    engine: LocalEngine, lengths: Sequence[int] = LENGTHS, repeats: int = REPEATS
) -> Generator[Contexts, None, None]:
    """The step that reads token number ``length`` of a fixed text, for each length that fits the
    model; yields after each timed pass, the last record is done."""
    shape, value = shape_in(engine)
    fitting = [length for length in lengths if length <= engine.info.context]
    ids = long_ids(engine, max(fitting))
    with engine.borrowed() as model:
        device = str(model.device)
    found = Contexts(engine.info.name, (), machine(device), not fitting, 0.0)
    total, before = sum(fitting), 0
    for length in fitting:
        with engine.borrowed() as model:
            cache = new_cache(model)
            if length > 1:
                read(model, ids[: length - 1], cache)
        low, high = before / total, (before + length) / total
        both = yield from through(
            between(in_both_ways(engine, ids[:length], cache, length - 1, repeats), low, high),
            shares(found),
        )
        before += length
        point = ContextPoint(
            length=length,
            cached_ms=both.cached_ms,
            whole_ms=both.whole_ms,
            cached=work(shape, length - 1, 1, value),
            whole=work(shape, 0, length, value),
            difference=both.difference,
            cache_bytes=cache_bytes(both.cache),
        )
        found = replace(
            found,
            points=(*found.points, point),
            done=length == fitting[-1],
            progress=before / total,
        )
        yield found


def long_ids(engine: LocalEngine, count: int) -> tuple[int, ...]:
    """The first ``count`` tokens of the fixed texts, one behind the other, again and again."""
    every = "\n\n".join(text(name) for name in (CALIBRATION, *NAMES)) + "\n\n"
    ids = engine.vocabulary.read(every, literal=True).ids
    return (ids * -(-count // len(ids)))[:count]
