"""What rounding or packing the weights costs: one setting in full, or many in a sweep.

All of it is done to a private copy; the original is only read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers import DynamicCache

from core.edits.spec import Packing, Rounding
from core.engine.local import LocalEngine
from core.engine.memory import Ids
from core.engine.traced import Recorder, parts_of, recording
from core.lab.copies import private
from core.lab.machine import machine
from core.lab.quality import Quality, Row, following, judged, log_probs, reference, text_ids
from core.lab.quantize_copy import Errors, errors_between, packed, relative, set_rounded, would_take
from core.lab.quantize_records import Candidate, Effect, LayerError, Point, Sweep, named
from core.lab.turns import between, shares, through
from core.models.loaded import tensor_bytes
from core.trace import Capture

TOKENS: Final = 24
"""Written after the prompt."""
SHOWN: Final = 8
"""Next tokens of the original in the table, and as many of the other's, where they differ."""
STREAM_TEXT: Final = "prose"
"""The text on which layers are compared."""
ROWS_KEPT: Final = 128_000_000
"""Bytes of reference rows that are remembered, of one model."""

R = TypeVar("R")
Lend = Callable[[], AbstractContextManager[Any]]
"""Gives the model for one pass."""

_rows: WeakKeyDictionary[LocalEngine, tuple[Row, ...]] = WeakKeyDictionary()


def rows_of_original(engine: LocalEngine) -> Generator[float, None, tuple[Row, ...]]:
    """``core.lab.quality.reference``, remembered for the model that was asked for last."""
    found = _rows.get(engine)
    if found is None:
        found = yield from reference(engine)
        _rows.clear()
        if sum(row.log_probs.nbytes for row in found) <= ROWS_KEPT:
            _rows[engine] = found
    return found


def perplexity(rows: Sequence[Row]) -> float:
    """Of the original, on its own rows."""
    with torch.inference_mode():
        surprise = -sum(float(following(row.log_probs, row.ids).sum()) for row in rows)
    mean = surprise / sum(len(row.ids) - 1 for row in rows)
    return math.exp(mean) if mean < 700 else math.inf


def point(edit: str, quality: Quality, errors: Errors, nbytes: int) -> Point:
    return Point(
        edit=edit,
        kl=quality.kl,
        top1=quality.top1,
        perplexity=quality.perplexity,
        positions=quality.positions,
        error=relative(errors),
        nbytes=nbytes,
    )


def sweep(engine: LocalEngine, settings: Sequence[Rounding]) -> Generator[Sweep, None, None]:
    """The quality of every setting, in turn; yields after each setting and each text.

    Raises Fault where there is no room for a copy.
    """
    here = machine(engine.info.device)
    found = Sweep((), math.nan, engine.info.bytes_in_memory, here, 0.0, False)
    yield found
    twin = private(engine)
    count = len(settings) + 1
    rows = yield from through(between(rows_of_original(engine), 0.0, 1 / count), shares(found))
    found = replace(found, perplexity=perplexity(rows))
    for place, setting in enumerate(settings, 1):
        now = found

        def told(share: float, start: int = place, now: Sweep = now) -> Sweep:
            return replace(now, progress=(start + share) / count)

        errors = yield from through(between(set_rounded(engine, twin, setting), 0, 0.3), told)
        quality = yield from through(between(judged(twin, rows), 0.3, 1), told)
        with engine.borrowed() as model:
            size = would_take(model, setting)
        added = point(named(setting), quality, errors, size)
        progress = (place + 1) / count
        found = replace(found, points=(*found.points, added), progress=progress)
        yield found
    yield replace(found, done=True, progress=1.0)


def effect(
    engine: LocalEngine, setting: Rounding | Packing, prompt: Sequence[int], *, tokens: int = TOKENS
) -> Generator[Effect, None, None]:
    """One setting in full: quality, next tokens, texts, layers; yields what there is so far.

    Raises Fault where it cannot be done here, or there is no room for a copy.
    """
    found = Effect(
        edit=named(setting),
        packed=isinstance(setting, Packing),
        point=None,
        perplexity=None,
        candidates=(),
        before=(),
        after=(),
        layers=(),
        nbytes=engine.info.bytes_in_memory,
        machine=machine(engine.info.device),
        progress=0.0,
        done=False,
    )
    yield found

    def told(share: float) -> Effect:
        return replace(found, progress=share)

    twin, errors, size = yield from through(between(_changed(engine, setting), 0, 0.25), told)
    ids = tuple(prompt)[-engine.info.context :]
    found = replace(found, candidates=_candidates(engine, twin, ids), progress=0.3)
    yield found
    ends = frozenset(engine.info.end_ids)
    for before, after, progress in _texts(engine, twin, ids, tokens, ends):
        found = replace(found, before=before, after=after, progress=0.3 + 0.25 * progress)
        yield found
    found = replace(found, layers=_layers(engine, twin, errors), progress=0.55)
    yield found
    rows = yield from through(between(rows_of_original(engine), 0.55, 0.75), told)
    found = replace(found, perplexity=perplexity(rows))
    quality = yield from through(between(judged(twin, rows), 0.75, 1), told)
    measured = point(found.edit, quality, errors, size)
    yield replace(found, point=measured, progress=1.0, done=True)


def _changed(
    engine: LocalEngine, setting: Rounding | Packing
) -> Generator[float, None, tuple[Any, Errors, int]]:
    """(a copy with the setting, its errors, the bytes of its tensors or of such codes)."""
    if isinstance(setting, Packing):
        twin = packed(engine, setting)
        yield 0.5
        errors = yield from errors_between(engine, twin, head=setting.head)
        return twin, errors, tensor_bytes([*twin.parameters(), *twin.buffers()])
    twin = private(engine)
    errors = yield from set_rounded(engine, twin, setting)
    with engine.borrowed() as model:
        return twin, errors, would_take(model, setting)


# ---------------------------------------------------------------- one prompt


def _candidates(engine: LocalEngine, twin: Any, ids: tuple[int, ...]) -> tuple[Candidate, ...]:
    with engine.borrowed() as model:
        before = log_probs(model, ids)[-1].exp()
    after = log_probs(twin, ids)[-1].exp()
    best = [table.topk(min(SHOWN, table.numel())).indices.tolist() for table in (before, after)]
    both = list(dict.fromkeys(best[0] + best[1]))
    found = (Candidate(i, float(before[i]), float(after[i])) for i in both)
    return tuple(sorted(found, key=lambda c: -c.before))


def _texts(
    engine: LocalEngine, twin: Any, ids: tuple[int, ...], tokens: int, ends: frozenset[int]
) -> Generator[tuple[Ids, Ids, float], None, None]:
    """What both write, token by token in turns, and the share done."""
    most = min(tokens, engine.info.context - len(ids))
    original = written(engine.borrowed, ids, most, ends)
    edited = written(lambda: nullcontext(twin), ids, most, ends)
    before: Ids = ()
    after: Ids = ()
    for turn in range(most):
        before, after = next(original, before), next(edited, after)
        yield before, after, (turn + 1) / most


def written(
    lend: Lend, ids: Sequence[int], most: int, ends: frozenset[int]
) -> Generator[Ids, None, None]:
    """Greedy decoding: what has been written after each step; an end token ends it."""
    cache: Any = None
    new = list(ids)
    text: Ids = ()
    for _ in range(most):
        with lend() as model, torch.inference_mode():
            cache = DynamicCache(config=model.config) if cache is None else cache
            tokens = torch.tensor([new], device=model.device)
            logits = model(tokens, cache=cache, use_cache=True, logits_to_keep=1).logits[0, -1]
        token = int(logits.argmax())
        new, text = [token], (*text, token)
        yield text
        if token in ends:
            return


# ---------------------------------------------------------------- layer by layer


def stream(model: Any, ids: Sequence[int]) -> list[Tensor]:
    """The residual stream after each layer, [position, width], float32."""
    recorder = Recorder(Capture(attention=False))
    with torch.inference_mode(), recording(recorder):
        tokens = torch.tensor([list(ids)], device=model.device)
        model(tokens, use_cache=False, logits_to_keep=1)
    return [recorder.residual[layer].float() for layer in sorted(recorder.residual)]


def _layers(engine: LocalEngine, twin: Any, errors: Errors) -> tuple[LayerError, ...]:
    ids = text_ids(engine.vocabulary, STREAM_TEXT, min(256, engine.info.context))
    with engine.borrowed() as model:
        before = stream(model, ids)
        parts = parts_of(model, engine.info.layers)
        names = {module: name for name, module in model.named_modules()}
        paths = [f"{names[layer]}." for layer in parts.layers] if parts else []
    after = stream(twin, ids)
    off = [
        float(((b - a).norm(dim=-1) / b.norm(dim=-1).clamp_min(1e-12)).mean())
        for b, a in zip(before, after, strict=True)
    ]
    return tuple(
        LayerError(relative(errors, path), stream_off)
        for path, stream_off in zip(paths, off, strict=True)
    )
