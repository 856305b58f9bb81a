"""The text so far, for everything that chooses with an eye on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Past:
    """What was read before a step: the prompt, and the tokens generated after it."""

    ids: tuple[int, ...] = ()
    prompt_length: int = 0

    @classmethod
    def at(cls, ids: Sequence[int], step: int) -> Past:
        """The past of step ``step`` of a run, which has read ``ids``: one token a step."""
        return cls(tuple(ids), len(ids) - step)

    @property
    def generated(self) -> tuple[int, ...]:
        return self.ids[self.prompt_length :]
