"""A rank of tensor parallelism: its heads, its neurons, its rows of the vocabulary."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import DynamicCache

from core.lab.parallel.deal import Span, deal, deal_heads
from core.lab.parallel.group import Group, Watch
from core.lab.parallel.records import PARTS
from core.lab.parallel.skeleton import Slices, empty_model, fill, held_bytes, process_bytes


class Kept:
    """The partial sums of one pass, and what the all-reduce made of them, at some positions."""

    def __init__(self) -> None:
        self.rows: slice | None = None
        self.partial: dict[tuple[int, str], np.ndarray] = {}
        self.sum: dict[tuple[int, str], np.ndarray] = {}

    def put(self, into: dict[tuple[int, str], np.ndarray], place: Any, found: Tensor) -> None:
        if self.rows is not None:
            # A copy: the all-reduce writes in place.
            into[place] = found[0, self.rows].float().cpu().numpy().copy()

    def stacked(self, found: dict[tuple[int, str], np.ndarray], layers: int) -> np.ndarray:
        """[layer, part, position, width]"""
        return np.stack([np.stack([found[layer, p] for p in PARTS]) for layer in range(layers)])


class Summed(nn.Module):
    """The last projection of a part, cut by columns: each rank's product is one summand."""

    def __init__(
        self, weight: nn.Parameter, bias: nn.Parameter | None, place: tuple[int, str],
        group: Group, kept: Kept,
    ) -> None:  # fmt: skip
        super().__init__()
        self.weight, self.bias = weight, bias
        self._place, self._group, self._kept = place, group, kept

    def forward(self, x: Tensor) -> Tensor:
        """[…, own columns] → […, width], equal on all ranks."""
        out = nn.functional.linear(x, self.weight)
        self._kept.put(self._kept.partial, self._place, out)
        out = self._group.add_up(out, self._place[1])
        if self.bias is not None:
            out = out + self.bias
        self._kept.put(self._kept.sum, self._place, out)
        return out


class Alone(nn.Module):
    """The same projection where every rank computes attention whole: nothing is added up."""

    def __init__(self, inner: nn.Module, place: tuple[int, str], kept: Kept, first: bool) -> None:
        super().__init__()
        self.inner = inner
        self._place, self._kept, self._first = place, kept, first

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x)
        self._kept.put(self._kept.partial, self._place, out if self._first else 0 * out)
        self._kept.put(self._kept.sum, self._place, out)
        return out


class Rows(nn.Module):
    """Embedding matrix cut by rows: a token's vector comes from the rank that has its row."""

    def __init__(self, old: nn.Module, weight: nn.Parameter, span: Span, group: Group) -> None:
        super().__init__()
        self.weight = weight
        self._scale: Tensor | None = getattr(old, "embed_scale", None)
        self._span, self._group = span, group

    def forward(self, ids: Tensor) -> Tensor:
        first, end = self._span
        mine = (ids >= first) & (ids < end)
        found = nn.functional.embedding(torch.where(mine, ids - first, 0), self.weight)
        found = self._group.add_up(found * mine[..., None], "embedding")
        return found if self._scale is None else found * self._scale.to(found)


class Head(nn.Module):
    """LM head cut by rows: every rank scores its part of the vocabulary."""

    def __init__(
        self, weight: nn.Parameter, bias: nn.Parameter | None, sizes: list[int], group: Group
    ) -> None:
        super().__init__()
        self.weight, self.bias = weight, bias
        self._sizes, self._group = sizes, group

    def forward(self, x: Tensor) -> Tensor:
        own = nn.functional.linear(x, self.weight, self.bias)
        return self._group.side_by_side(own, self._sizes, "logits")


class TensorTask:
    """See :class:`core.lab.parallel.worker.Task`."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self._group = Group(spec)
        self._kept = Kept()
        self._model: Any = None
        self._cache: Any = None

    def do(self, what: str, asked: dict[str, Any]) -> dict[str, Any]:
        with torch.inference_mode():
            if what == "load":
                return self._load()
            if what == "prefill":
                return self._prefill(asked["ids"], int(asked["kept"]))
            if what == "step":
                return self._step(int(asked["token"]), bool(asked.get("count")))
        raise ValueError(what)

    def _load(self) -> dict[str, Any]:
        began = time.perf_counter()
        group, folder = self._group, Path(self._spec["folder"])
        self._model = model = empty_model(folder, group.dtype)
        with Slices(folder, group.dtype, group.device) as slices:
            for index, layer in enumerate(model.model.layers):
                self._split_attention(layer.self_attn, index, slices)
                self._split_feed_forward(layer.mlp, index, slices)
            self._split_vocabulary(slices)
            fill(model, "", slices)
        model.to(group.device)
        return {
            "ms": 1000 * (time.perf_counter() - began),
            "weights": held_bytes(model),
            "threads": torch.get_num_threads(),
            "backend": group.backend,
        }

    def _split_attention(self, part: Any, layer: int, slices: Slices) -> None:
        path, group = f"model.layers.{layer}.self_attn.", self._group
        place = (layer, PARTS[0])
        if self._spec["attention"] == "whole":
            fill(part, path, slices)
            part.o_proj = Alone(part.o_proj, place, self._kept, group.rank == 0)
            return
        width = part.head_dim
        heads, kv_heads = (slices.size(f"{path}{n}_proj.weight")[0] // width for n in "qk")
        (a, b), (c, d) = deal_heads(heads, kv_heads, group.ranks)[group.rank]
        for name, span in (("q", (a, b)), ("k", (c, d)), ("v", (c, d))):
            rows = (span[0] * width, span[1] * width)
            _cut_rows(getattr(part, f"{name}_proj"), f"{path}{name}_proj.", rows, slices)
        part.o_proj = self._summed(part.o_proj, f"{path}o_proj.", (a * width, b * width), place,
                                   slices)  # fmt: skip
        part.num_key_value_groups = (b - a) // (d - c)

    def _split_feed_forward(self, part: Any, layer: int, slices: Slices) -> None:
        path, group = f"model.layers.{layer}.mlp.", self._group
        neurons = slices.size(f"{path}down_proj.weight")[1]
        span = deal(neurons, group.ranks)[group.rank]
        for name in ("gate_proj", "up_proj"):
            _cut_rows(getattr(part, name), f"{path}{name}.", span, slices)
        part.down_proj = self._summed(
            part.down_proj, f"{path}down_proj.", span, (layer, PARTS[1]), slices
        )

    def _summed(
        self, old: nn.Module, path: str, span: Span, place: tuple[int, str], slices: Slices
    ) -> Summed:
        bias = slices.whole(f"{path}bias") if old.bias is not None else None
        weight = slices.columns(f"{path}weight", span)
        return Summed(weight, bias, place, self._group, self._kept)

    def _split_vocabulary(self, slices: Slices) -> None:
        model, group = self._model, self._group
        path = "model.embed_tokens.weight"
        spans = deal(slices.size(path)[0], group.ranks)
        table = slices.rows(path, spans[group.rank])
        model.model.embed_tokens = Rows(model.model.embed_tokens, table, spans[group.rank], group)
        weight = table
        if "lm_head.weight" in slices and not model.config.tie_word_embeddings:
            weight = slices.rows("lm_head.weight", spans[group.rank])
        bias = model.lm_head.bias
        if bias is not None:
            bias = slices.rows("lm_head.bias", spans[group.rank])
        model.lm_head = Head(weight, bias, [b - a for a, b in spans], group)

    def _prefill(self, ids: list[int], kept: int) -> dict[str, Any]:
        """Read the prompt twice: watched, with the partial sums kept; then timed."""
        group, layers = self._group, len(self._model.model.layers)
        self._kept.rows = slice(len(ids) - kept, len(ids))
        with Watch(group) as watch:
            logits = self._run(ids, DynamicCache(config=self._model.config))
        self._kept.rows = None
        file = Path(self._spec["out"]) / f"rank{group.rank}.npz"
        found: dict[str, Any] = {"partial": self._kept.stacked(self._kept.partial, layers)}
        if group.rank == 0:
            found["sum"] = self._kept.stacked(self._kept.sum, layers)
            found["logits"] = logits.float().cpu().numpy()
        np.savez(file, **found)
        group.barrier()
        began = time.perf_counter()
        self._cache = DynamicCache(config=self._model.config)
        self._run(ids, self._cache)
        return {
            "ms": 1000 * (time.perf_counter() - began),
            "seen": watch.seen,
            "file": file.name,
        }

    def _step(self, token: int, count: bool) -> dict[str, Any]:
        group = self._group
        group.barrier()
        group.waited = 0.0
        seen: dict[str, list[int]] = {}
        began = time.perf_counter()
        if count:
            with Watch(group) as watch:
                logits = self._run([token], self._cache)
            seen = watch.seen
        else:
            logits = self._run([token], self._cache)
        took = time.perf_counter() - began
        if group.rank == 0:
            np.savez(Path(self._spec["out"]) / "step.npz", logits=logits.float().cpu().numpy())
        return {
            "ms": 1000 * took,
            "waiting": 1000 * group.waited,
            "seen": seen,
            "kv": cache_bytes(self._cache),
            "process": process_bytes(),
        }

    def _run(self, ids: list[int], cache: Any) -> Tensor:
        new = torch.tensor([ids], device=self._group.device)
        output = self._model(new, cache=cache, use_cache=True, logits_to_keep=1)
        logits: Tensor = output.logits[0, -1]
        self._group.settle()
        return logits


def _cut_rows(linear: Any, path: str, span: Span, slices: Slices) -> None:
    linear.weight = slices.rows(f"{path}weight", span)
    if linear.bias is not None:
        linear.bias = slices.rows(f"{path}bias", span)


def cache_bytes(cache: Any) -> int:
    """Bytes of all keys and values."""
    return sum(
        t.numel() * t.element_size() for layer in cache.layers for t in (layer.keys, layer.values)
    )
