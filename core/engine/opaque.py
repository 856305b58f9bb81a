"""Engines whose weights cannot be asked: a table, a stored run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NoReturn

import numpy as np
from jaxtyping import Float, Int

from core.faults import Fault
from core.model_info import Part, Rope


class Opaque:
    """The questions of the protocol to the weights, each answered by ``raise CLOSED(CODE)``."""

    CLOSED: ClassVar[type[Fault]] = Fault
    CODE: ClassVar[str]

    def _refuse(self) -> NoReturn:
        raise self.CLOSED(self.CODE)

    def unembed(
        self, hidden: Float[np.ndarray, "row width"]
    ) -> Float[np.ndarray, "row vocabulary"]:
        self._refuse()

    def project(
        self, vectors: Float[np.ndarray, "row width"]
    ) -> Float[np.ndarray, "row vocabulary"]:
        self._refuse()

    def embeddings(self, ids: Sequence[int]) -> Float[np.ndarray, "token width"]:
        self._refuse()

    def neighbours(
        self, vector: Float[np.ndarray, " width"], n: int
    ) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        self._refuse()

    def neuron_outputs(
        self, layer: int, neurons: Sequence[int]
    ) -> Float[np.ndarray, "neuron width"]:
        self._refuse()

    def attribution(
        self, ids: Sequence[int], target: int, *, steps: int = 1
    ) -> Float[np.ndarray, " token"]:
        self._refuse()

    def rope(self, layer: int) -> Rope | None:
        self._refuse()

    def position_table(
        self, positions: Sequence[int]
    ) -> Float[np.ndarray, "position width"] | None:
        self._refuse()

    def window(self, layer: int) -> int | None:
        self._refuse()

    def anatomy(self) -> tuple[Part, ...]:
        self._refuse()
