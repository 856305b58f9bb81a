"""A stage of a pipeline: some neighbouring layers, and what stands at an end of the model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from core.lab.parallel.group import Group, Watch
from core.lab.parallel.skeleton import Slices, empty_model, fill, held_bytes, process_bytes


class StageTask:
    """See :class:`core.lab.parallel.worker.Task`."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self._group = Group(spec)
        self._first = self._group.rank == 0
        self._last = self._group.rank == self._group.ranks - 1
        self._model: Any = None

    def do(self, what: str, asked: dict[str, Any]) -> dict[str, Any]:
        with torch.inference_mode():
            if what == "load":
                return self._load()
            if what == "run":
                return self._run(asked["ids"], int(asked["micro_batches"]), asked.get("keep"))
        raise ValueError(what)

    def _load(self) -> dict[str, Any]:
        began = time.perf_counter()
        group, folder = self._group, Path(self._spec["folder"])
        first, end = self._spec["layers"]
        self._model = model = empty_model(folder, group.dtype)
        base = model.model
        with Slices(folder, group.dtype, group.device) as slices:
            for index in range(first, end):
                fill(base.layers[index], f"model.layers.{index}.", slices)
            if self._first:
                fill(base.embed_tokens, "model.embed_tokens.", slices)
            if self._last:
                fill(base.norm, "model.norm.", slices)
                self._fill_head(slices)
        base.layers = nn.ModuleList(base.layers[first:end])
        # transformers' own loop goes over these two.
        base.config.num_hidden_layers = end - first
        kinds = getattr(base.config, "layer_types", None)
        if kinds:
            base.config.layer_types = list(kinds[first:end])
        if not self._last:
            base.norm = nn.Identity()
        _move(model, group.device)
        return {
            "ms": 1000 * (time.perf_counter() - began),
            "weights": held_bytes(model),
            "threads": torch.get_num_threads(),
            "process": process_bytes(),
        }

    def _fill_head(self, slices: Slices) -> None:
        model = self._model
        if not model.config.tie_word_embeddings and "lm_head.weight" in slices:
            fill(model.lm_head, "lm_head.", slices)
            return
        # A tied table is needed at both ends; where this is not the first stage, once more.
        table = model.model.embed_tokens.weight
        model.lm_head.weight = slices.whole("model.embed_tokens.weight") if table.is_meta else table

    def _run(self, rows: list[list[int]], count: int, keep: list[int] | None) -> dict[str, Any]:
        """One batch [text, position], in so many micro-batches; when each was worked on.

        ``keep``: positions whose logits are written down by the last stage.
        """
        group = self._group
        pieces = torch.tensor(rows, device=group.device).chunk(count)
        handed: list[Any] = []
        bars: list[list[float]] = []
        kept: list[np.ndarray] = []
        group.barrier()
        with Watch(group) as watch:
            for ids in pieces:
                hidden = None if self._first else self._receive(ids)
                began = time.perf_counter()
                out = self._compute(ids, hidden)
                group.settle()
                bars.append([began, time.perf_counter()])
                if not self._last:
                    with group.sending("activations"):
                        handed.append((dist.isend(out, group.rank + 1), out))
                elif keep is not None:
                    kept.append(out[:, keep].float().cpu().numpy())
            for work, _ in handed:
                work.wait()
        if kept:
            np.savez(Path(self._spec["out"]) / "logits.npz", logits=np.concatenate(kept))
        return {"bars": bars, "seen": watch.seen}

    def _receive(self, ids: Tensor) -> Tensor:
        """What the stage before has made of these texts: [text, position, width]."""
        width = self._model.config.get_text_config().hidden_size
        found = torch.empty(*ids.shape, width, dtype=self._group.dtype, device=self._group.device)
        dist.recv(found, self._group.rank - 1)
        return found

    def _compute(self, ids: Tensor, hidden: Tensor | None) -> Tensor:
        given = {"input_ids": ids} if hidden is None else {"inputs_embeds": hidden}
        if self._last:
            output = self._model(**given, use_cache=False)
            logits: Tensor = output.logits
            return logits
        stream: Tensor = self._model.model(**given, use_cache=False)[0]
        return stream.contiguous()


def _move(model: nn.Module, device: torch.device) -> None:
    """Only what has memory; the rest of the skeleton belongs to other stages."""
    for module in model.modules():
        for name, buffer in list(module.named_buffers(recurse=False)):
            if not buffer.is_meta:
                setattr(module, name, buffer.to(device))
