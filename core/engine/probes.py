"""Questions to the weights themselves: embeddings, unembedding, positions, parts, gradients.

A mixin of :class:`core.engine.local.LocalEngine`. What runs a matrix product holds the
model's lock; the answers are NumPy arrays, as everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from core.edits.pack import Packed
from core.engine.arrays import numpy_of
from core.engine.inside import inside
from core.engine.traced import Parts
from core.engine.work import ModelLock
from core.faults import Fault
from core.model_info import ModelInfo, Part, Rope

ATTRIBUTION_LIMIT: Final = 512
"""Most tokens of an attribution: its gradient keeps every layer's maps in memory at once."""
_LAYER: Final = re.compile(r"\.(?:layers|h|blocks)\.(\d+)\.")


class Probes:
    """What can be asked of a model without choosing a token."""

    _model: Any
    _info: ModelInfo
    _parts: Parts
    _lock: ModelLock

    def unembed(
        self, hidden: Float[np.ndarray, "row width"]
    ) -> Float[np.ndarray, "row vocabulary"]:
        if self._parts.norm is None:
            raise Fault("norm_not_readable", architecture=self._info.architecture)
        with self._lock, torch.inference_mode():
            logits = self._parts.head(self._parts.norm(self._tensor(hidden))).float()
            cap = self._parts.softcap
            return numpy_of(logits if cap is None else torch.tanh(logits / cap) * cap)

    def project(
        self, vectors: Float[np.ndarray, "row width"]
    ) -> Float[np.ndarray, "row vocabulary"]:
        with self._lock, torch.inference_mode():
            head: Any = self._parts.head
            return numpy_of(self._tensor(vectors) @ head.weight.T)

    def embeddings(self, ids: Sequence[int]) -> Float[np.ndarray, "token width"]:
        return numpy_of(self._table[self._known(ids)])

    def neighbours(
        self, vector: Float[np.ndarray, " width"], n: int
    ) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        with self._lock, torch.inference_mode():
            query = self._tensor(vector).float()
            products = (self._table @ query.to(self._table.dtype)).float()
            cosines = products / (self._lengths * query.norm()).clamp_min(1e-12)
            near = numpy_of(cosines).astype(np.float64)
        n = min(n, near.size)
        pool = np.argpartition(-near, n - 1)[:n]
        best = pool[np.lexsort((pool, -near[pool]))]
        return best, near[best]

    def neuron_outputs(
        self, layer: int, neurons: Sequence[int]
    ) -> Float[np.ndarray, "neuron width"]:
        down = inside(self._parts.layers[self._a_layer(layer)]).down
        if down is None:
            raise Fault("neurons_not_readable", architecture=self._info.architecture)
        weight: Any = down.weight
        # GPT-2 stores its matrices the other way round.
        rows = weight if type(down).__name__ == "Conv1D" else weight.T
        wrong = [i for i in neurons if not 0 <= i < rows.shape[0]]
        if wrong:
            raise Fault("no_such_neuron", neuron=wrong[0], last=rows.shape[0] - 1)
        return numpy_of(rows[list(neurons)])

    def attribution(
        self, ids: Sequence[int], target: int, *, steps: int = 1
    ) -> Float[np.ndarray, " token"]:
        known = self._known(ids)
        self._known([target])
        if not 1 <= len(known) <= ATTRIBUTION_LIMIT:
            raise Fault("attribution_too_long", tokens=len(known), limit=ATTRIBUTION_LIMIT)
        with self._lock, torch.enable_grad():
            embed = self._model.get_input_embeddings()
            inputs = embed(torch.tensor([known], device=self._model.device)).detach()
            total = torch.zeros_like(inputs)
            # The midpoints of `steps` equal stretches of the way from zero; one step: the end.
            ends = [1.0] if steps == 1 else [(i + 0.5) / steps for i in range(steps)]
            for share in ends:
                point = (inputs * share).requires_grad_()
                output = self._model(inputs_embeds=point, use_cache=False, logits_to_keep=1)
                (gradient,) = torch.autograd.grad(output.logits[0, -1, target], point)
                total += gradient
            return numpy_of((inputs * total / len(ends)).sum(-1)[0])

    def rope(self, layer: int) -> Rope | None:
        kind = self._layer_kind(layer)
        for module in self._parts.base.modules():
            if "Rotary" not in type(module).__name__:
                continue
            own: Any = module
            name = "inv_freq" if hasattr(own, "inv_freq") else f"{kind}_inv_freq"
            if not hasattr(own, name):
                continue
            frequencies = numpy_of(getattr(own, name))
            prefix = name.removesuffix("inv_freq")
            rope_type = getattr(own, "rope_type", "default")
            return Rope(
                frequencies=frequencies,
                dims=2 * frequencies.size,
                layout="pairs" if "GPTJ" in self._info.architecture else "halves",
                scaling=float(getattr(own, f"{prefix}attention_scaling", 1.0)),
                kind=rope_type.get(kind, "default") if isinstance(rope_type, dict) else rope_type,
            )
        return None

    def position_table(
        self, positions: Sequence[int]
    ) -> Float[np.ndarray, "position width"] | None:
        for name in ("wpe", "embed_positions"):
            table: Any = getattr(self._parts.base, name, None)
            if isinstance(table, nn.Embedding):
                offset = table.weight.shape[0] - self._info.context
                return numpy_of(table.weight[[p + max(offset, 0) for p in positions]])
        return None

    def window(self, layer: int) -> int | None:
        config = self._model.config.get_text_config()
        size = getattr(config, "sliding_window", None)
        kind = self._layer_kind(layer)
        if size is None or (kind is not None and kind != "sliding_attention"):
            return None
        return int(size) if kind or getattr(config, "use_sliding_window", True) else None

    def anatomy(self) -> tuple[Part, ...]:
        found: list[Part] = []
        counted: set[int] = set()
        for name, module in self._model.named_modules():
            weights = []
            if isinstance(module, Packed):
                shape = (module.out_features, module.in_features)
                weights.append(("weight", shape, 0 if module.copied else shape[0] * shape[1]))
            for own, tensor in module.named_parameters(recurse=False, remove_duplicate=False):
                count = 0 if id(tensor) in counted else tensor.numel()
                counted.add(id(tensor))
                weights.append((own, tuple(tensor.shape), count))
            if weights:
                match = _LAYER.search(f".{name}.")
                layer = int(match.group(1)) if match else None
                found.append(Part(name, type(module).__name__, tuple(weights), layer))
        return tuple(found)

    def _a_layer(self, layer: int) -> int:
        if not 0 <= layer < self._info.layers:
            raise Fault("no_such_layer", layer=layer, last=self._info.layers - 1)
        return layer

    def _layer_kind(self, layer: int) -> str | None:
        kinds = getattr(self._model.config.get_text_config(), "layer_types", None)
        return kinds[self._a_layer(layer)] if kinds else None

    def _known(self, ids: Sequence[int]) -> list[int]:
        wrong = [i for i in ids if not 0 <= i < self._info.vocabulary]
        if wrong:
            raise Fault("unknown_token", id=wrong[0], limit=self._info.vocabulary - 1)
        return list(ids)

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.array(array)).to(self._model.device, self._model.dtype)

    @property
    def _table(self) -> Tensor:
        table: Tensor = self._model.get_input_embeddings().weight.detach()
        return table

    @cached_property
    def _lengths(self) -> Tensor:
        lengths: Tensor = self._table.float().norm(dim=-1)
        return lengths
