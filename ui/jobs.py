"""Long work for all readers: one thread for each question, however many watch.

A page starts a job or joins it, looks at how far it is, and says so each time. A job that
nobody has looked at for a while pauses, and ends after a longer while; whoever stops it ends
it, unless others are watching. Finished answers are kept under a byte budget. Jobs that wait
for each other go in the order in which they came (:mod:`ui.gate`).
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Protocol, TypeVar

from core.decode.generate import Stopped
from core.engine.memory import ByteLRU
from core.faults import Fault
from ui.gate import Gate
from ui.readers import here

PATIENCE: Final = 10.0
"""Seconds without a look after which a job pauses: the page was left, or is hidden."""
AWAY: Final = 10.0
"""Seconds for which a job still goes on for a reader who opened another page or closed it."""
FORGET: Final = 120.0
"""Seconds after which a paused job ends."""
FAREWELL: Final = 5.0
"""Seconds in which jobs may end their turn when the program ends: torch does not like to be
left in the middle of one."""
FAULTS: Final = 200
"""Failed questions that are remembered, so that no page asks them again and again."""


class Answer(Protocol):
    """What a job makes: more and more of it, until it is done."""

    @property
    def done(self) -> bool: ...


_every: weakref.WeakSet[Jobs[Any]] = weakref.WeakSet()
T = TypeVar("T", bound=Answer)
Turns = Callable[[], Generator[T, None, Any]]
"""The work, turn by turn. Where it is stopped, ``Stopped`` is raised in it; it may yield once
more what there is."""


@dataclass(frozen=True)
class Look(Generic[T]):
    """How far a job is."""

    value: T | None
    """``None`` before the first turn."""
    running: bool
    fault: Fault | None = None
    """Why there is no answer."""


class Job(Generic[T]):
    """One question in its own thread. ``gate`` lets it compute: turn by turn, or, if ``whole``,
    from its beginning to its end or pause."""

    def __init__(
        self,
        turns: Turns[T],
        keep: Callable[[T], None],
        gate: Gate,
        *,
        failed: str,
        patience: float | None = None,
        whole: bool = False,
    ) -> None:
        self._patience = patience
        self._turns, self._keep, self._failed = turns, keep, failed
        self._gate, self._whole = gate, whole
        self._changed = threading.Condition()
        self._watchers: dict[Hashable, float] = {}
        """Reader → until when its last look counts."""
        self._stopped, self._began = False, time.monotonic()
        self.look: Look[T] = Look(None, True)
        self._thread = threading.Thread(target=self._work, name="job", daemon=True)
        self._thread.start()

    @property
    def patience(self) -> float:
        return PATIENCE if self._patience is None else self._patience

    @property
    def before(self) -> int:
        """Jobs that have to end or to take their turn first."""
        return self._gate.before(self)

    def watch(self, who: Hashable) -> Look[T]:
        """Say that ``who`` is looking, and how far it is."""
        with self._changed:
            self._watchers[who] = time.monotonic() + self.patience
            self._changed.notify_all()
            return self.look

    def away(self, who: Hashable) -> None:
        """``who`` looks at another page now; may come back within a moment."""
        with self._changed:
            if who in self._watchers:
                self._watchers[who] = min(self._watchers[who], time.monotonic() + AWAY)

    def leave(self, who: Hashable) -> None:
        """``who`` has seen enough; the last one who leaves stops the job."""
        with self._changed:
            self._watchers.pop(who, None)
            self._watchers = {who: end for who, end in self._watchers.items() if here(who)}
            if not self._awake():
                self._stopped = True
            self._changed.notify_all()

    def end(self) -> None:
        """Stop it, whoever watches."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def join(self, seconds: float) -> None:
        """Wait until its thread has ended, or so long."""
        self._thread.join(seconds)

    def wait(self, seconds: float) -> Look[T]:
        """How far it is when it has ended, or after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not self.look.running, seconds)
            return self.look

    def _awake(self) -> bool:
        now, less = time.monotonic(), max(0.0, self.patience - AWAY)
        return any(
            end > now and (end > now + less or here(who)) for who, end in self._watchers.items()
        )

    def _go_on(self) -> bool:
        """Whether anybody wants another turn; waits for them for a while."""
        with self._changed:
            if not self._stopped and not self._awake():
                self._gate.release(self)
            self._changed.wait_for(lambda: self._stopped or self._awake(), FORGET)
            return not self._stopped and self._awake()

    def _wanted(self) -> bool:
        """Whether it is worth waiting for the gate."""
        latest = max(tuple(self._watchers.values()), default=self._began)
        return not self._stopped and time.monotonic() - latest < FORGET

    def _work(self) -> None:
        try:
            self._run()
        except Fault as fault:
            self._end(replace(self.look, running=False, fault=fault))
        except BaseException:
            self._end(replace(self.look, running=False, fault=Fault(self._failed)))
            raise
        finally:
            self._gate.release(self)

    def _run(self) -> None:
        turns = self._turns()
        while self._gate.enter(self, self._wanted):
            now = next(turns, None)
            if not self._whole:
                self._gate.release(self)
            if now is None:
                self._end(replace(self.look, running=False))
                return
            if now.done:
                self._keep(now)
            with self._changed:
                self.look = Look(now, not now.done)
            if not now.done and not self._go_on():
                break
        if self.look.running:
            self._end(Look(_last(turns, self.look.value), False))

    def _end(self, look: Look[T]) -> None:
        with self._changed:
            self.look = look
            self._changed.notify_all()


def _last(turns: Generator[T, None, Any], now: T | None) -> T | None:
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
    others wait for theirs; with ``one_by_one`` they wait for the end of those before them, or
    for their pause. A job pauses after ``patience`` seconds without a look.
    """

    def __init__(
        self,
        failed: str,
        *,
        size: Callable[[T], int],
        kept_bytes: int,
        at_once: int = 2,
        patience: float | None = None,
        one_by_one: bool = False,
    ) -> None:
        self._patience, self._one_by_one = patience, one_by_one
        self._code, self._size = failed, size
        self._kept: ByteLRU[Hashable, T] = ByteLRU(kept_bytes)
        self._running: dict[Hashable, Job[T]] = {}
        self._failed: dict[Hashable, Fault] = {}
        self._lock = threading.Lock()
        self._gate, self._side_gate = Gate(at_once), Gate(1)
        _every.add(self)

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

    def start(
        self, key: Hashable, turns: Turns[T], who: Hashable, *, beside: bool = False
    ) -> Job[T]:
        """Compute, or join whoever computes the same. ``beside``: what takes a second does not
        wait for what takes minutes."""
        with self._lock:
            self._tidy()
            found = self._running.get(key)
            if found is None:

                def keep(done: T) -> None:
                    self._kept.put(key, done, self._size(done))

                found = self._running[key] = Job(
                    turns,
                    keep,
                    self._side_gate if beside else self._gate,
                    failed=self._code,
                    patience=self._patience,
                    whole=self._one_by_one,
                )
        found.watch(who)
        return found

    def end(self) -> None:
        """Stop all of them, and wait a moment for the end of their turns."""
        with self._lock:
            running = list(self._running.values())
        until = time.monotonic() + FAREWELL
        for job in running:
            job.end()
        for job in running:
            job.join(max(0.0, until - time.monotonic()))

    def _tidy(self) -> None:
        for key in [key for key, job in self._running.items() if not job.look.running]:
            fault = self._running.pop(key).look.fault
            if fault is not None:
                self._failed[key] = fault
        for key in list(self._failed)[:-FAULTS]:
            del self._failed[key]


@atexit.register
def _end_all() -> None:
    for jobs in list(_every):
        jobs.end()
