"""What is known of a model: for labels, for estimates, and for looking inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float

WITHOUT_ATTENTION: Final = frozenset({"conv", "linear_attention", "mamba", "moe"})
"""Kinds of layers that compute no attention weights."""


@dataclass(frozen=True, eq=False)
class Rope:
    """Rotary position embedding of one layer (Su et al. 2021).

    Dimension pair i of a query or key at position p is rotated by p · frequencies[i] radians;
    dimensions from ``dims`` on are left alone.
    """

    frequencies: Float[np.ndarray, " pair"]
    """Radians a position."""
    dims: int
    """Rotated dimensions: twice the number of pairs."""
    layout: Literal["halves", "pairs"]
    """Pair i is (i, i + dims/2), or (2i, 2i + 1)."""
    scaling: float = 1.0
    """Factor on the rotated vectors (YaRN and the like)."""
    kind: str = "default"


@dataclass(frozen=True)
class Part:
    """One module that owns parameters."""

    name: str
    """Its path in the model: ``model.layers.0.self_attn.q_proj``."""
    kind: str
    """Its class: ``Linear``, ``LlamaRMSNorm``."""
    weights: tuple[tuple[str, tuple[int, ...], int], ...]
    """(name, shape, number of values); a tied weight counts 0 the second time."""
    layer: int | None

    @property
    def parameters(self) -> int:
        return sum(count for _, _, count in self.weights)


@dataclass(frozen=True)
class ModelInfo:
    """What is known of a loaded model, for labels and for cost estimates."""

    name: str
    """Catalogue name, hub id, or the last part of a local path."""
    architecture: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    width: int
    vocabulary: int
    context: int
    """Most positions that the model was built for."""
    parameters: int
    bytes_in_memory: int
    device: str
    dtype: str
    end_ids: tuple[int, ...]
    chat: bool = False
    """Whether the model comes with a chat template."""
    intermediate: int = 0
    """Neurons of a feed-forward part; 0 if the model has none or they differ."""
    activation: str = ""
    gated: bool = False
    """Whether a gate multiplies the neurons (SwiGLU, GeGLU)."""
    norm: Literal["RMSNorm", "LayerNorm", ""] = ""
    positions: Literal["rope", "learned", "none"] = "none"
    layer_kinds: tuple[str, ...] = ()
    """What each layer mixes positions with, in transformers' words (``full_attention``,
    ``sliding_attention``, ``conv``, ``linear_attention``); ``()``: all with attention."""

    @property
    def without_attention(self) -> tuple[int, ...]:
        """The layers of a hybrid that mix positions with something else."""
        return tuple(i for i, kind in enumerate(self.layer_kinds) if kind in WITHOUT_ATTENTION)

    def attending(self, layer: int) -> int:
        """``layer`` where it has attention, else the nearest one that has."""
        known = set(range(self.layers)) - set(self.without_attention)
        return min(known, key=lambda other: (abs(other - layer), other), default=layer)
