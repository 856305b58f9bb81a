"""A second prompt that begins like the first: its beginning is not computed again."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

from transformers import DynamicCache

from core.engine.local import LocalEngine
from core.engine.memory import cache_bytes, cut, fork
from core.faults import Fault
from core.lab.kv_cost import work
from core.lab.kv_passes import new_cache, read, shape_in, timed
from core.lab.kv_records import Reuse
from core.lab.machine import machine
from core.lab.timing import Spread

REPEATS: Final = 3


def reused(
    engine: LocalEngine, first: Sequence[int], second: Sequence[int], repeats: int = REPEATS
) -> Generator[Reuse, None, None]:
    """Read ``second`` from its beginning, and with the cache of ``first``, in turns; yields after
    each turn, the last record is done.

    Raises Fault for an empty prompt, and where a sliding window has dropped the beginning.
    """
    for ids in (first, second):
        if not ids:
            raise Fault("empty_prompt")
        if len(ids) > engine.info.context:
            raise Fault("context_full", tokens=len(ids), limit=engine.info.context)
    shape, value = shape_in(engine)
    common = common_beginning(first, second)
    with engine.borrowed() as model:
        cache = new_cache(model)
        read(model, first, cache)
        found = machine(str(model.device))
        start = _beginning(model, cache, common, len(first))
        shared = cache_bytes(start) if common else 0
        read(model, second, new_cache(model))  # untimed: it warms up both ways
    whole_ms, reused_ms = list[float](), list[float]()
    for turn in range(repeats):
        with engine.borrowed() as model:
            fresh = new_cache(model)
        slow, whole = timed(engine, second, fresh)
        quick, after = timed(engine, second[common:], fork(start))
        whole_ms.append(slow)
        reused_ms.append(quick)
        record = Reuse(
            first=len(first),
            second=len(second),
            common=common,
            whole_ms=Spread.of(whole_ms),
            reused_ms=Spread.of(reused_ms),
            whole=work(shape, 0, len(second), value),
            reused=work(shape, common, len(second) - common, value),
            difference=float((whole - after).abs().max()),
            shared_bytes=shared,
            machine=found,
            done=turn + 1 == repeats,
            progress=(turn + 1) / repeats,
        )
        yield record


def common_beginning(first: Sequence[int], second: Sequence[int]) -> int:
    """Tokens that both begin with, without the last one of the second: what follows it is
    wanted, so it is always read."""
    common = 0
    for one, other in zip(first, second[:-1], strict=False):
        if one != other:
            break
        common += 1
    return common


def _beginning(model: Any, cache: DynamicCache, common: int, length: int) -> DynamicCache:
    """The cache of the first ``common`` tokens. Raises Fault where that is gone."""
    if common == 0:
        return new_cache(model)
    if common == length:
        return fork(cache)
    found = cut(cache, common)
    if found is None:
        raise Fault("kv_prefix_gone", common=common)
    return found
