"""The engine in this process: transformers' own model, read while it runs."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from core.engine.arrays import arrays_of, numpy_of
from core.engine.batch import Batches
from core.engine.cost import fitting_capture
from core.engine.inside import listening, skipping
from core.engine.memory import ByteLRU, Ids, PrefixCache
from core.engine.probes import Probes
from core.engine.traced import Recorder, instrument, parts_of, recording, without_heads
from core.engine.work import ModelLock, passed
from core.faults import Fault
from core.limits import megabytes
from core.model_info import ModelInfo
from core.models.load import LoadedModel
from core.tokens import Vocabulary
from core.trace import Capture, Edit, Forward

PLAIN: Final = Capture(attention=False)


def _check_prompt_length(path: Ids, prompt_length: int | None) -> None:
    if prompt_length is not None and not 1 <= prompt_length <= len(path):
        raise ValueError(f"prompt_length must be 1 … {len(path)}, not {prompt_length}")


class LocalEngine(Probes):
    """See :class:`core.engine.protocol.Engine`.

    One lock a model: hooks and the attention function see one forward pass at a time.
    Forwards are remembered for all users, so asking again costs nothing.
    """

    def __init__(
        self, loaded: LoadedModel, *, memo_bytes: int | None = None, kv_bytes: int | None = None
    ) -> None:
        memo = megabytes("TOKEN_BY_TOKEN_MEMO_MB", 768) if memo_bytes is None else memo_bytes
        kv = megabytes("TOKEN_BY_TOKEN_KV_MB", 512) if kv_bytes is None else kv_bytes
        self._model = loaded.model
        self._info = loaded.info
        self._vocabulary = Vocabulary(
            loaded.tokenizer,
            size=loaded.info.vocabulary,
            end_ids=loaded.info.end_ids,
            chat_template=loaded.chat_template,
        )
        parts = parts_of(self._model, self._info.layers)
        if parts is None:
            raise Fault("layers_not_readable", architecture=self._info.architecture)
        self._parts = parts
        instrument(self._model, parts)
        self._lock = ModelLock()
        share = memo // 8
        self._memo: ByteLRU[tuple[tuple[int, Edit], Ids, Capture], Forward] = ByteLRU(memo - share)
        self._prefixes = PrefixCache(kv // 2)
        self._batches = Batches(
            self._model,
            self._info,
            self._lock,
            single=self._logits_of,
            cache_of=self._cache_of,
            stack_bytes=kv // 2,
            answer_bytes=share,
        )

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @contextmanager
    def borrowed(self) -> Iterator[PreTrainedModel]:
        """The model itself, for an experiment, in this thread alone.

        Everybody else waits meanwhile, so it is borrowed for one pass at a time, and left
        exactly as it was found.
        """
        with self._lock, torch.inference_mode():
            yield self._model

    @property
    def bytes_remembered(self) -> int:
        """Forwards, logits of batches and KV caches now held, in bytes."""
        return self._memo.used + self._prefixes.used + self._batches.used

    def forward(
        self,
        ids: Sequence[int],
        *,
        prompt_length: int | None = None,
        capture: Capture = Capture(),
        edit: Edit = Edit(),
    ) -> Forward:
        path = self._checked(ids)
        _check_prompt_length(path, prompt_length)
        prompt = len(path) if prompt_length is None else prompt_length
        start = 0 if prompt == len(path) else len(path) - 1
        capture = fitting_capture(self._info, start, len(path), capture)
        key = ((prompt, edit), path, capture)
        found = self._memo.get(key)
        if found is not None:
            return found
        with self._lock:
            # Somebody else may have computed it while this thread waited.
            found = self._memo.get(key)
            if found is None:
                self._check_edit(edit, capture)
                with self._edited(edit):
                    found = self._read(path, (prompt, edit), start, capture)
                self._memo.put(key, found, found.nbytes)
        return found

    def next_logits(
        self,
        prefixes: Sequence[Sequence[int]],
        *,
        prompt_length: int | None = None,
        run: Hashable = None,
    ) -> Float[np.ndarray, "batch vocabulary"]:
        paths = [self._checked(ids) for ids in prefixes]
        for path in paths:
            _check_prompt_length(path, prompt_length)
        place = {path: index for index, path in enumerate(dict.fromkeys(paths))}
        if not place:
            return np.zeros((0, self._info.vocabulary), dtype=np.float32)
        rows = self._batches.read(tuple(place), prompt_length, run)
        if len(place) == len(paths):
            return rows
        if len(place) == 1:
            return np.broadcast_to(rows[0], (len(paths), rows.shape[1]))
        return rows[[place[path] for path in paths]]

    def _logits_of(self, path: Ids, prompt: int) -> Float[np.ndarray, " vocabulary"]:
        """Next-token logits of one text, whatever else was captured when it was read."""
        for capture in (PLAIN, Capture()):
            found = self._memo.get(((prompt, Edit()), path, capture))
            if found is not None:
                return found.logits
        return self.forward(path, prompt_length=prompt, capture=PLAIN).logits

    def _cache_of(self, path: Ids, prompt: int) -> DynamicCache:
        """Keys and values of one text, read as a run reads it; they must not be written to."""
        route = (prompt, Edit())
        with self._lock, torch.inference_mode():
            known, cache = self._caught_up(path, route)
            if known < len(path):
                self._prefixes.store(route, path, cache)
        return cache

    def keys_values(self, ids: Sequence[int], *, prompt_length: int | None = None) -> DynamicCache:
        """The KV cache of a run that has read ``ids``; never to be written to. Raises like
        ``forward``."""
        path = self._checked(ids)
        _check_prompt_length(path, prompt_length)
        return self._cache_of(path, len(path) if prompt_length is None else prompt_length)

    def _checked(self, ids: Sequence[int]) -> Ids:
        path = tuple(map(int, ids))
        if not path:
            raise Fault("empty_prompt")
        if len(path) > self._info.context:
            raise Fault("context_full", tokens=len(path), limit=self._info.context)
        if min(path) < 0 or max(path) >= self._info.vocabulary:
            wrong = next(i for i in path if not 0 <= i < self._info.vocabulary)
            raise Fault("unknown_token", id=wrong, limit=self._info.vocabulary - 1)
        return path

    def _check_edit(self, edit: Edit, capture: Capture) -> None:
        layers = [*edit.layers_off, *(layer for layer, _ in edit.heads_off)]
        layers += [] if capture.layer is None else [capture.layer]
        for layer in layers:
            if not 0 <= layer < self._info.layers:
                raise Fault("no_such_layer", layer=layer, last=self._info.layers - 1)
        for _, head in edit.heads_off:
            if not 0 <= head < self._info.heads:
                raise Fault("no_such_head", head=head, last=self._info.heads - 1)

    @contextmanager
    def _edited(self, edit: Edit) -> Iterator[None]:
        """The model as ``edit`` wants it, in this thread and under the lock."""
        with ExitStack() as changes:
            if edit.heads_off:
                changes.enter_context(without_heads(edit.heads_off))
            if edit.layers_off:
                changes.enter_context(skipping(self._parts, edit.layers_off))
            yield

    def _read(self, path: Ids, route: tuple[int, Edit], start: int, capture: Capture) -> Forward:
        """Compute under the lock: catch up with ``path[:start]``, then record the rest."""
        edit = route[1]
        with torch.inference_mode():
            cached, cache = self._caught_up(path[:start], route)
            began = time.perf_counter()
            with recording(Recorder(capture)) as recorder:
                if capture.parts or capture.neurons:
                    with listening(self._parts, recorder):
                        logits = self._run(path[start:], cache, edit)
                else:
                    logits = self._run(path[start:], cache, edit)
            forward = Forward(
                ids=path,
                start=start,
                logits=numpy_of(logits),
                cached=cached,
                edit=edit,
                ms=(time.perf_counter() - began) * 1000,
                **arrays_of(recorder, self._info.layers, edit),
            )
        self._prefixes.store(route, path, cache)
        return forward

    def _caught_up(self, path: Ids, route: tuple[int, Edit]) -> tuple[int, DynamicCache]:
        """A KV cache of ``path``, and how many of its positions were remembered.

        What is missing is read the way a run reads it: the prompt at once, then one by one.
        """
        if not path:
            return 0, DynamicCache(config=self._model.config)
        known, cache = self._prefixes.longest(route, path)
        if cache is None:
            cache = DynamicCache(config=self._model.config)
        done = known
        for stop in range(max(route[0], known + 1), len(path) + 1):
            self._run(path[done:stop], cache, route[1])
            done = stop
        return known, cache

    def _run(self, new: Ids, cache: DynamicCache, edit: Edit) -> Tensor:
        passed()
        ids = torch.tensor([new], device=self._model.device)
        places = {}
        if edit.positions == "none":
            # With a mask given, repeated positions are not taken for the start of another text.
            whole = torch.ones(1, cache.get_seq_length() + len(new), device=ids.device)
            places = {"position_ids": torch.zeros_like(ids), "attention_mask": whole.long()}
        output = self._model(ids, cache=cache, use_cache=True, logits_to_keep=1, **places)
        logits: Tensor = output.logits[0, -1]
        return logits
