"""Speculative decoding with real models, beside plain decoding, in turns."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import lru_cache

from core.decode.rules import rules_for
from core.engine.local import LocalEngine
from core.faults import Fault
from core.lab.machine import machine
from core.lab.speculative_readers import CachedReader
from core.lab.speculative_records import GAMMA, MOST_DRAFTED, MOST_NEW, Round, Speculation
from core.lab.speculative_round import Text, plain_step, round_of
from core.settings import Settings
from core.tokens import Vocabulary


def speculated(
    model: LocalEngine,
    draft: LocalEngine,
    prompt: Sequence[int],
    settings: Settings,
    gamma: int = GAMMA,
) -> Generator[Speculation, None, None]:
    """Write ``settings.max_new`` tokens twice: with the draft's proposals, and without.

    Yields after each round and each plain stretch of as many tokens, the last record is done.
    Forced tokens and dice thrown again belong to one run of a page, and are left out. Raises
    Fault for two tokenizers, for what cannot be read, and for settings that leave no token.
    """
    settings = replace(settings, forced=(), rolls=())
    _check(model, draft, prompt, settings, gamma)
    rules = rules_for(settings, model.vocabulary)
    ends = model.info.end_ids
    fast, slow = (Text(list(prompt), len(prompt), settings, rules, ends) for _ in range(2))
    readers = [CachedReader(engine) for engine in (draft, model, model)]
    run = replace(
        Speculation.begun(model.info, draft.info.name, tuple(prompt), gamma, settings),
        draft_bytes=draft.info.bytes_in_memory,
        machine=machine(model.info.device),
    )
    for reader in readers:
        reader.prefill(prompt[:-1])
        yield run
    yield from _in_turns(run, fast, slow, readers)


def _in_turns(
    run: Speculation, fast: Text, slow: Text, readers: Sequence[CachedReader]
) -> Generator[Speculation, None, None]:
    drafting, checking, plain = readers
    fast_on = slow_on = True
    while fast_on or slow_on:
        if fast_on:
            left = run.max_new - fast.step
            made = round_of(fast, drafting, checking, min(run.gamma, left - 1))
            run = replace(run, rounds=(*run.rounds, made))
            fast_on = not _ended(fast, made) and fast.step < run.max_new
            yield replace(run, progress=_share(run))
        while slow_on and (slow.step < fast.step or not fast_on):
            step = plain_step(slow, plain)
            if step is not None:
                run = replace(run, plain=(*run.plain, step))
            slow_on = step is not None and step.id not in slow.ends and slow.step < run.max_new
            if fast_on and slow.step >= fast.step:
                break
            yield replace(run, progress=_share(run))
    if not run.plain and not run.ids:
        raise Fault("no_token_left", rule="pattern")
    yield replace(run, done=True, progress=1.0)


def _ended(text: Text, made: Round) -> bool:
    return made.ending in {"end", "stuck"} or text.ids[-1] in text.ends


def _share(run: Speculation) -> float:
    return min(0.99, (len(run.ids) + len(run.plain)) / (2 * run.max_new))


def _check(
    model: LocalEngine,
    draft: LocalEngine,
    prompt: Sequence[int],
    settings: Settings,
    gamma: int,
) -> None:
    for name, value, most in (
        ("gamma", gamma, MOST_DRAFTED),
        ("max-new", settings.max_new, MOST_NEW),
    ):
        if not 1 <= value <= most:
            raise Fault("setting_out_of_range", name=name, value=value, low=1, high=most)
    if not prompt:
        raise Fault("empty_prompt")
    if not same_tokenizer(model.vocabulary, draft.vocabulary):
        raise Fault("speculative_tokenizers", model=model.info.name, draft=draft.info.name)
    last = len(prompt) + settings.max_new
    limit = min(model.info.context, draft.info.context)
    if last > limit:
        raise Fault("context_full", tokens=last, limit=limit)


def same_tokenizer(one: Vocabulary, other: Vocabulary) -> bool:
    """Whether a token's number means the same piece of text to both."""
    if one is other:
        return True
    return one.size == other.size and _spelling(one) == _spelling(other)


@lru_cache(maxsize=4)
def _spelling(vocabulary: Vocabulary) -> int:
    return hash(vocabulary.tokenizer.to_str())
