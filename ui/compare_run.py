"""Runs the comparison of a page: from the cache, by joining a job, or by starting one.

What is quick runs by itself; what is not says its cost and waits for the button. Display
changes never run anything, because the key of an answer is its question alone.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from dataclasses import replace
from typing import Final, cast

import streamlit as st

from core.compare_records import Column, Comparison, Difference, Figures, Question, Written
from core.decode.compare import compare
from core.decode.difference import difference
from core.decode.figures import figures
from core.engine.memory import ByteLRU
from core.engine.store import BUSY
from core.faults import Fault
from core.settings import Settings
from ui import state
from ui.compare_jobs import jobs
from ui.compare_setup import Setup
from ui.edit_words import model_words
from ui.figures.compare_rows import Scene, chosen
from ui.i18n import Catalog, plain
from ui.jobs import Look, Turns
from ui.readers import who

MOMENT: Final = 0.5
"""Seconds for which a page waits, so that quick answers come at once."""
REFRESH: Final = 0.4
"""Seconds between two looks at a comparison that is being written."""
NOTES_BYTES: Final = 16_000_000
_STOPPED: Final = "compare_stopped"
_WANTED: Final = "compare_wanted"
_WATCHED: Final = "compare_watched"


def look(setup: Setup, *, name: str = "page", patient: bool = False) -> Look[Comparison] | None:
    """How far the comparison is; ``None`` where it waits to be asked for.

    ``name`` tells several comparisons of one page apart; ``patient`` waits a moment for the end.
    """
    key, question = setup.key, setup.question
    if question is None:
        return None
    done = jobs().known(key)
    if done is not None:
        return Look(done, False)
    stopped = st.session_state.get(f"{_STOPPED}_{name}")
    if stopped is not None and stopped[0] == key:
        return Look(stopped[1], False)
    job = jobs().job(key)
    fault = jobs().fault(key)
    if job is None and fault is not None:
        return Look(None, False, fault)
    _leave_others(key, name)
    if job is None:
        if not setup.quick and st.session_state.get(f"{_WANTED}_{name}") != key:
            return None
        job = jobs().start(key, _turns(setup, question), who())
    found = job.watch(who())
    return job.wait(MOMENT) if patient and found.running else found


def _leave_others(key: Hashable, name: str) -> None:
    """A changed question ends the one before, unless somebody else watches it."""
    before = st.session_state.get(f"{_WATCHED}_{name}")
    if before is not None and before != key:
        job = jobs().job(before)
        if job is not None:
            job.leave(who())
    st.session_state[f"{_WATCHED}_{name}"] = key


def _turns(setup: Setup, question: Question) -> Turns[Comparison]:
    engines = dict(setup.engines)
    return lambda: cast(Generator[Comparison, None, None], compare(engines, question))


def want(key: Hashable, name: str = "page") -> None:
    """The reader asks for this comparison, however long it takes."""
    jobs().retry(key)
    st.session_state[f"{_WANTED}_{name}"] = key
    st.session_state.pop(f"{_STOPPED}_{name}", None)


def stop(key: Hashable, name: str = "page") -> None:
    """The reader has seen enough: what is there stays, and the model rests within a token."""
    job = jobs().job(key)
    if job is None:
        return
    job.leave(who())
    found = job.wait(2.0)
    if found.value is not None:
        kept = replace(found.value, cancelled=True)
        st.session_state[f"{_STOPPED}_{name}"] = (key, kept)
    if st.session_state.get(f"{_WANTED}_{name}") == key:
        del st.session_state[f"{_WANTED}_{name}"]


def progress(found: Comparison | None) -> tuple[float, int, int]:
    """(share of the tokens at most to come, finished texts, all texts)."""
    if found is None:
        return 0.0, 0, 0
    texts = [text for column in found.columns for text in column.texts if not column.fault]
    ended = sum(text.stop not in (None, "user") for text in texts)
    limit = found.question.max_new
    made = sum(1.0 if text.stop else len(text.choices) / limit for text in texts)
    return (min(made / len(texts), 1.0) if texts else 0.0), ended, len(texts)


# ---------------------------------------------------------------- what is shown of it


@st.cache_resource(show_spinner=False)
def _notes() -> ByteLRU[Hashable, object]:
    """Differences and figures that were worked out before."""
    return ByteLRU(NOTES_BYTES)


def scene(setup: Setup, found: Look[Comparison], t: Catalog) -> Scene | None:
    """The comparison as it is shown, with the columns that cannot be read in their places."""
    if found.value is None:
        return None
    written = tuple(
        found.value.columns[place]
        if place is not None
        else Written(Column(Settings(strategy="greedy")), fault=slot.fault)
        for slot, place in zip(setup.slots, setup.places, strict=True)
    )
    view, slots = state.place().view, range(len(setup.slots))
    reference = min(view.reference, len(slots) - 1)
    samples = found.value.question.samples
    sample = min(view.sample, samples - 1)
    return Scene(
        names=tuple(setup.name(slot, t) for slot in slots),
        written=written,
        vocabularies=tuple(setup.vocabulary(slot) for slot in slots),
        prompts=tuple(setup.prompt(slot) for slot in slots),
        differences=tuple(
            # The model reads again for all but the first texts: not while they are written.
            None
            if sample and found.running
            else _difference(setup, found.value, slot, reference, sample)
            for slot in slots
        ),
        reference=reference,
        sample=sample,
        samples=samples,
        running=found.running,
    )


def _difference(
    setup: Setup, found: Comparison, slot: int, reference: int, sample: int
) -> Difference | None:
    here, there = setup.places[slot], setup.places[reference]
    if here is None or there is None or here == there:
        return None
    texts = [chosen(found.columns[place], sample) for place in (here, there)]
    if any(text is None or not text.choices for text in texts):
        return None
    counts = tuple(len(text.choices) for text in texts if text)
    key = ("difference", setup.key, here, there, sample, counts, found.cancelled)
    known = _notes().get(key)
    if isinstance(known, Difference):
        return known
    try:
        fresh = difference(found, setup.engines, here, there, sample)
    except Fault:
        return None
    if not any(text and text.stop is None for text in texts):
        _notes().put(key, fresh, 400)
    return fresh


def all_figures(setup: Setup, shown: Scene) -> list[Figures | None]:
    """The figures of each column; ``None`` where nothing was written."""
    return [_figures(setup, shown, slot) for slot in range(len(shown.written))]


def _figures(setup: Setup, shown: Scene, slot: int) -> Figures | None:
    written, vocabulary = shown.written[slot], shown.vocabularies[slot]
    if vocabulary is None or not any(text.choices for text in written.texts):
        return None
    tokens = sum(len(text.choices) for text in written.texts)
    key = ("figures", setup.key, setup.places[slot], tokens, written.ms)
    known = _notes().get(key)
    if isinstance(known, Figures):
        return known
    fresh = figures(written, vocabulary)
    _notes().put(key, fresh, 600)
    return fresh


# ---------------------------------------------------------------- models on their way


def models_coming(setup: Setup, t: Catalog) -> None:
    """How far the models are; the page goes on by itself when they are there."""

    @st.fragment(run_every=1.0)
    def watch() -> None:
        for model in setup.waiting:
            found = state.store().state(model)
            if found.status not in BUSY:
                st.rerun(scope="app")
            kind = "loading" if found.status == "loading" else "fetching"
            title = plain(model_words(t, model))
            st.progress(found.progress or 0.0, text=t(f"frame.model_{kind}", model=title))

    st.info(t("compare.waiting"))
    watch()
