"""Reading a model while it runs: one attention function and a few hooks.

Every causal LM of transformers that uses its attention interface calls the function
registered here with q (after RoPE), k, v, the mask and the scaling, so attention is read
the same way for every architecture. Where nothing listens, it costs a look-up.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, eager_mask

from core.trace import Capture

ATTENTION: Final = "token_by_token"
_FINAL_NORMS: Final = (
    "norm",
    "ln_f",
    "final_layernorm",
    "final_layer_norm",
    "final_norm",
    "norm_f",
    "embedding_norm",  # LFM2: named after the embedding, applied behind the layers
)


@dataclass
class Recorder:
    """What one forward pass leaves behind; tensors stay on the model's device."""

    capture: Capture
    embedding: Tensor | None = None
    residual: dict[int, Tensor] = field(default_factory=dict)
    normed: Tensor | None = None
    attention: dict[int, Tensor] = field(default_factory=dict)
    scores: dict[int, Tensor] = field(default_factory=dict)
    queries: dict[int, Tensor] = field(default_factory=dict)
    keys: dict[int, Tensor] = field(default_factory=dict)
    values: dict[int, Tensor] = field(default_factory=dict)
    middle: dict[int, Tensor] = field(default_factory=dict)
    """The stream between attention and the feed-forward part."""
    beside: dict[int, Tensor] = field(default_factory=dict)
    """Attention's output, where both parts read the same input."""
    neurons: dict[int, Tensor] = field(default_factory=dict)
    gate: dict[int, Tensor] = field(default_factory=dict)
    up: dict[int, Tensor] = field(default_factory=dict)


_listening = threading.local()


@contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Record the forward pass of this thread into ``recorder``."""
    _listening.recorder = recorder
    try:
        yield recorder
    finally:
        _listening.recorder = None


@contextmanager
def without_heads(heads: Sequence[tuple[int, int]]) -> Iterator[None]:
    """In this thread, the outputs of the given (layer, head) are zero."""
    off: dict[int, list[int]] = {}
    for layer, head in heads:
        off.setdefault(layer, []).append(head)
    _listening.heads_off = off
    try:
        yield
    finally:
        _listening.heads_off = {}


def _recorder() -> Recorder | None:
    return getattr(_listening, "recorder", None)


def traced_attention(  # noqa: PLR0917 - the signature is transformers'
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """softmax(q·kᵀ·scaling + mask)·v with an fp32 softmax, each step recorded where asked for.

    Shapes: query [batch, H, Q, d], key and value [batch, G, S, d]; returns the output
    [batch, Q, H, d] and the weights [batch, H, Q, S]. Query heads that share a KV head are
    laid side by side instead of copying the KV head. ``softcap`` and ``s_aux`` (a learned
    sink per head) are the two variants that architectures pass in.
    """
    batch, heads, rows, width = query.shape
    groups, columns = key.shape[1], key.shape[2]
    scale = width**-0.5 if scaling is None else scaling
    folded = query.reshape(batch * groups, heads // groups * rows, width)
    flat_key, flat_value = (x.reshape(batch * groups, columns, width) for x in (key, value))
    scores = torch.bmm(folded, flat_key.transpose(1, 2)).mul_(scale)
    scores = scores.view(batch, heads, rows, columns)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if attention_mask is not None:
        scores = scores + attention_mask[..., :columns]
    if s_aux is None:
        weights = torch.softmax(scores, dim=-1, dtype=torch.float32)
    else:
        sink = s_aux.reshape(1, heads, 1, 1).expand(batch, -1, rows, -1)
        weights = torch.cat([scores, sink.to(scores.dtype)], dim=-1)
        weights = torch.softmax(weights, dim=-1, dtype=torch.float32)[..., :-1]
    mixed = weights.to(query.dtype).reshape(folded.shape[0], folded.shape[1], columns)
    output = torch.bmm(mixed, flat_value).view(batch, heads, rows, width)

    layer = getattr(module, "layer_idx", None)
    off = getattr(_listening, "heads_off", {}).get(layer)
    if off:
        output[:, off] = 0
    recorder = _recorder()
    if recorder is not None and recorder.capture.layer in (None, layer) and layer is not None:
        if recorder.capture.attention:
            recorder.attention[layer] = weights[0]
        if recorder.capture.scores:
            forbidden = torch.finfo(scores.dtype).min
            recorder.scores[layer] = scores[0].masked_fill(scores[0] <= forbidden, -torch.inf)
            recorder.queries[layer], recorder.keys[layer] = query[0], key[0]
            recorder.values[layer] = value[0]
    return output.transpose(1, 2).contiguous(), weights


def traced_mask(
    *, q_length: int, attention_mask: Tensor | None = None, **rest: Any
) -> Tensor | None:
    """The additive mask; ``None`` for a single new position, from which nothing is hidden.

    (A dynamic cache holds only what that position may see: a sliding window is cut already.)
    """
    if q_length == 1 and attention_mask is None:
        return None
    mask: Tensor = eager_mask(q_length=q_length, attention_mask=attention_mask, **rest)
    return mask


AttentionInterface.register(ATTENTION, traced_attention)
AttentionMaskInterface.register(ATTENTION, traced_mask)


@dataclass(frozen=True)
class Parts:
    """The named pieces of an architecture; ``norm`` is ``None`` where it could not be found."""

    base: nn.Module
    layers: nn.ModuleList
    norm: nn.Module | None
    head: nn.Module
    softcap: float | None


def parts_of(model: Any, layers: int) -> Parts | None:
    """Find the decoder's pieces by their structure; ``None`` if there is no layer list."""
    base = model.get_decoder() if hasattr(model, "get_decoder") else model
    for module in [base, *base.modules()]:
        for child in module.children():
            if isinstance(child, nn.ModuleList) and len(child) == layers:
                norm = next((getattr(module, n) for n in _FINAL_NORMS if hasattr(module, n)), None)
                cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
                return Parts(module, child, norm, model.get_output_embeddings(), cap)
    return None


def _hidden(output: Any) -> Tensor:
    hidden: Tensor = output[0] if isinstance(output, tuple) else output
    return hidden


def instrument(model: Any, parts: Parts) -> None:
    """Hook the layers and the base model once; the hooks sleep unless the thread records."""

    def enter(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        recorder = _recorder()
        if recorder is not None:
            recorder.embedding = (args[0] if args else kwargs["hidden_states"])[0]

    def leave(layer: int) -> Any:
        def hook(_: nn.Module, __: Any, output: Any) -> None:
            recorder = _recorder()
            if recorder is not None:
                recorder.residual[layer] = _hidden(output)[0]

        return hook

    def finish(_: nn.Module, __: Any, output: Any) -> None:
        recorder = _recorder()
        if recorder is not None:
            recorder.normed = output[0][0, -1]

    parts.layers[0].register_forward_pre_hook(enter, with_kwargs=True)
    for index, layer in enumerate(parts.layers):
        layer.register_forward_hook(leave(index))
    parts.base.register_forward_hook(finish)
    # An architecture without the interface keeps its own attention: no weights are recorded.
    if hasattr(model, "set_attn_implementation"):
        model.set_attn_implementation(ATTENTION)
