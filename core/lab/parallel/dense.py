"""The model in one process, as what the others are compared with."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import DynamicCache

from core.faults import Fault
from core.lab.parallel.checkpoint import check_plain
from core.lab.parallel.records import PARTS

if TYPE_CHECKING:
    from core.engine.local import LocalEngine


def check_stages(engine: LocalEngine) -> None:
    """Raises Fault unless the model is tokens, layers, a norm and a head, as workers cut it."""
    with engine.borrowed() as model:
        check_plain(model)
        fine = _in_line(model)
    if not fine:
        raise Fault("split_architecture", architecture=engine.info.architecture)


def check_layers(engine: LocalEngine) -> None:
    """Raises Fault unless every layer, too, is put together as workers take it apart."""
    with engine.borrowed() as model:
        check_plain(model)
        fine = _in_line(model) and all(map(_plain, model.model.layers))
    if not fine:
        raise Fault("split_architecture", architecture=engine.info.architecture)


def _in_line(model: Any) -> bool:
    base = getattr(model, "model", None)
    names = ("embed_tokens", "layers", "norm")
    # A learned table of positions would be added once more by every stage.
    turned = any("Rotary" in type(module).__name__ for module in model.modules())
    return all(hasattr(base, name) for name in names) and hasattr(model, "lm_head") and turned


def _plain(layer: Any) -> bool:
    """Separate projections without anything across heads, and one feed-forward part."""
    attention, forward = getattr(layer, "self_attn", None), getattr(layer, "mlp", None)
    names = ("q_proj", "k_proj", "v_proj", "o_proj")
    parts = [getattr(attention, name, None) for name in names]
    parts += [getattr(forward, name, None) for name in ("gate_proj", "up_proj", "down_proj")]
    if not all(type(part) is nn.Linear for part in parts):
        return False
    width = getattr(attention, "head_dim", None)
    norms = (getattr(attention, name, None) for name in ("q_norm", "k_norm"))
    if not all(norm is None or norm.weight.numel() == width for norm in norms):
        return False
    # A learned sink is one number a head.
    return not hasattr(attention, "sinks")


class Dense:
    """The model of an engine, step by step, timed. It is borrowed for one pass at a time."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._cache: Any = None

    def prefill(
        self, ids: Sequence[int], kept: int
    ) -> tuple[
        Float[np.ndarray, " vocabulary"], Float[np.ndarray, "layer part position width"], float
    ]:
        """(logits, the outputs of both parts at the last ``kept`` positions, ms without these)."""
        with self._engine.borrowed() as model, _listening(model, kept) as found:
            logits = self._run(model, ids, DynamicCache(config=model.config))
        parts = np.stack(
            [np.stack([found[i, p] for p in PARTS]) for i in range(self._engine.info.layers)]
        )
        with self._engine.borrowed() as model:
            self._cache = DynamicCache(config=model.config)
            began = time.perf_counter()
            self._run(model, ids, self._cache)
            took = 1000 * (time.perf_counter() - began)
        return logits, parts, took

    def step(self, token: int) -> tuple[Float[np.ndarray, " vocabulary"], float]:
        """(logits after one more token, ms)"""
        with self._engine.borrowed() as model:
            began = time.perf_counter()
            logits = self._run(model, [token], self._cache)
            return logits, 1000 * (time.perf_counter() - began)

    def score(
        self, rows: Sequence[Sequence[int]], positions: Sequence[int]
    ) -> tuple[Float[np.ndarray, "text position vocabulary"], float]:
        """(logits of these positions of every text, ms of scoring all positions)"""
        with self._engine.borrowed() as model:
            ids = torch.tensor([list(row) for row in rows], device=model.device)
            began = time.perf_counter()
            logits = model(ids, use_cache=False).logits
            kept: np.ndarray = logits[:, list(positions)].float().cpu().numpy()
            return kept, 1000 * (time.perf_counter() - began)

    @staticmethod
    def _run(model: Any, ids: Sequence[int], cache: Any) -> np.ndarray:
        new = torch.tensor([list(ids)], device=model.device)
        output = model(new, cache=cache, use_cache=True, logits_to_keep=1)
        logits: np.ndarray = output.logits[0, -1].float().cpu().numpy()
        return logits


@contextmanager
def _listening(model: Any, kept: int) -> Iterator[dict[tuple[int, str], np.ndarray]]:
    """What the last projection of each part puts out at the last positions."""
    found: dict[tuple[int, str], np.ndarray] = {}

    def keep(place: tuple[int, str]) -> Any:
        def hook(_: nn.Module, __: Any, out: Tensor) -> None:
            found[place] = out[0, -kept:].float().cpu().numpy().copy()

        return hook

    handles = []
    for index, layer in enumerate(model.model.layers):
        for module, part in zip((layer.self_attn.o_proj, layer.mlp.down_proj), PARTS, strict=True):
            handles.append(module.register_forward_hook(keep((index, part))))
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
