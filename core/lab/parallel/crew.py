"""The worker processes of one experiment: started, spoken to, and certainly ended.

One crew at a time in this process; the others wait for their turn. Workers end when they are
told to, when the experiment is stopped or left, when one of them fails, when their time is over,
and when this process ends, in whatever way.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from core.faults import Fault
from core.lab.machine import cores
from core.lab.parallel.folders import private_folder, temporary
from core.lab.parallel.records import Phase
from core.lab.turns import through

PATIENCE: Final = 120.0
"""Seconds for one answer."""
LIMIT: Final = 600.0
"""Seconds for a whole experiment; the workers end by themselves then."""
IDLE: Final = 30.0
"""Seconds after which workers that nobody speaks to are ended: the page was left."""
LOOK: Final = 0.1
"""Seconds between two looks at whether the experiment shall stop."""
GRACE: Final = 0.5
"""Seconds in which the reason of a failure may still come to light."""
ROOT: Final = Path(__file__).resolve().parents[3]
Answer = dict[str, Any]
R = TypeVar("R")

_log = logging.getLogger(__name__)
_turn = threading.Lock()
_crews: weakref.WeakSet[Crew] = weakref.WeakSet()


class Crew:
    """A context manager. ``specs``: one for each worker, see the tasks.

    ``threads`` are shared out evenly unless a spec names its own.
    """

    def __init__(
        self, specs: Sequence[dict[str, Any]], *, patience: float = PATIENCE, limit: float = LIMIT
    ) -> None:
        self._patience, self._limit = patience, limit
        self._specs = specs
        self._workers: list[subprocess.Popen[str]] = []
        self._answers: queue.SimpleQueue[tuple[int, Answer | None]] = queue.SimpleQueue()
        self._folder = private_folder()
        self._left: float | None = None
        self._over: Fault | None = None
        self._has_turn = False
        self._closing = threading.Lock()

    @property
    def folder(self) -> Path:
        """Private to this user; where the workers leave their arrays."""
        return Path(self._folder.name)

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(worker.pid for worker in self._workers)

    def __enter__(self) -> Crew:
        return self

    def begin(self) -> Generator[Phase, None, None]:
        """Wait for this crew's turn, and start the workers. Raises Fault like ``ask``."""
        while not _turn.acquire(timeout=LOOK):
            yield "wait"
        self._has_turn = True
        _crews.add(self)
        ranks = len(self._specs)
        for rank, spec in enumerate(self._specs):
            self._start(rank, {
                "rank": rank, "ranks": ranks, "threads": max(1, cores() // ranks),
                "limit": self._limit, "patience": self._patience, "out": str(self.folder),
                "meeting": str(self.folder / "meeting"), **spec,
            })  # fmt: skip
        threading.Thread(target=self._keep_watch, name="crew", daemon=True).start()
        for _ in self._wait(range(ranks)):
            yield "start"

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, rank: int, spec: dict[str, Any]) -> None:
        path = self.folder / f"spec{rank}.json"
        with temporary():
            path.write_text(json.dumps(spec), encoding="utf-8")
        environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "HF_HUB_OFFLINE": "1"}
        environment["OMP_NUM_THREADS"] = str(spec["threads"])
        with (self.folder / f"log{rank}.txt").open("w", encoding="utf-8") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "core.lab.parallel.worker", str(path)],
                cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, text=True, encoding="utf-8", start_new_session=True,
            )  # fmt: skip
        self._workers.append(worker)
        threading.Thread(
            target=self._listen, args=(rank, worker), name=f"rank {rank}", daemon=True
        ).start()

    def _listen(self, rank: int, worker: subprocess.Popen[str]) -> None:
        assert worker.stdout is not None
        with contextlib.suppress(ValueError, OSError):
            for line in worker.stdout:
                self._answers.put((rank, json.loads(line)))
        self._answers.put((rank, None))

    def attend(self, turns: Generator[R, None, None]) -> Generator[R, None, None]:
        """``turns``, which speak to this crew, while somebody goes on with them.

        Where nobody does for ``IDLE`` seconds, the workers are ended: the page was left.
        """
        for record in turns:
            self._left = time.monotonic()
            yield record
            self._left = None

    def ask(self, do: str, *, only: int | None = None, **rest: Any) -> Generator[
        None, None, list[Answer]
    ]:  # fmt: skip
        """Have all workers (or one) do something; returns their answers by rank.

        Yields while they work, so that it can be stopped. Raises Fault when one of them fails or
        ends, or takes too long; all of them are gone then.
        """
        return (yield from self.ask_each(do, [rest] * len(self._workers), only=only))

    def ask_each(
        self, do: str, rests: Sequence[dict[str, Any]], *, only: int | None = None
    ) -> Generator[None, None, list[Answer]]:
        """The same, with each worker's own details."""
        if self._over is not None:
            raise self._over
        wanted = range(len(self._workers)) if only is None else (only,)
        for rank in wanted:
            stdin = self._workers[rank].stdin
            assert stdin is not None
            with contextlib.suppress(OSError, ValueError):  # its end is noticed below
                stdin.write(json.dumps({"do": do, **rests[rank]}) + "\n")
                stdin.flush()
        return (yield from self._wait(wanted))

    def _wait(self, wanted: Iterable[int]) -> Generator[None, None, list[Answer]]:
        missing, found = set(wanted), dict[int, Answer]()
        until = time.monotonic() + self._patience
        while missing:
            if self._over is not None:
                raise self._over
            try:
                rank, answer = self._answers.get(timeout=LOOK)
            except queue.Empty:
                if time.monotonic() > until:
                    self._fail(Fault("ranks_too_slow", seconds=f"{self._patience:g}"))
                yield
                continue
            if answer is None and self._over is not None:
                raise self._over
            if answer is None or "failed" in answer:
                self._fail(self._reason(rank, answer))
            else:
                found[rank] = answer
                missing.discard(rank)
        return [found[rank] for rank in sorted(found)]

    def _reason(self, rank: int, answer: Answer | None) -> Fault:
        """Why a worker failed. The first one to complain often only misses another one."""
        time.sleep(GRACE)
        ends = {place: worker.poll() for place, worker in enumerate(self._workers)}
        killed = [place for place, code in ends.items() if code is not None and code < 0]
        of = len(self._workers)
        if killed:
            name = signal.Signals(-(ends[killed[0]] or 0)).name
            if name == "SIGALRM":  # its own clock, a moment before ours
                return self._over or Fault("ranks_too_slow", seconds=f"{self._limit:g}")
            return Fault("rank_killed", rank=killed[0], ranks=of, signal=name)
        answers = {rank: answer}
        with contextlib.suppress(queue.Empty):
            while True:
                place, other = self._answers.get_nowait()
                answers.setdefault(place, other)
        for place, said in answers.items():
            if said is not None and said.get("failed") == "memory":
                return Fault("rank_no_memory", rank=place, ranks=of)
        said = answers[rank]
        return Fault("rank_failed", rank=rank, ranks=of,
                     reason="exit" if said is None else str(said.get("failed")))  # fmt: skip

    def _fail(self, fault: Fault) -> None:
        for rank in range(len(self._workers)):
            text = (self.folder / f"log{rank}.txt").read_text(encoding="utf-8", errors="replace")
            if text:
                _log.warning("%s; rank %d said: %s", fault, rank, text[-2000:])
        self.close()
        raise fault

    def _keep_watch(self) -> None:
        """End workers that are not spoken to any more: a paused experiment may never go on."""
        began = time.monotonic()
        while self._workers:
            now = time.monotonic()
            left = self._left
            if left is not None and now - left > IDLE:
                self._over = Fault("ranks_left", seconds=f"{IDLE:g}")
            elif now - began > self._limit:
                self._over = Fault("ranks_too_slow", seconds=f"{self._limit:g}")
            if self._over is not None:
                self.close()
            time.sleep(0.5)

    def close(self) -> None:
        """End all workers at once and remove what they wrote. May be called again."""
        with self._closing:
            for worker in self._workers:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    if hasattr(os, "killpg"):
                        # The group outlives its leader's name only while members of it live.
                        if worker.poll() is None:
                            os.killpg(worker.pid, signal.SIGKILL)
                    else:
                        worker.kill()
            for worker in self._workers:
                worker.wait()
                for pipe in (worker.stdin, worker.stdout):
                    if pipe is not None:
                        with contextlib.suppress(OSError, ValueError):
                            pipe.close()
            self._workers = []
            self._folder.cleanup()
            if self._has_turn:
                self._has_turn = False
                _turn.release()


def while_asking(
    asking: Generator[None, None, list[Answer]], now: R
) -> Generator[R, None, list[Answer]]:
    """Show the same record until the answers are there, and return them."""
    return (yield from through(asking, lambda _: now))


def counted(seen: dict[str, list[int]], kind: str) -> tuple[int, int]:
    """(calls, bytes) of one kind of message in a worker's answer."""
    calls, size = seen.get(kind, (0, 0))
    return calls, size


def _end_all() -> None:
    for crew in list(_crews):
        crew.close()


atexit.register(_end_all)
