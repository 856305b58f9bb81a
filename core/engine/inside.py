"""The inside of a layer: where attention ends, where the feed-forward part begins.

Found by the names that transformers' architectures use; the hooks here are set for one
forward pass, under the model's lock, and taken away again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from torch import Tensor, nn

from core.engine.traced import Parts, Recorder

_ATTENTION: Final = ("self_attn", "attn", "attention", "self_attention")
_FEED_FORWARD: Final = ("mlp", "feed_forward", "ffn")
_DOWN: Final = ("down_proj", "c_proj", "fc2", "w2", "dense_4h_to_h")
_GATE: Final = ("gate_proj", "w1")
_UP: Final = ("up_proj", "w3")
_BEFORE_FEED_FORWARD: Final = (
    "pre_feedforward_layernorm",
    "post_attention_layernorm",
    "ln_2",
    "post_attention_norm",
)


@dataclass(frozen=True)
class Inside:
    """The pieces of one layer; ``None`` where an architecture has no such piece."""

    layer: nn.Module
    attention: nn.Module | None
    middle: nn.Module | None
    """Its *input* is the residual stream between the two parts; ``None``: they run side by side."""
    down: nn.Module | None
    gate: nn.Module | None
    up: nn.Module | None
    fused: nn.Module | None
    """One projection that makes gate and up at once."""


def _first(module: nn.Module | None, names: Sequence[str]) -> nn.Module | None:
    found = [getattr(module, name, None) for name in names]
    return next((child for child in found if isinstance(child, nn.Module)), None)


def inside(layer: nn.Module) -> Inside:
    """The pieces of ``layer``."""
    feed_forward = _first(layer, _FEED_FORWARD)
    middle = _first(layer, _BEFORE_FEED_FORWARD)
    if hasattr(layer, "post_feedforward_layernorm") and not hasattr(
        layer, "pre_feedforward_layernorm"
    ):
        # Norms stand behind the parts only (OLMo 2): the feed-forward part reads the bare stream.
        middle = feed_forward
    down = _first(feed_forward, _DOWN)
    return Inside(
        layer=layer,
        attention=_first(layer, _ATTENTION),
        middle=middle,
        down=down,
        gate=_first(feed_forward, _GATE),
        up=_first(feed_forward, _UP),
        fused=_first(feed_forward, ("gate_up_proj",)),
    )


@contextmanager
def listening(parts: Parts, recorder: Recorder) -> Iterator[None]:
    """Record what the capture asks for beyond the stream and the attention weights."""
    capture = recorder.capture
    with ExitStack() as hooks:
        for index, layer in enumerate(parts.layers):
            pieces = inside(layer)
            if capture.parts:
                _hear_parts(hooks, pieces, recorder, index)
            if capture.neurons and capture.layer in (None, index):
                _hear_neurons(hooks, pieces, recorder, index)
        yield


@contextmanager
def skipping(parts: Parts, layers: Sequence[int]) -> Iterator[None]:
    """While this lasts, the given layers pass their input on."""

    def pass_on(_: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        hidden = args[0] if args else kwargs["hidden_states"]
        return (hidden, *output[1:]) if isinstance(output, tuple) else hidden

    with ExitStack() as hooks:
        for index in layers:
            # Before the recorder's own hook, so that the stream is recorded as it is.
            handle = parts.layers[index].register_forward_hook(
                pass_on, with_kwargs=True, prepend=True
            )
            hooks.callback(handle.remove)
        yield


def _before(hooks: ExitStack, module: nn.Module, keep: Callable[[Tensor], None]) -> None:
    def hook(_: nn.Module, args: Any, kwargs: Any) -> None:
        keep((args[0] if args else next(iter(kwargs.values())))[0])

    hooks.callback(module.register_forward_pre_hook(hook, with_kwargs=True).remove)


def _after(hooks: ExitStack, module: nn.Module, keep: Callable[[Tensor], None]) -> None:
    def hook(_: nn.Module, __: Any, output: Any) -> None:
        keep((output[0] if isinstance(output, tuple) else output)[0])

    hooks.callback(module.register_forward_hook(hook).remove)


def _hear_parts(hooks: ExitStack, pieces: Inside, recorder: Recorder, index: int) -> None:
    if pieces.middle is not None:
        _before(hooks, pieces.middle, lambda x: recorder.middle.update({index: x}))
    elif pieces.attention is not None:
        _after(hooks, pieces.attention, lambda x: recorder.beside.update({index: x}))


def _hear_neurons(hooks: ExitStack, pieces: Inside, recorder: Recorder, index: int) -> None:
    if pieces.down is not None:
        _before(hooks, pieces.down, lambda x: recorder.neurons.update({index: x}))
    if pieces.gate is not None and pieces.up is not None:
        _after(hooks, pieces.gate, lambda x: recorder.gate.update({index: x}))
        _after(hooks, pieces.up, lambda x: recorder.up.update({index: x}))
    elif pieces.fused is not None:

        def split(x: Tensor) -> None:
            recorder.gate[index], recorder.up[index] = x.chunk(2, dim=-1)

        _after(hooks, pieces.fused, split)
