"""Many texts read as one batch, step after step (``Engine.next_logits``).

Stacks of keys and values are kept from step to step within a byte budget. Which numbers come
out is a function of the question's batches alone: what was forgotten is read again in the same
way, and whatever depends on size depends on the limits, never on what memory happens to hold.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import DynamicCache

from core.engine.arrays import numpy_of
from core.engine.cost import kv_bytes_per_token
from core.engine.history import Batch, Histories
from core.engine.memory import ByteLRU, Ids
from core.engine.stack import Stack, can_stack, fan, gather
from core.engine.work import ModelLock, passed
from core.model_info import ModelInfo

Logits = Float[np.ndarray, "row vocabulary"]
Single = Callable[[Ids, int], Float[np.ndarray, " vocabulary"]]
"""Next-token logits after a text with a prompt of that length, read for itself."""
CacheOf = Callable[[Ids, int], DynamicCache]
"""Keys and values of such a text, never to be written to."""

WORK: Final = 64_000_000
"""Bytes that one pass may need besides what is kept; more rows are read in several passes."""
MOST_ROWS: Final = 128
"""Of one pass: more are no faster a row."""
SAME: Final = 2e-3
"""How far a batch may differ from single texts before a model is not trusted with batches.
Rounding makes 1e-4; a wrong mask or position makes far more."""


class Batches:
    """The batched half of an engine. ``lock`` is the model's, held for one pass at a time."""

    def __init__(
        self,
        model: Any,
        info: ModelInfo,
        lock: ModelLock,
        *,
        single: Single,
        cache_of: CacheOf,
        stack_bytes: int,
        answer_bytes: int,
    ) -> None:
        self._model, self._info, self._lock = model, info, lock
        self._single, self._cache_of = single, cache_of
        self._limit = stack_bytes
        self._stacks: ByteLRU[Batch, Stack] = ByteLRU(stack_bytes)
        self._answers: ByteLRU[Batch, Logits] = ByteLRU(answer_bytes)
        self._histories = Histories(max(1_000_000, stack_bytes // 16))
        value = torch.empty(0, dtype=model.dtype).element_size()
        self._position = max(1, kv_bytes_per_token(info, value))
        self._takes_places = "position_ids" in inspect.signature(model.forward).parameters
        self._trusted: bool | None = None

    @property
    def used(self) -> int:
        """Bytes of stacks, answers and histories now held."""
        return self._stacks.used + self._answers.used + self._histories.used

    def read(self, rows: tuple[Ids, ...], prompt_length: int | None, run: Hashable) -> Logits:
        """Logits after each of the distinct ``rows``; read-only."""
        batch = self._histories.place(run, prompt_length, rows)
        found = self._answers.get(batch)
        return self._made(batch) if found is None else found

    def trusted(self) -> bool:
        """Whether batches of this model give what single texts give; tried once.

        Not where layers keep states, nor for an architecture with ways of its own: such a
        model reads its rows one by one.
        """
        if self._trusted is None:
            try:
                self._trusted = self._try()
            except Exception:
                logging.getLogger(__name__).exception("%s cannot be batched", self._info.name)
                self._trusted = False
        return self._trusted

    def _try(self) -> bool:
        ids = [i % self._info.vocabulary for i in (3, 5, 7, 11, 13)]
        text, short = tuple(ids[:3]), tuple(ids[3:])
        if not can_stack(self._model.config, self._cache_of(text, len(text))):
            return False
        same = ((*text, ids[3]), (*text, ids[4]))
        for rows, prompt in ((same, 3), ((same[0], short), 1)):
            found, _ = self._pass(Histories(0).place(None, prompt, rows), None)
            alone = np.stack([self._single(row, prompt) for row in rows])
            scale = SAME if self._model.dtype == torch.float32 else 100 * SAME
            if not np.allclose(found, alone, rtol=scale, atol=scale):
                return False
        return True

    def _made(self, batch: Batch) -> Logits:
        """The answer, after reading again what of the question's past was forgotten."""
        todo, stack = [batch], None
        while (before := todo[-1].before) is not None and self._continues(todo[-1]):
            stack = self._stacks.get(before)
            if stack is not None:
                break
            todo.append(before)
        answer: Logits | None = None
        for step in reversed(todo):
            answer, stack = self._step(step, stack, last=step is batch)
        assert answer is not None
        return answer

    def _alone(self, batch: Batch) -> bool:
        """Whether its rows are read one by one: one row, prompts, or too much to hold."""
        if batch.way in ("single", "prompts") or batch.cells * self._position > self._limit:
            return True
        return not self.trusted()

    def _continues(self, batch: Batch) -> bool:
        return batch.way == "next" and not self._alone(batch)

    def _step(
        self, batch: Batch, stack: Stack | None, *, last: bool
    ) -> tuple[Logits, Stack | None]:
        """Read one batch, with the stack of the one before where it continues that one."""
        if self._alone(batch):
            rows = np.stack([self._single(row, batch.prompt_of(row)) for row in batch.rows()])
            rows.setflags(write=False)
            return rows, None
        answer, stack = self._pass(batch, stack, known=self._answers.get if last else None)
        if batch.named and stack is not None:
            if batch.before is not None:
                self._stacks.drop(batch.before)
            self._stacks.put(batch, stack, stack.nbytes)
            self._answers.put(batch, answer, answer.nbytes)
        return answer, stack

    def _pass(
        self,
        batch: Batch,
        stack: Stack | None,
        known: Callable[[Batch], Logits | None] | None = None,
    ) -> tuple[Logits, Stack | None]:
        rows = batch.rows()
        if batch.way == "fan":
            stack, index, start = self._fan(batch, rows)
        elif batch.way == "gather":
            caches = [self._cache_before(row, batch.prompt_of(row)) for row in rows]
            stack, index, start = gather(caches), range(len(rows)), -1
        else:
            assert stack is not None
            assert batch.parents is not None
            index, start = batch.parents.tolist(), -1
        with self._lock, torch.inference_mode():
            # Somebody else may have read it while this thread waited.
            found = known(batch) if known else None
            if found is not None:
                return found, None
            return self._read(stack, index, [row[start:] for row in rows], rows)

    def _fan(self, batch: Batch, rows: Sequence[Ids]) -> tuple[Stack, Sequence[int], int]:
        start = len(rows[0]) - 1 if batch.before else batch.prompt_of(rows[0])
        text = rows[0][:start]
        prompt = min(start, batch.prompt_of(rows[0]))
        return fan(self._cache_of(text, prompt)), [0] * len(rows), start

    def _cache_before(self, row: Ids, prompt: int) -> DynamicCache:
        return self._cache_of(row[:-1], min(prompt, len(row) - 1))

    def _read(
        self, stack: Stack, parents: Sequence[int], new: Sequence[Ids], rows: Sequence[Ids]
    ) -> tuple[Logits, Stack]:
        """The passes of one batch, under the lock: chunk by chunk, each of bounded size."""
        device = self._model.device
        index = torch.tensor(parents, device=device)
        answer = np.empty((len(rows), self._info.vocabulary), dtype=np.float32)
        own = self._position * (stack.length + len(new[0]) - stack.start)
        room = self._limit - stack.bare().nbytes
        kept = max(1, room // own) if stack.pads is None else len(rows)
        caches = []
        size = self._chunk(stack.length + len(new[0]), len(rows))
        for low in range(0, len(rows), size):
            part = slice(low, low + size)
            source, chosen, added = stack, index[part], new[part]
            if max(parents[part]) >= stack.kept:  # beyond what is held: from the shared part on
                source, chosen = stack.bare(), torch.zeros_like(chosen)
                added = [row[stack.start :] for row in rows[part]]
            cache = source.cache(self._model, chosen)
            answer[part] = numpy_of(
                self._logits(cache, added, source.places(chosen, len(added[0])))
            )
            if low < kept:
                caches.append(cache)
        answer.setflags(write=False)
        return answer, stack.grown(caches, index, kept)

    def _chunk(self, length: int, rows: int) -> int:
        """Rows of one pass: all, or as many equal parts as the work in memory allows."""
        layer = length * self._position // max(1, self._info.layers)
        scores = 12 * self._info.heads * length
        most = min(MOST_ROWS, max(1, WORK // (8 * self._info.vocabulary + 2 * layer + scores)))
        return -(-rows // -(-rows // most))

    def _logits(self, cache: DynamicCache, new: Sequence[Ids], places: dict[str, Tensor]) -> Tensor:
        passed()
        if not self._takes_places:
            places.pop("position_ids", None)
        ids = torch.tensor([list(row) for row in new], device=self._model.device)
        with _tall_head(self._model.get_output_embeddings(), len(new)):
            output = self._model(ids, cache=cache, use_cache=True, logits_to_keep=1, **places)
        logits: Tensor = output.logits[:, -1]
        return logits


@contextmanager
def _tall_head(head: Any, rows: int) -> Iterator[None]:
    """For a few rows on a CPU, W·xᵀ instead of x·Wᵀ: the large matrix is then read as it lies,
    which halves the time of the LM head. Under the model's lock."""
    plain = type(head) is torch.nn.Linear and "forward" not in vars(head)
    if not (plain and 1 < rows <= 8 and head.weight.device.type == "cpu"):
        yield
        return

    def forward(hidden: Tensor) -> Tensor:
        found = torch.mm(head.weight, hidden.reshape(-1, hidden.shape[-1]).t()).t()
        found = found if head.bias is None else found + head.bias
        return found.reshape(*hidden.shape[:-1], -1)

    head.forward = forward
    try:
        yield
    finally:
        del head.forward
