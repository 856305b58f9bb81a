"""The searches of the Beam search page: what is asked, and answers that all readers share.

A search is kept with the rules of its first reader. Which beams live does not depend on the
length penalty, the stopping rule or n-best, so for others of these it is played again
(``core.decode.beam_replay``) instead of run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import streamlit as st

from core.beam_records import BeamSearch, BeamStep
from core.decode import BeamRun, Exhaustive, exhaustive, provider_of, replay
from core.decode.beam_replay import Verdict
from core.decode.ends import end_ids
from core.engine.cost import check_prompt
from core.engine.memory import ByteLRU
from core.faults import Fault
from core.settings import BeamSettings
from ui.beam_source import Source, greedy_of, question, reader_of

SEARCH_BYTES: Final = 64_000_000
EXHAUSTIVE_BYTES: Final = 400_000
PER_CANDIDATE: Final = 1500
"""Bytes of a candidate with its part of the search; measured: 1,343."""
FREE: Final = 512
"""Forward passes (at most) that a search makes without being asked to."""
LONG_PROMPT: Final = 1000
TURN: Final = 0.25
"""Seconds of work after which a reader's clicks are heard. (A click in a fragment never stops
a script that runs, so a long search is made in turns.)"""
_STOPPED: Final = "beam_stopped"
_ANEW: Final = "beam_anew"
_WANTED: Final = "beam_wanted"
OnStep = Callable[[BeamRun, BeamStep], None]


@dataclass(frozen=True)
class Answer:
    """A search under the rules of the page, and how they relate to those it was made with."""

    search: BeamSearch
    stored: BeamSearch
    verdict: Verdict | None
    """``None``: it was run with just these rules."""


@st.cache_resource(show_spinner=False)
def _searches() -> ByteLRU[Any, BeamSearch]:
    return ByteLRU(SEARCH_BYTES)


@st.cache_resource(show_spinner=False)
def _halves() -> ByteLRU[Any, Any]:
    """Searches that were stopped or interrupted, as (state, steps)."""
    return ByteLRU(SEARCH_BYTES)


@st.cache_resource(show_spinner=False)
def _exhaustives() -> ByteLRU[Any, tuple[Exhaustive, float] | Fault]:
    return ByteLRU(EXHAUSTIVE_BYTES)


def most_forwards(settings: BeamSettings) -> int:
    return 1 + (settings.max_new - 1) * settings.width


def must_ask(source: Source, settings: BeamSettings) -> bool:
    """Whether the search is so long that the reader has to want it, and has not said so."""
    key = question(source, settings)
    known = _searches().get(key) is not None or _halves().get(key) is not None
    long = most_forwards(settings) > FREE or len(source.prompt) > LONG_PROMPT
    return long and source.table is None and not known and st.session_state.get(_WANTED) != key


def want(source: Source, settings: BeamSettings) -> None:
    st.session_state[_WANTED] = question(source, settings)


def stop(source: Source, settings: BeamSettings) -> None:
    """The reader stops this search; what it has found so far stays."""
    st.session_state[_STOPPED] = question(source, settings)


def go_on() -> None:
    st.session_state.pop(_STOPPED, None)


def run_anew(source: Source, settings: BeamSettings) -> None:
    """Have the search made with just these rules, whatever is stored."""
    st.session_state[_ANEW] = (question(source, settings), settings)


def stopped(source: Source, settings: BeamSettings) -> bool:
    """Whether the reader stopped this search, and has not had it go on."""
    return bool(st.session_state.get(_STOPPED) == question(source, settings))


@dataclass(frozen=True)
class Turn:
    """How far an unfinished search is."""

    steps: int
    limit: int
    beams: int
    forwards: int


def advance(source: Source, settings: BeamSettings) -> Turn | None:
    """Work for one turn on the searches that the page needs; ``None`` once all are there.

    Also ``None`` when the reader has stopped it. Raises Fault.
    """
    deadline = time.monotonic() + TURN
    for wanted in (settings, greedy_of(settings)):
        key = question(source, wanted)
        anew = st.session_state.get(_ANEW) == (key, wanted)
        if _searches().get(key) is not None and not anew:
            continue
        if stopped(source, settings):
            return None
        run = _run(source, wanted, None, deadline)
        if run.wanted:
            forwards = sum(step.beams for step in run.steps)
            return Turn(len(run.steps), run.question.limit, len(run.wanted), forwards)
        _keep(source, run)
    return None


def _keep(source: Source, run: BeamRun) -> BeamSearch:
    """A finished search, for all readers."""
    found, key = run.result(), question(source, run.question.settings)
    _searches().put(key, found, _size(found))
    _halves().drop(key)
    if st.session_state.get(_ANEW) == (key, run.question.settings):
        st.session_state.pop(_ANEW)
    return found


def answer(source: Source, settings: BeamSettings, on_step: OnStep | None = None) -> Answer | None:
    """The search, run if nobody has yet; ``None`` if it was stopped before its first step.

    Raises Fault. Streamlit interrupts it between two steps when the reader clicks.
    """
    key = question(source, settings)
    anew = st.session_state.get(_ANEW) == (key, settings)
    stored = _searches().get(key)
    if stopped(source, settings) and (anew or stored is None):
        cut = _cut(source, settings)
        return None if cut is None else Answer(cut, cut, None)
    if stored is None or anew:
        stored = _keep(source, _run(source, settings, on_step))
    if stored.settings == settings:
        return Answer(stored, stored, None)
    found = replay(stored, _as_stored(settings, stored))
    return Answer(found.search, stored, found.verdict)


def greedy_answer(
    source: Source, settings: BeamSettings, on_step: OnStep | None = None
) -> BeamSearch | None:
    """Greedy decoding of the same question, run by itself; ``None`` if the reader stopped."""
    alone = greedy_of(settings)
    key = question(source, alone)
    found = _searches().get(key)
    if found is None:
        if stopped(source, settings):
            return None
        found = _keep(source, _run(source, alone, on_step))
    return replay(found, replace(alone, length_penalty=settings.length_penalty)).search


def exhaustive_answer(source: Source, settings: BeamSettings) -> tuple[Exhaustive, float] | None:
    """Every text of a table and the milliseconds it took; ``None`` for a model. Raises Fault."""
    if source.table is None:
        return None
    plain = BeamSettings(width=1, length_penalty=settings.length_penalty, max_new=settings.max_new)
    key = (*source.key, plain)
    found = _exhaustives().get(key)
    if found is None:
        found = _try_all(source, plain)
        _exhaustives().put(key, found, PER_CANDIDATE)
    if isinstance(found, Fault):
        raise found
    return found


def _try_all(source: Source, settings: BeamSettings) -> tuple[Exhaustive, float] | Fault:
    began = time.perf_counter()
    try:
        provider = provider_of(source.engine, source.prompt)
        found = exhaustive(provider, settings, source.engine.info.end_ids)
    except Fault as fault:
        return fault
    return found, (time.perf_counter() - began) * 1000


def _as_stored(settings: BeamSettings, stored: BeamSearch) -> BeamSettings:
    """The page's rules with the stored search's other fields, which mean nothing to it."""
    return replace(
        stored.settings,
        length_penalty=settings.length_penalty,
        stop=settings.stop,
        nbest=settings.nbest,
    )


def _fresh(source: Source, settings: BeamSettings) -> BeamRun:
    ends, context = end_ids(settings, source.engine), source.engine.info.context
    return BeamRun(settings, ends, prompt=source.prompt, context=context)


def _resumed(source: Source, settings: BeamSettings) -> BeamRun:
    """The run where it was interrupted, if it had these rules; else from the start."""
    run = _fresh(source, settings)
    held = _halves().get(question(source, settings))
    if held is not None and held[0] == settings:
        _, run.state, run.steps = held
    return run


def _cut(source: Source, settings: BeamSettings) -> BeamSearch | None:
    """What a stopped search has found, under the rules of the page."""
    held = _halves().get(question(source, settings))
    if held is None:
        return None
    run = _fresh(source, held[0])
    _, run.state, run.steps = held
    run.cut()
    return replay(run.result(), _as_stored(settings, run.result())).search


def _run(
    source: Source,
    settings: BeamSettings,
    on_step: OnStep | None,
    deadline: float = math.inf,
) -> BeamRun:
    """Take the search up where it stands, and at least one step further; all is kept."""
    check_prompt(source.engine.info, len(source.prompt))
    run, key = _resumed(source, settings), question(source, settings)
    reader = reader_of(source, settings)
    while run.wanted:
        # A cancel point: Streamlit stops an outdated script at the next touch of its state.
        st.session_state.get(_STOPPED)
        rows, ms = reader(run.wanted)
        step = run.advance(rows, ms)
        held = (settings, run.state, run.steps)
        _halves().put(key, held, PER_CANDIDATE * sum(len(s.candidates) for s in run.steps))
        if on_step is not None:
            on_step(run, step)
        if time.monotonic() > deadline:
            break
    return run


def _size(search: BeamSearch) -> int:
    return 2000 + PER_CANDIDATE * sum(len(step.candidates) for step in search.steps)
