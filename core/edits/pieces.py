"""The pieces of a transformers model that an edit takes out or sets to zero, found by their names.

Raises Fault where an architecture has no such piece, or keeps it in another form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from torch import nn

from core.faults import Fault

_ATTENTION: Final = ("self_attn", "attn", "attention", "self_attention")
_OUT: Final = ("o_proj", "out_proj", "dense")
_FEED_FORWARD: Final = ("mlp", "feed_forward", "ffn")
_DOWN: Final = ("down_proj", "fc2", "w2")
_INTO: Final = ("gate_proj", "up_proj", "fc1", "w1", "w3", "gate_up_proj")


@dataclass(frozen=True)
class Attention:
    """The matrices of one layer's attention; ``heads`` and ``kv_heads`` lie side by side."""

    module: Any
    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    out: nn.Linear


@dataclass(frozen=True)
class FeedForward:
    """The matrices of one layer's feed-forward part."""

    module: Any
    into: tuple[nn.Linear, ...]
    """Gate and up, or the only one: a row a neuron; a fused one has two rows a neuron."""
    down: nn.Linear
    """A column a neuron."""


def layers_of(model: Any) -> tuple[Any, str, nn.ModuleList]:
    """(its owner, its name there, the list of all layers)."""
    count = model.config.get_text_config().num_hidden_layers
    base = model.get_decoder() if hasattr(model, "get_decoder") else model
    for module in [base, *base.modules()]:
        for name, child in module.named_children():
            if isinstance(child, nn.ModuleList) and len(child) == count:
                return module, name, child
    raise _missing(model, "layers")


def configs_of(model: Any) -> list[Any]:
    """The configs that describe the layers: the model's own, and the copies that modules keep."""
    own = model.config.get_text_config()
    found = {id(own): own}
    for module in model.modules():
        config = getattr(module, "config", None)
        if isinstance(config, type(own)):
            found[id(config)] = config
    return list(found.values())


def attention_of(model: Any, layer: nn.Module) -> Attention:
    """With one matrix each for queries, keys, values and what the heads write."""
    module = _first(layer, _ATTENTION)
    found = [_first(module, (name,)) for name in ("q_proj", "k_proj", "v_proj")]
    out = _first(module, _OUT)
    query, key, value = found
    if (
        isinstance(query, nn.Linear)
        and isinstance(key, nn.Linear)
        and isinstance(value, nn.Linear)
        and isinstance(out, nn.Linear)
    ):
        return Attention(module, query, key, value, out)
    raise _missing(model, "q_proj, k_proj, v_proj, o_proj")


def out_of(model: Any, layer: nn.Module) -> nn.Linear:
    """The matrix that carries what the heads found into the stream; ``heads`` blocks of columns."""
    found = _first(_first(layer, _ATTENTION), _OUT)
    if isinstance(found, nn.Linear):
        return found
    raise _missing(model, "o_proj")


def feed_forward_of(model: Any, layer: nn.Module) -> FeedForward:
    """With one matrix out of the neurons, and one or two into them."""
    module = _first(layer, _FEED_FORWARD) or layer
    down = _first(module, _DOWN)
    into = [child for name in _INTO if isinstance(child := _first(module, (name,)), nn.Linear)]
    if isinstance(down, nn.Linear) and into and all(_rows(m, down) for m in into):
        return FeedForward(module, tuple(into), down)
    raise _missing(model, "down_proj")


def matrices_in(model: Any) -> Iterator[tuple[str, nn.Linear]]:
    """(name, matrix) of everything in the layers that multiplies by one, in order."""
    owner, name, layers = layers_of(model)
    prefix = next(path for path, module in model.named_modules() if module is owner)
    start = ".".join(filter(None, (prefix, name)))
    found = False
    for path, module in layers.named_modules():
        if isinstance(module, nn.Linear):
            found = True
            yield f"{start}.{path}", module
    if not found:
        raise _missing(model, "nn.Linear")


def _rows(matrix: nn.Linear, down: nn.Linear) -> bool:
    neurons = down.weight.shape[1]
    return matrix.weight.shape[0] in (neurons, 2 * neurons)


def _first(module: Any, names: Sequence[str]) -> Any:
    found = (getattr(module, name, None) for name in names)
    return next((child for child in found if isinstance(child, nn.Module)), None)


def _missing(model: Any, piece: str) -> Fault:
    return Fault("edit_piece_missing", architecture=type(model).__name__, piece=piece)
