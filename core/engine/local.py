"""The engine in this process: transformers' own model, read while it runs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import DynamicCache

from core.engine.cost import fitting_capture
from core.engine.memory import ByteLRU, Ids, PrefixCache
from core.engine.traced import Recorder, instrument, parts_of, recording
from core.faults import Fault
from core.models.load import LoadedModel
from core.tokens import Vocabulary
from core.trace import Capture, Forward, ModelInfo

MEMO_BYTES: Final = int(os.environ.get("TOKEN_BY_TOKEN_MEMO_MB", "768")) * 1_000_000
KV_BYTES: Final = int(os.environ.get("TOKEN_BY_TOKEN_KV_MB", "512")) * 1_000_000
PLAIN: Final = Capture(attention=False)


class LocalEngine:
    """See :class:`core.engine.protocol.Engine`.

    One lock a model: hooks and the attention function see one forward pass at a time.
    Forwards are remembered for all users, so asking again costs nothing.
    """

    def __init__(
        self, loaded: LoadedModel, *, memo_bytes: int = MEMO_BYTES, kv_bytes: int = KV_BYTES
    ) -> None:
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
        self._lock = threading.Lock()
        self._memo: ByteLRU[tuple[int, Ids, Capture], Forward] = ByteLRU(memo_bytes)
        self._prefixes = PrefixCache(kv_bytes)

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def bytes_remembered(self) -> int:
        """Forwards and KV caches now held, in bytes."""
        return self._memo.used + self._prefixes.used

    def forward(
        self,
        ids: Sequence[int],
        *,
        prompt_length: int | None = None,
        capture: Capture = Capture(),
    ) -> Forward:
        path = self._checked(ids)
        prompt = len(path) if prompt_length is None else prompt_length
        if not 1 <= prompt <= len(path):
            raise ValueError(f"prompt_length must be 1 … {len(path)}, not {prompt}")
        start = 0 if prompt == len(path) else len(path) - 1
        capture = fitting_capture(self._info, start, len(path), capture)
        key = (prompt, path, capture)
        found = self._memo.get(key)
        if found is not None:
            return found
        with self._lock:
            # Somebody else may have computed it while this thread waited.
            found = self._memo.get(key)
            if found is None:
                found = self._read(path, prompt, start, capture)
                self._memo.put(key, found, found.nbytes)
        return found

    def next_logits(
        self, prefixes: Sequence[Sequence[int]]
    ) -> Float[np.ndarray, "batch vocabulary"]:
        return np.stack([self.forward(ids, capture=PLAIN).logits for ids in prefixes])

    def unembed(
        self, hidden: Float[np.ndarray, "row width"]
    ) -> Float[np.ndarray, "row vocabulary"]:
        if self._parts.norm is None:
            raise Fault("norm_not_readable", architecture=self._info.architecture)
        with self._lock, torch.inference_mode():
            rows = torch.from_numpy(np.array(hidden)).to(self._model.device, self._model.dtype)
            logits = self._parts.head(self._parts.norm(rows)).float()
            cap = self._parts.softcap
            return _numpy(logits if cap is None else torch.tanh(logits / cap) * cap)

    def _checked(self, ids: Sequence[int]) -> Ids:
        path = tuple(map(int, ids))
        if not path:
            raise Fault("empty_prompt")
        if len(path) > self._info.context:
            raise Fault("context_full", tokens=len(path), limit=self._info.context)
        wrong = [i for i in path if not 0 <= i < self._info.vocabulary]
        if wrong:
            raise Fault("unknown_token", id=wrong[0], limit=self._info.vocabulary - 1)
        return path

    def _read(self, path: Ids, prompt: int, start: int, capture: Capture) -> Forward:
        """Compute under the lock: catch up with ``path[:start]``, then record the rest."""
        with torch.inference_mode():
            cached, cache = self._caught_up(path[:start], prompt)
            began = time.perf_counter()
            with recording(Recorder(capture)) as recorder:
                logits = self._run(path[start:], cache)
            arrays = _arrays(recorder, self._info.layers)
            forward = Forward(
                ids=path,
                start=start,
                logits=_numpy(logits),
                cached=cached,
                ms=(time.perf_counter() - began) * 1000,
                **arrays,
            )
        self._prefixes.store(prompt, path, cache)
        return forward

    def _caught_up(self, path: Ids, prompt: int) -> tuple[int, DynamicCache]:
        """A KV cache of ``path``, and how many of its positions were remembered.

        What is missing is read the way a run reads it: the prompt at once, then one by one.
        """
        if not path:
            return 0, DynamicCache(config=self._model.config)
        known, cache = self._prefixes.longest(prompt, path)
        if cache is None:
            cache = DynamicCache(config=self._model.config)
        done = known
        for stop in range(max(prompt, known + 1), len(path) + 1):
            self._run(path[done:stop], cache)
            done = stop
        return known, cache

    def _run(self, new: Ids, cache: DynamicCache) -> Tensor:
        ids = torch.tensor([new], device=self._model.device)
        output = self._model(ids, cache=cache, use_cache=True, logits_to_keep=1)
        logits: Tensor = output.logits[0, -1]
        return logits


def _numpy(tensor: Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().float().cpu().numpy()
    array.setflags(write=False)
    return array


def _stacked(tensors: dict[int, Tensor], layers: int, *, pad: int = 0) -> np.ndarray | None:
    """All layers as one array, or ``None`` where not every layer was heard.

    Sliding windows give fewer key positions: ``pad`` names the dimension (from the end,
    1-based) that is filled with zeros on the left.
    """
    if not tensors or len(tensors) != layers:
        return None
    rows = [tensors[layer] for layer in range(layers)]
    if pad:
        most = max(row.shape[-pad] for row in rows)
        rows = [_padded(row, most - row.shape[-pad], pad) for row in rows]
    return _numpy(torch.stack(rows))


def _padded(row: Tensor, missing: int, dimension: int) -> Tensor:
    if missing == 0:
        return row
    return torch.nn.functional.pad(row, (0, 0) * (dimension - 1) + (missing, 0))


def _arrays(recorder: Recorder, layers: int) -> dict[str, Any]:
    residual = _stacked(recorder.residual, layers)
    if recorder.embedding is None or residual is None or recorder.normed is None:
        raise RuntimeError("the hooks did not hear every layer")
    return {
        "embedding": _numpy(recorder.embedding),
        "residual": residual,
        "normed": _numpy(recorder.normed),
        "attention": _stacked(recorder.attention, layers, pad=1),
        "scores": _stacked(recorder.scores, layers, pad=1),
        "queries": _stacked(recorder.queries, layers),
        "keys": _stacked(recorder.keys, layers, pad=2),
        "values": _stacked(recorder.values, layers, pad=2),
    }
