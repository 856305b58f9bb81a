"""The one interface between the pages and whatever computes.

An engine is a pure function with a memory: the same ids give the same numbers to the bit,
whatever it was asked before, and no caller ever holds a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Float

from core.tokens import Vocabulary
from core.trace import Capture, Forward, ModelInfo


class Engine(Protocol):
    @property
    def info(self) -> ModelInfo: ...

    @property
    def vocabulary(self) -> Vocabulary: ...

    def forward(
        self,
        ids: Sequence[int],
        *,
        prompt_length: int | None = None,
        capture: Capture = Capture(),
    ) -> Forward:
        """Read ``ids``; return the rows of the new positions and the next-token logits.

        The first ``prompt_length`` positions (default: all) are read at once, the later
        ones one by one. So rows are those of the whole prompt when ``ids`` is the prompt,
        and of the last position otherwise. Keeping the two apart makes a run reproducible
        to the bit: a prefix computed along another path differs in the last digits.

        Raises Fault when ``ids`` is empty, too long for the model, or out of the vocabulary.
        """

    def next_logits(
        self, prefixes: Sequence[Sequence[int]]
    ) -> Float[np.ndarray, "batch vocabulary"]:
        """Next-token logits after each prefix; a prefix never depends on its neighbours."""

    def unembed(
        self, hidden: Float[np.ndarray, "row width"]
    ) -> Float[np.ndarray, "row vocabulary"]:
        """Final norm and LM head applied to vectors of the residual stream (the logit lens)."""
