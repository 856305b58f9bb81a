"""Comparisons being computed, for all readers: one thread for each question, however many watch.

A page starts a job or joins it, looks at how far it is, and says so each time. A job that
nobody has looked at for a while pauses, and ends after a longer while; whoever stops it ends
it, unless others are watching. Finished comparisons are kept under a byte budget.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass, replace
from typing import Final

import streamlit as st

from core.compare_records import Comparison
from core.decode.generate import Stopped
from core.engine.memory import ByteLRU
from core.faults import Fault

KEPT_BYTES: Final = 96_000_000
PATIENCE: Final = 10.0
"""Seconds without a look after which a job pauses: the page was left, or is hidden."""
FORGET: Final = 120.0
"""Seconds after which a paused job ends."""
AT_ONCE: Final = 2
"""Comparisons that take a turn at the same time; others wait for theirs."""
FAULTS: Final = 200
"""Failed questions that are remembered, so that no page asks them again and again."""

Turns = Callable[[], Generator[Comparison, None, None]]


@dataclass(frozen=True)
class Look:
    """How far a comparison is."""

    comparison: Comparison | None
    """``None`` before the first turn."""
    running: bool
    fault: Fault | None = None
    """Why there is nothing to be compared."""


class Job:
    """One comparison in its own thread."""

    def __init__(
        self, turns: Turns, keep: Callable[[Comparison], None], gate: threading.Semaphore
    ) -> None:
        self._turns, self._keep, self._gate = turns, keep, gate
        self._changed = threading.Condition()
        self._watchers: dict[Hashable, float] = {}
        self._stopped = False
        self.look = Look(None, True)
        threading.Thread(target=self._work, name="comparison", daemon=True).start()

    def watch(self, who: Hashable) -> Look:
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

    def wait(self, seconds: float) -> Look:
        """How far it is when it has ended, or after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not self.look.running, seconds)
            return self.look

    def _awake(self) -> bool:
        latest = max(self._watchers.values(), default=0.0)
        return time.monotonic() - latest < PATIENCE

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
            self._end(replace(self.look, running=False, fault=Fault("compare_failed")))
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
                self._end(Look(turns.throw(Stopped()), False))
                return
        self._end(replace(self.look, running=False))

    def _end(self, look: Look) -> None:
        with self._changed:
            self.look = look
            self._changed.notify_all()


class Jobs:
    """All comparisons of this process."""

    def __init__(self) -> None:
        self._kept: ByteLRU[Hashable, Comparison] = ByteLRU(KEPT_BYTES)
        self._running: dict[Hashable, Job] = {}
        self._failed: dict[Hashable, Fault] = {}
        self._lock = threading.Lock()
        self._gate = threading.Semaphore(AT_ONCE)

    def known(self, key: Hashable) -> Comparison | None:
        """A finished comparison, if it is still kept."""
        return self._kept.get(key)

    def fault(self, key: Hashable) -> Fault | None:
        """Why this could not be computed when it was tried."""
        with self._lock:
            self._tidy()
            return self._failed.get(key)

    def retry(self, key: Hashable) -> None:
        """Forget that it failed."""
        with self._lock:
            self._failed.pop(key, None)

    def job(self, key: Hashable) -> Job | None:
        """The one that computes this now."""
        with self._lock:
            self._tidy()
            return self._running.get(key)

    def start(self, key: Hashable, turns: Turns, who: Hashable) -> Job:
        """Compute, or join whoever computes the same."""
        with self._lock:
            self._tidy()
            found = self._running.get(key)
            if found is None:

                def keep(done: Comparison) -> None:
                    self._kept.put(key, done, size(done))

                found = self._running[key] = Job(turns, keep, self._gate)
        found.watch(who)
        return found

    def _tidy(self) -> None:
        for key in [key for key, job in self._running.items() if not job.look.running]:
            fault = self._running.pop(key).look.fault
            if fault is not None:
                self._failed[key] = fault
        for key in list(self._failed)[:-FAULTS]:
            del self._failed[key]


def size(found: Comparison) -> int:
    """About how many bytes a comparison holds."""
    texts = sum(len(text.choices) for column in found.columns for text in column.texts)
    searches = [column.search for column in found.columns if column.search]
    candidates = sum(len(step.candidates) for search in searches for step in search.steps)
    return 2000 + 300 * texts + 400 * candidates


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """Those of this process."""
    return Jobs()
