"""The size of a transformer from a few whole numbers: parameters, bytes, operations.

Everything here is counting, exact for the architectures it describes: decoder-only models with
grouped-query attention, RoPE and a feed-forward part with or without a gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from core.faults import Fault

MOST: Final = 10**9


@dataclass(frozen=True)
class ModelShape:
    """Raises Fault with one sentence for numbers that make no model."""

    name: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    """Neurons of one feed-forward part (of one expert)."""
    vocabulary: int
    gated: bool = True
    """SwiGLU and its kin: gate, up and down; otherwise up and down."""
    tied: bool = False
    """The LM head is the embedding matrix."""
    experts: int = 1
    active: int = 1
    """Experts that one token goes through."""
    window: int | None = None
    """Positions that a sliding layer sees."""
    sliding_layers: int = 0
    norms: int = 2
    """Norms of width D in a layer."""
    qk_norm: bool = False
    """A norm of head_dim on queries and one on keys."""
    qkv_bias: bool = False
    """A number is added to each value of a query, key and value."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "int" and field.name not in ("sliding_layers", "norms"):
                _whole(field.name, value, 1, MOST)
        _whole("sliding_layers", self.sliding_layers, 0, self.layers)
        _whole("active", self.active, 1, self.experts)
        if self.heads % self.kv_heads:
            raise Fault("heads_do_not_fit", heads=self.heads, kv_heads=self.kv_heads)
        if self.window is not None:
            _whole("window", self.window, 1, MOST)

    # ------------------------------------------------------------ parameters

    @property
    def attention_parameters(self) -> int:
        """Of one layer: q, k, v and o."""
        return 2 * self.width * self.head_dim * (self.heads + self.kv_heads)

    @property
    def expert_parameters(self) -> int:
        """Of one feed-forward part."""
        return (3 if self.gated else 2) * self.width * self.feed_forward

    @property
    def router_parameters(self) -> int:
        """Of one layer: what chooses the experts."""
        return self.width * self.experts if self.experts > 1 else 0

    @property
    def norm_parameters(self) -> int:
        """Of all layers, and of the final norm."""
        each = self.norms * self.width + (2 * self.head_dim if self.qk_norm else 0)
        return self.layers * each + self.width

    @property
    def bias_parameters(self) -> int:
        """Of all layers."""
        each = self.head_dim * (self.heads + 2 * self.kv_heads)
        return self.layers * each if self.qkv_bias else 0

    @property
    def table_parameters(self) -> int:
        """Of the embedding matrix; the LM head has as many."""
        return self.vocabulary * self.width

    @property
    def parameters(self) -> int:
        layer = (
            self.attention_parameters
            + self.experts * self.expert_parameters
            + self.router_parameters
        )
        tables = self.table_parameters * (1 if self.tied else 2)
        return self.layers * layer + self.norm_parameters + self.bias_parameters + tables

    @property
    def active_parameters(self) -> int:
        """Those in the matrix products of one token, the LM head included."""
        layer = (
            self.attention_parameters
            + self.active * self.expert_parameters
            + self.router_parameters
        )
        return self.layers * layer + self.table_parameters

    # ------------------------------------------------------------ a step

    def positions_seen(self, context: int) -> int:
        """Keys that one new token attends to, summed over the layers."""
        near = context if self.window is None else min(context, self.window)
        return self.sliding_layers * near + (self.layers - self.sliding_layers) * context

    def kv_bytes(self, context: int, value_bytes: float) -> float:
        """Keys and values of one text of ``context`` tokens; sliding layers stop growing."""
        return 2 * self.kv_heads * self.head_dim * value_bytes * self.positions_seen(context)

    def attention_flops(self, context: int) -> int:
        """Of one new token: q·k and weights·v, a multiplication and an addition each."""
        return 4 * self.heads * self.head_dim * self.positions_seen(context)

    def decode_flops(self, context: int) -> int:
        """Of one new token after ``context`` - 1 others."""
        return 2 * self.active_parameters + self.attention_flops(context)

    def prefill_flops(self, tokens: int) -> int:
        """Of a whole prompt, with logits of its last position alone."""
        matrices = 2 * (self.active_parameters - self.table_parameters) * tokens
        attention = 4 * self.heads * self.head_dim * self._positions_until(tokens)
        return matrices + attention + 2 * self.table_parameters

    def _positions_until(self, tokens: int) -> int:
        """Keys that all of the first ``tokens`` tokens attend to, summed over the layers."""
        every = tokens * (tokens + 1) // 2
        if self.window is None or tokens <= self.window:
            return self.layers * every
        near = self.window * (self.window + 1) // 2 + (tokens - self.window) * self.window
        return self.sliding_layers * near + (self.layers - self.sliding_layers) * every

    def experts_met(self, tokens: int) -> float:
        """How many different experts of a layer ``tokens`` tokens meet on average, if each
        chooses evenly and on its own."""
        return self.experts * (1 - (1 - self.active / self.experts) ** tokens)


def _whole(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Fault("setting_not_whole", name=name, value=value)
    if not low <= value <= high:
        raise Fault("setting_out_of_range", name=name, value=value, low=low, high=high)


UNGATED: Final = ("gpt2", "phi", "gpt_neox", "opt", "bloom", "starcoder2")
OTHER_PARTS: Final = ("kv_lora_rank", "n_shared_experts", "shared_expert_intermediate_size")
"""Fields of architectures with parts that no number here counts: compressed keys and values,
experts that every token goes through."""
COUNTED: Final = frozenset({"full_attention", "sliding_attention"})


def shape_of(config: Any, name: str) -> ModelShape:
    """The shape that a transformers configuration describes; of one for pictures and text, that
    of its text part.

    Raises Fault for a configuration without the usual fields, or with parts that are not counted.
    """
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    kinds = getattr(config, "layer_types", None) or ()
    kind = str(getattr(config, "model_type", ""))
    if set(kinds) - COUNTED or any(getattr(config, part, None) for part in OTHER_PARTS):
        raise Fault("config_not_counted", architecture=kind)
    heads, width = (_read(config, key) for key in ("num_attention_heads", "hidden_size"))
    layers = _read(config, "num_hidden_layers")
    experts = getattr(config, "num_local_experts", None) or getattr(config, "num_experts", None)
    window, sliding = _sliding(config, kinds, layers)
    return ModelShape(
        name=name,
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_dim=getattr(config, "head_dim", None) or width // heads,
        feed_forward=_feed_forward(config, width, experts),
        vocabulary=_read(config, "vocab_size"),
        gated=kind not in UNGATED,
        tied=bool(getattr(config, "tie_word_embeddings", False)),
        experts=experts or 1,
        active=getattr(config, "num_experts_per_tok", None) or 1,
        window=window,
        sliding_layers=sliding,
        norms=4 if kind.startswith(("gemma2", "gemma3")) else 2,
        qk_norm=kind.startswith(("gemma3", "qwen3")),
        qkv_bias=kind == "qwen2" or bool(getattr(config, "attention_bias", False)),
    )


def _sliding(config: Any, kinds: Sequence[str], layers: int) -> tuple[int | None, int]:
    """(positions that a sliding layer sees, number of sliding layers)."""
    window = getattr(config, "sliding_window", None)
    if not window or not getattr(config, "use_sliding_window", True):
        return None, 0
    count = sum(layer == "sliding_attention" for layer in kinds) if kinds else layers
    return (window, count) if count else (None, 0)


def _read(config: Any, key: str) -> int:
    value = getattr(config, key, None)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Fault("config_without", field=key)
    return value


def _feed_forward(config: Any, width: int, experts: int | None) -> int:
    own = getattr(config, "moe_intermediate_size", None) if experts else None
    return own or getattr(config, "intermediate_size", None) or 4 * width
