"""The models of this process: loaded once for everybody, in the background, a few at a time."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal

from core.edits.spec import respelled, split
from core.engine.gone import Gone
from core.engine.protocol import Engine
from core.faults import Fault, NotReady
from core.limits import megabytes
from core.models.catalog import ModelEntry, resolve, state_on_disk
from core.models.fetch import Report, fetch

Status = Literal["ready", "loading", "fetching", "absent", "failed"]
Factory = Callable[[ModelEntry, Report], Engine]
Fetcher = Callable[[ModelEntry, Report], object]

HEAVY_LIMIT: Final = 4
"""Models in memory that have a size worth counting, edited copies among them."""
EDITED_BUDGETS: Final = {"memo_bytes": 192_000_000, "kv_bytes": 192_000_000}
"""What the engine of an edited copy may remember."""
LIGHT_LIMIT: Final = 8
"""Toys and tiny models in memory."""
BUSY: Final = ("fetching", "loading")


@dataclass(frozen=True)
class ModelState:
    """How far a model is.

    ``message`` is a code, a key of ``locales/*/models.toml``: ``in_memory``, ``on_disk``
    (absent, but loading needs no network), ``not_fetched``, ``needs_terms``, ``failed``, or
    what is being done: ``download``, ``unpack``, ``convert``, ``wait``, ``load``.
    """

    status: Status
    progress: float | None = None
    """0 … 1 while something is being done, where it is known."""
    message: str = ""
    fault: Fault | None = None
    """Why it failed."""


class _Slot:
    """What the store knows of one model. Touched only under the store's lock."""

    def __init__(self, name: str, entry: ModelEntry) -> None:
        self.name = name
        self.entry = entry
        self.state = ModelState("absent")
        self.engine: Engine | None = None
        self.used = 0
        self.pins = 0

    @property
    def bytes(self) -> int:
        """Of the weights: as they are, or as they are expected to be."""
        if self.engine is not None:
            return self.engine.info.bytes_in_memory
        return self.entry.bytes_in_memory or 2 * (self.entry.bytes_on_disk or 0)


def build(entry: ModelEntry, progress: Report) -> Engine:
    """The engine that fits the entry. The imports are slow, and wait until they are needed."""
    if entry.kind == "toy":
        from core.engine.toy import open_toy  # noqa: PLC0415

        return open_toy(entry.path)
    from core.engine.local import LocalEngine  # noqa: PLC0415
    from core.models.load import load  # noqa: PLC0415

    budgets = EDITED_BUDGETS if entry.edit else {}
    return LocalEngine(load(entry, progress=progress), **budgets)


class ModelStore:
    """Engines by model name, shared by all threads.

    At most ``limit`` large models are kept, and at most ``memory`` bytes of them: when another
    comes, those that nobody used for the longest time are let go, except those that are in use
    (see :meth:`using`). A single model may be larger than the budget; an edited copy fails where
    there is no room for it beside the model that it was made of.
    ``local=False`` refuses names that are files or folders of this machine.
    """

    def __init__(
        self,
        factory: Factory = build,
        *,
        fetcher: Fetcher = fetch,
        limit: int = HEAVY_LIMIT,
        memory: int | None = None,
        local: bool = True,
    ) -> None:
        self._factory = factory
        self._fetcher = fetcher
        self._limits = {True: LIGHT_LIMIT, False: limit}
        self._memory = megabytes("TOKEN_BY_TOKEN_MODELS_MB", 6000) if memory is None else memory
        self._local = local
        self._slots: dict[str, _Slot] = {}
        self.gone = Gone()
        self._changed = threading.Condition(threading.RLock())
        # transformers patches torch while it loads, so two loads at once would mix.
        self._loading = threading.Lock()
        self._clock = itertools.count(1)

    def state(self, name: str) -> ModelState:
        """How far the model is. Raises Fault for a name that is no model."""
        name = respelled(name)
        with self._changed:
            slot = self._slots.get(name)
            if slot is not None and slot.state.status != "absent":
                return slot.state
        entry = resolve(name, local=self._local)
        if state_on_disk(entry) == "ready":
            return ModelState("absent", message="on_disk")
        return ModelState("absent", message="needs_terms" if entry.needs_terms else "not_fetched")

    def request(self, name: str, accept_terms: bool = False, *, retry: bool = False) -> ModelState:
        """Have the model fetched and loaded in the background, and return its state.

        Any number of callers start it once. A model with terms is fetched only with
        ``accept_terms``; one that failed stays failed until ``retry``, so that a page may
        ask at every rerun. Raises Fault for a name that is no model.
        """
        name = respelled(name)
        with self._changed:
            found = self.state(name)
            if found.status in ("ready", *BUSY) or (found.status == "failed" and not retry):
                return found
            entry = resolve(name, local=self._local)
            absent = state_on_disk(entry) == "absent"
            if absent and entry.needs_terms and not accept_terms:
                return ModelState("absent", message="needs_terms")
            slot = self._slots[name] = _Slot(name, entry)
            slot.state = (
                ModelState("fetching", 0.0, "download")
                if absent
                else ModelState("loading", 0.0, "load")
            )
            threading.Thread(
                target=self._work, args=(slot,), name=f"model {name}", daemon=True
            ).start()
            return slot.state

    def engine(self, name: str) -> Engine:
        """The engine of a ready model.

        Raises NotReady while it is coming or was not asked for, the Fault if it failed.
        """
        name = respelled(name)
        with self._changed:
            slot = self._slots.get(name)
            if slot is not None and slot.engine is not None:
                slot.used = next(self._clock)
                return slot.engine
            state = self.state(name)
        if state.fault is not None:
            raise _again(state.fault)
        if state.status == "absent":
            raise NotReady("model_not_loaded", name=name)
        raise NotReady("model_loading")

    @contextmanager
    def using(self, name: str) -> Iterator[Engine]:
        """The engine, kept in memory for as long as the body runs. Raises like ``engine``."""
        with self._changed:
            engine = self.engine(name)
            slot = self._slots[respelled(name)]
            slot.pins += 1
        try:
            yield engine
        finally:
            with self._changed:
                slot.pins -= 1
                self._let_go(slot.entry.light)

    def wait(self, name: str, timeout: float | None = None) -> ModelState:
        """The state once nothing is being done any more, or after ``timeout`` seconds."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while (found := self.state(name)).status in BUSY:
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    break
                self._changed.wait(left)
            return found

    def _put(self, slot: _Slot, state: ModelState) -> None:
        with self._changed:
            slot.state = state
            self._changed.notify_all()

    def _work(self, slot: _Slot) -> None:
        def report(fraction: float, code: str) -> None:
            status: Status = "loading" if code == "load" else "fetching"
            self._put(slot, ModelState(status, min(max(fraction, 0.0), 1.0), code))

        entry = slot.entry
        try:
            if state_on_disk(entry) == "absent":
                self._fetcher(entry, report)
            report(0.0, "load")
            with self._loading:
                with self._changed:
                    self._let_go(entry.light, coming=slot)
                self.gone.collect()
                engine = self._factory(entry, report)
            with self._changed:
                slot.engine = engine
                slot.used = next(self._clock)
                self._put(slot, ModelState("ready", 1.0, "in_memory"))
        except Fault as fault:
            self._put(slot, ModelState("failed", None, "failed", fault))
        except Exception:
            logging.getLogger(__name__).exception("loading %s failed", entry.name)
            self._put(
                slot, ModelState("failed", None, "failed", Fault("model_failed", name=entry.name))
            )

    def _original(self, coming: _Slot | None, held: list[_Slot]) -> _Slot | None:
        """What a coming copy was made of, if it is in memory. Raises Fault where both do not fit:
        their readers would push out each other's model at every click."""
        if coming is None or not coming.entry.edit:
            return None
        base = split(coming.name)[0]
        found = next((slot for slot in held if slot.name == base), None)
        if found is not None and not found.entry.light:
            needed = found.bytes + coming.bytes
            if needed > self._memory:
                raise Fault(
                    "copy_no_room", name=base, needed=needed // 10**6, budget=self._memory // 10**6
                )
        return found

    def _let_go(self, light: bool, *, coming: _Slot | None = None) -> None:
        """Drop the models used longest ago until ``coming`` fits; under the lock."""
        held = [s for s in self._slots.values() if s.engine is not None and s.entry.light == light]
        count = len(held) + (coming is not None)
        total = sum(s.bytes for s in held) + (coming.bytes if coming else 0)
        original = self._original(coming, held)
        # An edited copy goes before any original, which more readers look at.
        spare = sorted(
            (s for s in held if not s.pins and s is not original),
            key=lambda s: (not s.entry.edit, s.used),
        )
        for slot in spare:
            if count <= self._limits[light] and (light or total <= self._memory or count == 1):
                break
            count, total = count - 1, total - slot.bytes
            if not light:
                self.gone.add(slot.engine)
            slot.engine = None
            slot.state = ModelState("absent")
            del self._slots[slot.name]
        # Names that failed are remembered too, but not without end.
        failed = [n for n, s in self._slots.items() if s.state.status == "failed"]
        for name in failed[:-LIGHT_LIMIT]:
            del self._slots[name]


def _again(fault: Fault) -> Fault:
    """The same fault as a new exception: one object raised in many threads mixes tracebacks."""
    return type(fault)(fault.code, **fault.params)
