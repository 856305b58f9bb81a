"""Long work for all readers: one thread for each question, however many watch.

A page starts a job or joins it, looks at how far it is, and says so each time. A job that
nobody has looked at for a while pauses, and ends after a longer while; whoever stops it ends
it, unless others are watching. Finished answers are kept under a byte budget.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Protocol, TypeVar

import streamlit as st

from core.decode.generate import Stopped
from core.engine.memory import ByteLRU
from core.faults import Fault

PATIENCE: Final = 10.0
"""Seconds without a look after which a job pauses: the page was left, or is hidden."""
FORGET: Final = 120.0
"""Seconds after which a paused job ends."""
FAULTS: Final = 200
"""Failed questions that are remembered, so that no page asks them again and again."""
_WHO: Final = "job_reader"
_COUNT: Final = itertools.count()


class Answer(Protocol):
    """What a job makes: more and more of it, until it is done."""

    @property
    def done(self) -> bool: ...


T = TypeVar("T", bound=Answer)
Turns = Callable[[], Generator[T, None, Any]]
"""The work, turn by turn. Where it is stopped, ``Stopped`` is raised in it; it may yield once
more what there is."""


def who() -> int:
    """This reader among all who watch."""
    if _WHO not in st.session_state:
        st.session_state[_WHO] = next(_COUNT)
    found: int = st.session_state[_WHO]
    return found


@dataclass(frozen=True)
class Look(Generic[T]):
    """How far a job is."""

    value: T | None
    """``None`` before the first turn."""
    running: bool
    fault: Fault | None = None
    """Why there is no answer."""


class Job(Generic[T]):
    """One question in its own thread."""

    def __init__(
        self,
        turns: Turns[T],
        keep: Callable[[T], None],
        gate: threading.Semaphore,
        *,
        failed: str,
        patience: float | None = None,
    ) -> None:
        self._patience = patience
        self._turns, self._keep, self._gate, self._failed = turns, keep, gate, failed
        self._changed = threading.Condition()
        self._watchers: dict[Hashable, float] = {}
        self._stopped = False
        self.look: Look[T] = Look(None, True)
        threading.Thread(target=self._work, name="job", daemon=True).start()

    def watch(self, who: Hashable) -> Look[T]:
        """Say that ``who`` is looking, and how far it is."""
        with self._changed:
            self._watchers[who] = time.monotonic()
            self._changed.notify_all()
            return self.look

    def leave(self, who: Hashable) -> None:
        """``who`` has seen enough; the last one who leaves stops the job."""
        with self._changed:
            self._watchers.pop(who, None)
            if not self._awake():
                self._stopped = True
            self._changed.notify_all()

    def wait(self, seconds: float) -> Look[T]:
        """How far it is when it has ended, or after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not self.look.running, seconds)
            return self.look

    def _awake(self) -> bool:
        latest = max(self._watchers.values(), default=0.0)
        patience = PATIENCE if self._patience is None else self._patience
        return time.monotonic() - latest < patience

    def _go_on(self) -> bool:
        """Whether anybody wants another turn; waits for them for a while."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._awake(), FORGET)
            return not self._stopped and self._awake()

    def _work(self) -> None:
        try:
            self._run()
        except Fault as fault:
            self._end(replace(self.look, running=False, fault=fault))
        except BaseException:
            self._end(replace(self.look, running=False, fault=Fault(self._failed)))
            raise

    def _run(self) -> None:
        turns = self._turns()
        while True:
            # Others take their turn in between, and while nobody looks at this one.
            with self._gate:
                now = next(turns, None)
            if now is None:
                break
            if now.done:
                self._keep(now)
            with self._changed:
                self.look = Look(now, not now.done)
            if not now.done and not self._go_on():
                self._end(Look(_last(turns, now), False))
                return
        self._end(replace(self.look, running=False))

    def _end(self, look: Look[T]) -> None:
        with self._changed:
            self.look = look
            self._changed.notify_all()


def _last(turns: Generator[T, None, Any], now: T) -> T:
    """What there is when the work is stopped."""
    try:
        return turns.throw(Stopped())
    except (Stopped, StopIteration):
        return now
    finally:
        turns.close()


class Jobs(Generic[T]):
    """All jobs of one kind in this process.

    ``failed`` is the code of the fault for an error of the program, ``kept_bytes`` the budget
    for answers, whose ``size`` is in bytes; ``at_once`` jobs take a turn at the same time, the
    others wait for theirs. A job pauses after ``patience`` seconds without a look.
    """

    def __init__(
        self,
        failed: str,
        *,
        size: Callable[[T], int],
        kept_bytes: int,
        at_once: int = 2,
        patience: float | None = None,
    ) -> None:
        self._patience = patience
        self._code, self._size = failed, size
        self._kept: ByteLRU[Hashable, T] = ByteLRU(kept_bytes)
        self._running: dict[Hashable, Job[T]] = {}
        self._failed: dict[Hashable, Fault] = {}
        self._lock = threading.Lock()
        self._gate = threading.Semaphore(at_once)

    def known(self, key: Hashable) -> T | None:
        """A finished answer, if it is still kept."""
        return self._kept.get(key)

    def forget(self, key: Hashable) -> None:
        """Have it computed anew: a measurement, say."""
        self._kept.drop(key)

    def fault(self, key: Hashable) -> Fault | None:
        """Why this could not be computed when it was tried."""
        with self._lock:
            self._tidy()
            return self._failed.get(key)

    def retry(self, key: Hashable) -> None:
        """Forget that it failed."""
        with self._lock:
            self._failed.pop(key, None)

    def job(self, key: Hashable) -> Job[T] | None:
        """The one that computes this now."""
        with self._lock:
            self._tidy()
            return self._running.get(key)

    def start(self, key: Hashable, turns: Turns[T], who: Hashable) -> Job[T]:
        """Compute, or join whoever computes the same."""
        with self._lock:
            self._tidy()
            found = self._running.get(key)
            if found is None:

                def keep(done: T) -> None:
                    self._kept.put(key, done, self._size(done))

                found = self._running[key] = Job(
                    turns, keep, self._gate, failed=self._code, patience=self._patience
                )
        found.watch(who)
        return found

    def _tidy(self) -> None:
        for key in [key for key, job in self._running.items() if not job.look.running]:
            fault = self._running.pop(key).look.fault
            if fault is not None:
                self._failed[key] = fault
        for key in list(self._failed)[:-FAULTS]:
            del self._failed[key]
