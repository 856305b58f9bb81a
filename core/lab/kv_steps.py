"""The same text written twice, token by token: with a KV cache, and without one."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from torch import Tensor
from transformers import DynamicCache

from core.engine.local import LocalEngine
from core.engine.memory import cache_bytes, fork
from core.faults import Fault
from core.lab.kv_cost import work
from core.lab.kv_passes import new_cache, shape_in, timed
from core.lab.kv_records import KvRun, KvStep, Score
from core.lab.machine import machine
from core.lab.timing import Spread
from core.lab.turns import between, shares, through

REPEATS: Final = 3
MOST_STEPS: Final = 64
SHOWN: Final = 8
"""Tokens whose logits are listed side by side."""


@dataclass(frozen=True, eq=False)
class Both:
    """One step in both ways."""

    cache: DynamicCache
    """As the step leaves it."""
    cached: Tensor
    """[vocabulary] logits of the last position."""
    whole: Tensor
    cached_ms: Spread
    whole_ms: Spread

    @property
    def difference(self) -> float:
        """Largest over the vocabulary."""
        return float((self.cached - self.whole).abs().max())

    @property
    def scores(self) -> tuple[Score, ...]:
        """Of the tokens that are likeliest with the cache."""
        ids = self.cached.topk(min(SHOWN, len(self.cached))).indices.tolist()
        return tuple(Score(i, float(self.cached[i]), float(self.whole[i])) for i in ids)


def written_twice(
    engine: LocalEngine, prompt: Sequence[int], steps: int, repeats: int = REPEATS
) -> Generator[KvRun, None, None]:
    """Greedy, ``steps`` tokens; yields after each timed pass, the last record is done.

    Both ways read the same tokens, those that the cached way chose, so that each step can be
    compared. Raises Fault for what cannot be
    read.
    """
    _check(engine, prompt, steps)
    shape, value = shape_in(engine)
    with engine.borrowed() as model:
        cache, device = new_cache(model), str(model.device)
    run = KvRun(tuple(prompt), steps, (), machine(device), False, 0.0)
    read = 0
    for index in range(steps):
        ids = run.ids
        both = yield from through(
            between(
                in_both_ways(engine, ids, cache, read, repeats), index / steps, (index + 1) / steps
            ),
            shares(run),
        )
        chosen = int(both.cached.argmax())
        step = KvStep(
            index=index,
            length=len(ids),
            chosen=chosen,
            other=int(both.whole.argmax()),
            cached=work(shape, read, len(ids) - read, value),
            whole=work(shape, 0, len(ids), value),
            cached_ms=both.cached_ms,
            whole_ms=both.whole_ms,
            difference=both.difference,
            scores=both.scores,
            cache_bytes=cache_bytes(both.cache),
        )
        cache, read = both.cache, len(ids)
        done = chosen in engine.info.end_ids or index + 1 == steps
        progress = 1.0 if done else (index + 1) / steps
        run = replace(run, steps=(*run.steps, step), progress=progress, done=done)
        yield run
        if done:
            return


def _check(engine: LocalEngine, prompt: Sequence[int], steps: int) -> None:
    if not prompt:
        raise Fault("empty_prompt")
    if not 1 <= steps <= MOST_STEPS:
        raise Fault("setting_out_of_range", name="steps", value=steps, low=1, high=MOST_STEPS)
    last = len(prompt) + steps - 1
    if last > engine.info.context:
        raise Fault("context_full", tokens=last, limit=engine.info.context)


def in_both_ways(
    engine: LocalEngine, ids: Sequence[int], cache: DynamicCache, read: int, repeats: int
) -> Generator[float, None, Both]:
    """Read ``ids`` with a cache of the first ``read``, and all at once; each ``repeats`` times, in
    turns. Yields the share done, returns the last turn. ``cache`` stays as it is.

    The very first pass of a text also warms the machine up, and is not counted.
    """
    cached_ms, whole_ms = list[float](), list[float]()
    rounds = repeats + (read == 0)
    for turn in range(rounds):
        grown = fork(cache)
        quick, cached = timed(engine, ids[read:], grown)
        yield (turn + 0.3) / rounds
        slow, whole = timed(engine, ids, None)
        if turn or read:
            cached_ms.append(quick)
            whole_ms.append(slow)
        yield (turn + 1) / rounds
    return Both(grown, cached, whole, Spread.of(cached_ms), Spread.of(whole_ms))
