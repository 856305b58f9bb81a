"""The one interface between the pages and whatever computes.

An engine is a pure function with a memory: the same ids give the same numbers to the bit,
whatever it was asked before, and no caller ever holds a cache.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int

from core.model_info import ModelInfo, Part, Rope
from core.tokens import Vocabulary
from core.trace import Capture, Edit, Forward


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
        edit: Edit = Edit(),
    ) -> Forward:
        """Read ``ids``; return the rows of the new positions and the next-token logits.

        The first ``prompt_length`` positions (default: all) are read at once, the later
        ones one by one. So rows are those of the whole prompt when ``ids`` is the prompt,
        and of the last position otherwise. Keeping the two apart makes a run reproducible
        to the bit: a prefix computed along another path differs in the last digits.

        ``edit`` changes the model for this pass alone. Raises Fault when ``ids`` is empty, too
        long for the model, or out of the vocabulary, and for layers or heads it doesn't have.
        """

    def next_logits(
        self,
        prefixes: Sequence[Sequence[int]],
        *,
        prompt_length: int | None = None,
        run: Hashable = None,
    ) -> Float[np.ndarray, "batch vocabulary"]:
        """Next-token logits after each prefix, computed as one batch.

        The first ``prompt_length`` ids of every prefix (default: all of it) are its prompt. A
        prefix never depends on its neighbours by more than rounding (1e-4). ``run`` names
        the question that this batch is a step of: each row is continued from the step
        before, and equal questions give equal numbers to the bit.
        """

    def unembed(
        self, hidden: Float[np.ndarray, "row width"]
    ) -> Float[np.ndarray, "row vocabulary"]:
        """Final norm and LM head applied to vectors of the residual stream (the logit lens)."""

    def project(
        self, vectors: Float[np.ndarray, "row width"]
    ) -> Float[np.ndarray, "row vocabulary"]:
        """The LM head alone: what a vector, added to the stream, promotes and suppresses."""

    def embeddings(self, ids: Sequence[int]) -> Float[np.ndarray, "token width"]:
        """Rows of the embedding matrix, as stored."""

    def neighbours(
        self, vector: Float[np.ndarray, " width"], n: int
    ) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """(ids, cosines) of the ``n`` rows of the embedding matrix closest in direction."""

    def neuron_outputs(
        self, layer: int, neurons: Sequence[int]
    ) -> Float[np.ndarray, "neuron width"]:
        """What each neuron of a feed-forward part writes to the stream per unit of activation."""

    def attribution(
        self, ids: Sequence[int], target: int, *, steps: int = 1
    ) -> Float[np.ndarray, " token"]:
        """Gradient × input of the logit of ``target`` after ``ids``, summed over the width.

        With ``steps`` > 1: integrated gradients from a zero baseline (Sundararajan et al.
        2017), by the midpoint rule.
        """

    def rope(self, layer: int) -> Rope | None:
        """The rotary position embedding of a layer; ``None`` where there is none."""

    def position_table(
        self, positions: Sequence[int]
    ) -> Float[np.ndarray, "position width"] | None:
        """Rows of a learned position table; ``None`` where there is none."""

    def window(self, layer: int) -> int | None:
        """The sliding window of a layer in positions; ``None``: it sees everything before."""

    def anatomy(self) -> tuple[Part, ...]:
        """Every module that owns parameters; their counts sum to ``info.parameters``."""
