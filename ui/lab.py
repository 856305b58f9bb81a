"""An experiment on a page of the laboratory: asked for, watched while it runs, stopped, shown.

The work is a job that all readers of the same question share (:mod:`ui.jobs`). One experiment
after the other runs in this process, because two would spoil each other's times; only what takes
a second or so does not wait.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass, is_dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

import streamlit as st

from core.faults import Fault
from core.trace import nbytes
from ui.figures.words import whole_percent
from ui.i18n import Catalog
from ui.jobs import Answer, Jobs, Look, Turns
from ui.marks import mark
from ui.readers import who

KEPT_BYTES: Final = 96_000_000
MOMENT: Final = 0.4
"""Seconds for which a page waits, so that quick answers come at once."""
REFRESH: Final = 0.7
"""Seconds between two looks at an experiment that runs."""
PATIENCE: Final = 75.0
"""Seconds without a look after which an experiment pauses: a browser lets a page that is hidden
for long look once a minute, and a reader who looks elsewhere meanwhile still wants the result."""
_WHOLE: Final = "lab_whole"
_DRAWN: Final = "lab_drawn"
"""Names of the experiments that this run of the page has drawn."""
_WATCHED: Final = "lab_watched"
"""Name → the question that the reader watches."""
_log = logging.getLogger(__name__)

T = TypeVar("T", bound=Answer)


def size(record: Any) -> int:
    """About how many bytes a record holds: its arrays, and its other parts at a guess."""
    rest = len(str(record)) if is_dataclass(record) else 1000
    return nbytes(record) + 2 * min(rest, 10**6)


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs[Any]:
    """The experiments of this process."""
    return Jobs(
        "lab_failed", size=size, kept_bytes=KEPT_BYTES, at_once=1, patience=PATIENCE,
        one_by_one=True,
    )  # fmt: skip


@dataclass(frozen=True)
class _Frame(Generic[T]):
    """What is drawn around an experiment."""

    t: Catalog
    name: str
    key: Hashable
    show: Callable[[T], None]
    cost: str
    before: Callable[[], None] | None
    holds: Callable[[T], bool]


def experiment(
    t: Catalog,
    name: str,
    key: Hashable,
    turns: Turns[T],
    show: Callable[[T], None],
    *,
    cost: str,
    run: str | None = None,
    auto: bool = False,
    before: Callable[[], None] | None = None,
    holds: Callable[[T], bool] = lambda _: True,
) -> None:
    """Draw an experiment: its button and ``cost`` in words, its progress, what it found.

    ``name`` tells the experiments of a page apart. ``key`` is the question, everything that the
    answer depends on, the engine's ``ui.state.number`` among it: display settings are not.
    ``turns`` does the work (records with ``done``, and ``progress`` from 0 to 1 where they have
    it), ``show`` draws one, also while more comes. ``before`` draws what there is until somebody
    asks, and again where it was stopped with a record that ``holds`` nothing yet; ``auto`` asks
    by itself, for what takes less than a second or so. ``run`` is the button's label.
    """
    key = (name, key)
    st.session_state.setdefault(_DRAWN, set()).add(name)
    found = _look(name, key, turns, auto)
    frame = _Frame(t, name, key, show, cost, before, holds)
    # One place on the page, whatever stands in it: a fragment is known by its place, and clicks
    # into one that has moved on are lost.
    with st.container(key=f"lab_box_{name}"):
        if found is not None:
            every = REFRESH if found.running else None
            st.fragment(_draw, run_every=every)(frame, found.running)
            return
        _ask(frame, run)
        if before is not None:
            before()


def _look(name: str, key: Hashable, turns: Turns[T], auto: bool) -> Look[T] | None:
    """How far it is, after beginning it where it is asked for; ``None``: nobody asked."""
    found = _now(name, key)
    if found is None:
        _leave_others(name, key)
        if not auto and st.session_state.get(f"lab_wanted_{name}") != key:
            return None
        work = turns if auto else partial(_to_the_end, turns)
        found = jobs().start(key, work, who(), beside=auto).look
    job = jobs().job(key)
    if not found.running or job is None:
        return found
    _leave_others(name, key)
    return job.wait(MOMENT)


def _to_the_end(turns: Turns[T]) -> Generator[T, None, Any]:
    """The same; then the copies that it made of a model are fetched (:mod:`core.engine.gone`)."""
    try:
        return (yield from turns())
    finally:
        gc.collect()


def _leave_others(name: str, key: Hashable) -> None:
    """A changed question ends the one before, unless somebody else watches it."""
    watched = st.session_state.setdefault(_WATCHED, {})
    before = watched.get(name)
    if before is not None and before != key:
        job = jobs().job(before)
        if job is not None:
            job.leave(who())
    watched[name] = key


def leave_what_is_not_drawn() -> None:
    """Called when a page was drawn: the experiments of other pages are not looked at any more."""
    drawn = st.session_state.pop(_DRAWN, set())
    watched = st.session_state.get(_WATCHED, {})
    for name in set(watched) - drawn:
        job = jobs().job(watched.pop(name))
        if job is not None:
            job.away(who())


def _draw(frame: _Frame[Any], running: bool) -> None:
    """A fragment that looks again by itself: what fails in it would otherwise end as Streamlit's
    own box, past the border of the page."""
    try:
        _drawn(frame, running)
    except Fault as fault:
        st.error(frame.t.fault(fault))
    except Exception:
        _log.exception("experiment %s", frame.name)
        st.error(frame.t("frame.broken"))


def _drawn(frame: _Frame[Any], running: bool) -> None:
    if st.session_state.pop(_WHOLE, False):
        st.rerun(scope="app")
    now = _now(frame.name, frame.key)
    if now is None or (running and not now.running):
        st.rerun(scope="app")
    if now.fault is not None:
        st.error(frame.t.fault(now.fault))
        _again(frame)
        return
    if now.running:
        _progress(frame, now.value)
    value = now.value
    if value is not None and not (now.running or frame.holds(value)):
        value = None
    if value is not None:
        frame.show(value)
    elif frame.before is not None:
        frame.before()
    if not now.running:
        _ended(frame, value)


def _now(name: str, key: Hashable) -> Look[Any] | None:
    """How far it is; ``None``: it is not there, and nobody makes it."""
    done = jobs().known(key)
    if done is not None:
        return Look(done, False)
    stopped = st.session_state.get(f"lab_stopped_{name}")
    if stopped is not None and stopped[0] == key:
        return Look(stopped[1], False)
    job, fault = jobs().job(key), jobs().fault(key)
    if job is not None:
        return job.watch(who())
    return Look(None, False, fault) if fault is not None else None


def _progress(frame: _Frame[Any], value: Any) -> None:
    t = frame.t
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        share = getattr(value, "progress", 0.0) if value is not None else 0.0
        job = jobs().job(frame.key)
        before = job.before if job is not None else 0
        said = t("lab.waiting_for", count=before) if before else t("lab.waiting")
        if value is not None and not before:
            said = t("lab.running", percent=whole_percent(share))
        st.progress(min(max(float(share), 0.0), 1.0), text=said)
        st.button(
            t("lab.stop"),
            key=f"lab_stop_{frame.name}",
            icon=":material/stop:",
            on_click=stop,
            args=(frame.name, frame.key),
        )


def _ended(frame: _Frame[Any], value: Any) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if value is None or not value.done:
            st.caption(frame.t("lab.stopped_early" if value is None else "lab.stopped"))
        _again(frame)


def _ask(frame: _Frame[Any], label: str | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            label or frame.t("lab.run"),
            key=f"lab_run_{frame.name}",
            type="primary",
            icon=":material/play_arrow:",
            on_click=want,
            args=(frame.name, frame.key),
        )
        mark(frame.t, "estimated", frame.cost)


def _again(frame: _Frame[Any]) -> None:
    st.button(
        frame.t("lab.again"),
        key=f"lab_again_{frame.name}",
        icon=":material/refresh:",
        help=frame.cost,
        on_click=want,
        args=(frame.name, frame.key),
    )


def left(name: str) -> Any:
    """What there was when the reader stopped this experiment; ``None``: it was not stopped."""
    stopped = st.session_state.get(f"lab_stopped_{name}")
    return None if stopped is None else stopped[1]


def want(name: str, key: Hashable) -> None:
    """The reader asks for this experiment, or for it once more."""
    jobs().retry(key)
    jobs().forget(key)
    st.session_state[f"lab_wanted_{name}"] = key
    st.session_state.pop(f"lab_stopped_{name}", None)
    st.session_state[_WHOLE] = True


def stop(name: str, key: Hashable) -> None:
    """The reader has seen enough: what is there stays."""
    job = jobs().job(key)
    if job is not None:
        job.leave(who())
        st.session_state[f"lab_stopped_{name}"] = (key, job.wait(2.0).value)
    if st.session_state.get(f"lab_wanted_{name}") == key:
        del st.session_state[f"lab_wanted_{name}"]
    st.session_state[_WHOLE] = True
