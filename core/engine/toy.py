"""A model that is a table: no layers, no weights, and every answer known beforehand.

It serves laws, lessons and tests through the same interface as a real model.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float

from core.engine.opaque import Opaque
from core.engine.toy_table import (
    ToyTable,
    default_table,
    logits_of,
    parse_table,
    read_table,
    toy_from_numbers,
)
from core.engine.toy_words import ToyVocabulary
from core.engine.work import passed
from core.faults import Fault
from core.model_info import ModelInfo
from core.tokens import Vocabulary
from core.trace import Capture, Edit, Forward

__all__ = [
    "ToyEngine",
    "ToyTable",
    "ToyVocabulary",
    "default_table",
    "logits_of",
    "open_toy",
    "parse_table",
    "read_table",
    "toy_from_numbers",
]

CONTEXT: Final = 2048


class ToyEngine(Opaque):
    """See :class:`core.engine.protocol.Engine`.

    Logits are ln p, -inf where p is 0. Only generated tokens count as history: the prompt is
    read and means nothing. Its records hold zero layers of width zero.
    """

    CODE = "toy_no_layers"

    def __init__(self, table: ToyTable, name: str = "toy") -> None:
        self._table = table
        self._vocabulary = ToyVocabulary(table.vocab, table.end_ids)
        rows = table.logits.values()
        self._info = ModelInfo(
            name=name,
            architecture="table",
            layers=0,
            heads=0,
            kv_heads=0,
            head_dim=0,
            width=0,
            vocabulary=len(table.vocab),
            context=CONTEXT,
            parameters=sum(row.size for row in rows),
            bytes_in_memory=sum(row.nbytes for row in rows),
            device="cpu",
            dtype="float64",
            end_ids=table.end_ids,
        )

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    def forward(
        self,
        ids: Sequence[int],
        *,
        prompt_length: int | None = None,
        capture: Capture = Capture(),
        edit: Edit = Edit(),
    ) -> Forward:
        """The row of the table for what was generated after the prompt.

        Raises Fault when there is nothing to read or too much, when a generated token is not
        of the vocabulary, and when the table has no row for the history.
        """
        began = time.perf_counter()
        path = tuple(map(int, ids))
        prompt = len(path) if prompt_length is None else prompt_length
        logits = self._logits(path, prompt)
        start = 0 if prompt == len(path) else len(path) - 1
        new, seen = len(path) - start, len(path)
        maps = np.zeros((0, 0, new, seen))
        none = np.zeros((0, 0, seen, 0))
        return Forward(
            ids=path,
            start=start,
            embedding=np.zeros((new, 0)),
            residual=np.zeros((0, new, 0)),
            normed=np.zeros(0),
            logits=logits,
            attention=maps if capture.attention else None,
            scores=maps if capture.scores else None,
            queries=np.zeros((0, 0, new, 0)) if capture.scores else None,
            keys=none if capture.scores else None,
            values=none if capture.scores else None,
            ms=(time.perf_counter() - began) * 1000,
        )

    def _logits(self, path: tuple[int, ...], prompt: int) -> Float[np.ndarray, " vocabulary"]:
        passed()
        if not path:
            raise Fault("empty_prompt")
        if not 1 <= prompt <= len(path):
            raise ValueError(f"prompt_length must be 1 … {len(path)}, not {prompt}")
        if len(path) > CONTEXT:
            raise Fault("context_full", tokens=len(path), limit=CONTEXT)
        for token in path[:prompt]:
            self._vocabulary.bytes_of(token)
        for token in path[prompt:]:
            if not 0 <= token < self._info.vocabulary:
                raise Fault("unknown_token", id=token, limit=self._info.vocabulary - 1)
        return self._table.row(path[prompt:])

    def next_logits(
        self,
        prefixes: Sequence[Sequence[int]],
        *,
        prompt_length: int | None = None,
        run: Hashable = None,
    ) -> Float[np.ndarray, "batch vocabulary"]:
        """As the protocol has it; ``prompt_length`` says where each history begins."""
        return np.stack(
            [
                self._logits(p, len(p) if prompt_length is None else prompt_length)
                for p in (tuple(map(int, prefix)) for prefix in prefixes)
            ]
        )


def open_toy(path: Path | None = None) -> ToyEngine:
    """The engine of a table file, or of the example that comes with the project.

    Raises Fault as :func:`read_table`.
    """
    if path is None:
        return ToyEngine(default_table())
    return ToyEngine(read_table(path), name=f"toy:{path.name}")
