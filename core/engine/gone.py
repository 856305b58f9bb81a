"""Models that were let go of and whose memory has not come back.

A model is a knot: its modules and hooks refer to each other, and only Python's cycle collector
unties that. It looks through long-lived objects rarely, and a look takes some 0.3 s, in which
nothing else runs. So it is sent where there is something to fetch, and only there.
"""

from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import Any, Final

PAUSE: Final = 5.0
"""Seconds between two looks: somebody may still hold the model."""


class Gone:
    """What was let go of; safe in many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._refs: list[weakref.ref[Any]] = []
        self._looked = 0.0

    def add(self, thing: object) -> None:
        """``thing`` is not needed any more by whoever calls."""
        with self._lock:
            self._refs.append(weakref.ref(thing))
            self._looked = 0.0

    def collect(self) -> None:
        """Fetch what nobody holds; at once after ``add``, then every ``PAUSE`` seconds."""
        with self._lock:
            self._refs = [ref for ref in self._refs if ref() is not None]
            if not self._refs or time.monotonic() - self._looked < PAUSE:
                return
            self._looked = time.monotonic()
        gc.collect()
