"""The searches of the Beam search page: what is asked, and answers that all readers share.

A search is a job in a thread of its own (:mod:`ui.jobs`), watched while its tree grows and
stopped within a step. It is kept with the rules of its first reader. Which beams live does not
depend on the length penalty, the stopping rule or n-best, so for others of these it is played
again (``core.decode.beam_replay``) instead of run.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from dataclasses import dataclass, replace
from typing import Any, Final

import streamlit as st

from core.beam_records import BeamSearch, BeamStep
from core.decode import BeamRun, replay
from core.decode.beam_replay import Verdict
from core.decode.beam_rules import State
from core.decode.ends import end_ids
from core.engine.cost import check_prompt
from core.engine.memory import ByteLRU
from core.settings import BeamSettings
from ui.beam_source import Source, greedy_of, question, reader_of
from ui.jobs import Job, Jobs, Turns
from ui.readers import who

_Half = tuple[BeamSettings, State, tuple[BeamStep, ...]]
SEARCH_BYTES: Final = 64_000_000
PER_CANDIDATE: Final = 1500
"""Bytes of a candidate with its part of the search; measured: 1,343."""
FREE: Final = 512
"""Forward passes (at most) that a search makes without being asked to."""
LONG_PROMPT: Final = 1000
MOMENT: Final = 0.5
"""Seconds for which a page waits, so that quick answers come at once."""
LAST: Final = 2.0
"""Seconds for which "Stop" waits for the step that is being taken."""
_STOPPED: Final = "beam_stopped"
_ANEW: Final = "beam_anew"
_WANTED: Final = "beam_wanted"
_WATCHED: Final = "beam_watched"


@dataclass(frozen=True)
class Part:
    """A search as far as it is."""

    search: BeamSearch

    @property
    def done(self) -> bool:
        return self.search.stop is not None


@dataclass(frozen=True)
class Answer:
    """A search under the rules of the page, and how they relate to those it was made with."""

    search: BeamSearch
    stored: BeamSearch
    verdict: Verdict | None
    """``None``: it was run with just these rules, or is not finished."""


@dataclass(frozen=True)
class Seen:
    """What a reader sees of a search and of greedy decoding, which is run after it."""

    answer: Answer | None
    """``None`` before the first step."""
    greedy: BeamSearch | None
    running: bool
    making: BeamSearch | None = None
    """What is being made now: the search itself, or greedy's."""
    stopped: bool = False
    """The reader stopped it, and nobody has finished it since."""


@st.cache_resource(show_spinner=False)
def _searches() -> ByteLRU[Any, BeamSearch]:
    return ByteLRU(SEARCH_BYTES)


@st.cache_resource(show_spinner=False)
def _halves() -> ByteLRU[Any, _Half]:
    """Searches that were stopped or left, where they stand."""
    return ByteLRU(SEARCH_BYTES)


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs[Part]:
    """Searches being made. What is finished is kept by ``_searches``."""
    return Jobs("beam_failed", size=lambda _: 1, kept_bytes=0)


def most_rows(settings: BeamSettings) -> int:
    """Rows that the model reads at most."""
    return 1 + (settings.max_new - 1) * settings.width


def must_ask(source: Source, settings: BeamSettings) -> bool:
    """Whether the search is so long that the reader has to want it, and has not said so."""
    key = question(source, settings)
    known = _searches().get(key) or _halves().get(key) or jobs().job(key)
    long = most_rows(settings) > FREE or len(source.prompt) > LONG_PROMPT
    return long and source.table is None and not known and st.session_state.get(_WANTED) != key


def want(source: Source, settings: BeamSettings) -> None:
    st.session_state[_WANTED] = question(source, settings)


def run_anew(source: Source, settings: BeamSettings) -> None:
    """Have the search made with just these rules, whatever is stored."""
    st.session_state[_ANEW] = (question(source, settings), settings)


def stop(source: Source, settings: BeamSettings) -> None:
    """The reader stops this search within a step; what it has found so far stays."""
    key, made = question(source, settings), 0
    for wanted in (settings, greedy_of(settings)):
        job = jobs().job(_job_key(source, wanted))
        if job is not None:
            job.leave(who())
            found = job.wait(LAST).value
            made = max(made, len(found.search.steps) if found and wanted is settings else 0)
    st.session_state[_STOPPED] = (key, made)


def retry(source: Source, settings: BeamSettings) -> None:
    """Try again what failed."""
    for wanted in (settings, greedy_of(settings)):
        jobs().retry(_job_key(source, wanted))


def go_on() -> None:
    st.session_state.pop(_STOPPED, None)


def look(source: Source, settings: BeamSettings, *, patient: bool = False) -> Seen:
    """How far the search is, and then greedy's; begun if nobody has yet. Raises Fault.

    ``patient`` waits a moment for the end.
    """
    key = question(source, settings)
    _leave_others(source, settings)
    stored = _searches().get(key)
    anew = _anew(source, settings)
    halted = st.session_state.get(_STOPPED)
    if stored is None or anew:
        if halted is not None and halted[0] == key:
            return Seen(_cut(source, settings, halted[1]), None, False, stopped=True)
        part = _part(source, settings, patient)
        if part is None:
            return Seen(None, None, True)
        if not part.done:
            now = Answer(_judged(part.search, settings), part.search, None)
            return Seen(now, None, True, part.search)
        stored = part.search
    if stored.settings == settings:
        st.session_state.pop(_ANEW, None)
        answer = Answer(stored, stored, None)
    else:
        found = replay(stored, _as_stored(settings, stored))
        answer = Answer(found.search, stored, found.verdict)
    return _beside(answer, source, settings, patient)


def _beside(answer: Answer, source: Source, settings: BeamSettings, patient: bool) -> Seen:
    """The finished search, with greedy decoding of the same question, run by itself."""
    alone = greedy_of(settings)
    found = _searches().get(question(source, alone))
    if found is None:
        halted = st.session_state.get(_STOPPED)
        if halted is not None and halted[0] == question(source, settings):
            return Seen(answer, None, False)
        part = _part(source, alone, patient)
        if part is None or not part.done:
            return Seen(answer, None, True, None if part is None else part.search)
        found = part.search
    alone = replace(alone, length_penalty=settings.length_penalty)
    return Seen(answer, _judged(found, alone), False)


def _part(source: Source, settings: BeamSettings, patient: bool) -> Part | None:
    """How far a job is that is not finished yet, or was a moment ago. Raises its Fault."""
    key = _job_key(source, settings)
    job: Job[Part] | None = jobs().job(key)
    if job is None:
        fault = jobs().fault(key)
        if fault is not None:
            raise fault
        job = jobs().start(key, _turns(source, settings), who())
    found = job.watch(who())
    if patient and found.running:
        found = job.wait(MOMENT)
    if found.fault is not None:
        raise found.fault
    return found.value


def _leave_others(source: Source, settings: BeamSettings) -> None:
    """A changed question ends the searches before it, unless somebody else watches them."""
    mine = {_job_key(source, wanted) for wanted in (settings, greedy_of(settings))}
    for key in st.session_state.get(_WATCHED, set()) - mine:
        job = jobs().job(key)
        if job is not None:
            job.leave(who())
    st.session_state[_WATCHED] = mine


def _anew(source: Source, settings: BeamSettings) -> bool:
    """Whether the reader wants it run with just these rules, and the stored one had others."""
    key = question(source, settings)
    stored = _searches().get(key)
    asked = st.session_state.get(_ANEW) == (key, settings)
    return bool(asked and stored is not None and stored.settings != settings)


def _job_key(source: Source, settings: BeamSettings) -> Hashable:
    """Readers with other rules share a job; one that is run for its rules is a job apart."""
    key = question(source, settings)
    return (*key, settings) if _anew(source, settings) else key


def _turns(source: Source, settings: BeamSettings) -> Turns[Part]:
    # Bound here: the thread of a job has no part in Streamlit.
    searches, halves, key = _searches(), _halves(), question(source, settings)

    def turns() -> Generator[Part, None, None]:
        check_prompt(source.engine.info, len(source.prompt))
        run, reader = _resumed(halves, source, settings), reader_of(source, settings)
        while run.wanted:
            rows, ms = reader(run.wanted)
            run.advance(rows, ms)
            if run.wanted:
                halves.put(key, (settings, run.state, run.steps), _size(run.steps))
                yield Part(run.result())
        found = run.result()
        searches.put(key, found, _size(found.steps))
        halves.drop(key)
        yield Part(found)

    return turns


def _fresh(source: Source, settings: BeamSettings) -> BeamRun:
    ends, context = end_ids(settings, source.engine), source.engine.info.context
    return BeamRun(settings, ends, prompt=source.prompt, context=context)


def _resumed(halves: ByteLRU[Any, _Half], source: Source, settings: BeamSettings) -> BeamRun:
    """The run where it was left, if it had these rules; else from the start."""
    held = halves.get(question(source, settings))
    run = _fresh(source, settings)
    if held is not None and held[0] == settings:
        _, run.state, run.steps = held
    return run


def _judged(search: BeamSearch, settings: BeamSettings) -> BeamSearch:
    """The same steps under the page's rules."""
    rules = _as_stored(settings, search)
    return search if search.settings == rules else replay(search, rules).search


def _as_stored(settings: BeamSettings, stored: BeamSearch) -> BeamSettings:
    """The page's rules with the stored search's other fields, which mean nothing to it."""
    return replace(
        stored.settings,
        length_penalty=settings.length_penalty,
        stop=settings.stop,
        nbest=settings.nbest,
    )


def _cut(source: Source, settings: BeamSettings, steps: int) -> Answer | None:
    """What a stopped search had found after so many steps, under the rules of the page."""
    held = _halves().get(question(source, settings))
    if held is None or not steps:
        return None
    rules, _, made = held
    found = replace(_fresh(source, rules).result(), steps=made[:steps], stop="user")
    cut = replay(found, _as_stored(settings, found)).search
    return Answer(cut, cut, None)


def _size(steps: tuple[Any, ...]) -> int:
    return 2000 + PER_CANDIDATE * sum(len(step.candidates) for step in steps)
