"""A gate that lets a few through at a time, in the order in which they came."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Final

LOOK: Final = 0.2
"""Seconds between two looks at whether somebody who waits still wants to."""


class Gate:
    """``places`` may be inside. A semaphore is not enough: whoever leaves it and comes back at
    once is mostly the first to enter again, and the others wait without end."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._inside: set[Hashable] = set()
        self._queue: list[Hashable] = []
        self._changed = threading.Condition()

    def enter(self, one: Hashable, wanted: Callable[[], bool]) -> bool:
        """Go in, after waiting for one's turn; whoever is inside stays there. ``False``: it was
        not wanted any more."""
        with self._changed:
            if one in self._inside:
                return True
            self._queue.append(one)
            try:
                while len(self._inside) >= self._places or self._queue[0] is not one:
                    if not wanted():
                        return False
                    self._changed.wait(LOOK)
                self._inside.add(one)
                return True
            finally:
                self._queue.remove(one)
                self._changed.notify_all()

    def release(self, one: Hashable) -> None:
        """Go out; nothing happens to whoever is not inside."""
        with self._changed:
            self._inside.discard(one)
            self._changed.notify_all()

    def before(self, one: Hashable) -> int:
        """How many are inside or wait in front of it; 0 where it is inside or not there."""
        with self._changed:
            if one not in self._queue:
                return 0
            return len(self._inside) + self._queue.index(one)
