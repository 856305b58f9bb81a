"""A model in memory, with what belongs to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

import torch
from tokenizers import Tokenizer
from transformers import PreTrainedModel

from core.edits.pack import Packed
from core.faults import Fault
from core.model_info import ModelInfo

UNBOUNDED: Final = 2048
"""Context of a model whose config names none, such as BLOOM: what it was trained with."""


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """Weights, tokenizer and facts. The model is in eval mode and needs no gradients."""

    model: PreTrainedModel
    tokenizer: Tokenizer
    chat_template: str | None
    """A Jinja template, to be run in a sandbox only."""
    info: ModelInfo


def finish(
    model: Any, tokenizer: Tokenizer, chat_template: str | None, *, name: str
) -> LoadedModel:
    """Freeze a transformers model and read its facts off it."""
    model.eval()
    model.requires_grad_(False)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    settle_end(model)
    return LoadedModel(model, tokenizer, chat_template, describe(model, name, bool(chat_template)))


def settle_end(model: Any) -> None:
    """Let ``generate`` stop where this project stops, when only the config names an end token."""
    settings = model.generation_config
    if settings.eos_token_id is None:
        config = model.config
        settings.eos_token_id = config.eos_token_id or config.get_text_config().eos_token_id


def end_ids(model: Any) -> tuple[int, ...]:
    """The tokens at which ``generate`` stops, sorted: none, one or several."""
    found = model.generation_config.eos_token_id
    if found is None:
        return ()
    return tuple(sorted(found)) if isinstance(found, list | tuple) else (int(found),)


def describe(model: Any, name: str, chat: bool) -> ModelInfo:
    """What the labels and the estimates need to know. Raises Fault for a model without heads."""
    config = model.config.get_text_config()
    heads = getattr(config, "num_attention_heads", None)
    if not isinstance(heads, int):
        # A state space (Mamba) instead of attention.
        raise Fault("layers_not_readable", architecture=type(model).__name__)
    parameters = list(model.parameters())
    first = parameters[0]
    head = model.get_output_embeddings()
    return ModelInfo(
        name=name,
        architecture=(getattr(model.config, "architectures", None) or [type(model).__name__])[0],
        layers=config.num_hidden_layers,
        heads=heads,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
        width=config.hidden_size,
        vocabulary=config.vocab_size if head is None else _rows(head),
        context=_context(config),
        parameters=sum(p.numel() for p in parameters) + _packed(model),
        bytes_in_memory=tensor_bytes([*parameters, *model.buffers()]),
        device=str(first.device),
        dtype=str(first.dtype).removeprefix("torch."),
        end_ids=end_ids(model),
        chat=chat,
        intermediate=_intermediate(config),
        activation=str(
            getattr(config, "hidden_activation", None)
            or getattr(config, "hidden_act", None)
            or getattr(config, "activation_function", "")
        ),
        gated=any(
            name.endswith(("gate_proj", "gate_up_proj")) for name, _ in model.named_modules()
        ),
        norm=_norm(model),
        positions=_positions(model),
        layer_kinds=tuple(getattr(config, "layer_types", None) or ()),
    )


def _rows(head: Any) -> int:
    """Outputs of an LM head, without unpacking its weights."""
    return int(head.out_features if isinstance(head, Packed) else head.weight.shape[0])


def _packed(model: Any) -> int:
    """Weights that are kept as codes, and so are no parameters; copies of others count 0."""
    found = (m for m in model.modules() if isinstance(m, Packed) and not m.copied)
    return sum(module.in_features * module.out_features for module in found)


def _context(config: Any) -> int:
    """Most tokens of a text; ``UNBOUNDED`` where the config sets no limit."""
    names = ("max_position_embeddings", "max_seq_len", "max_sequence_length", "seq_length")
    found = (getattr(config, name, None) for name in names)
    return next((size for size in found if isinstance(size, int) and size > 0), UNBOUNDED)


def _intermediate(config: Any) -> int:
    size = getattr(config, "intermediate_size", None) or getattr(config, "n_inner", None)
    return int(size) if isinstance(size, int) else 4 * int(config.hidden_size)


def _norm(model: Any) -> Literal["RMSNorm", "LayerNorm", ""]:
    kinds = {type(module).__name__ for module in model.modules()}
    if any("RMSNorm" in kind for kind in kinds):
        return "RMSNorm"
    return "LayerNorm" if "LayerNorm" in kinds else ""


def _positions(model: Any) -> Literal["rope", "learned", "none"]:
    if any("Rotary" in type(module).__name__ for module in model.modules()):
        return "rope"
    names = [name.rsplit(".", 1)[-1] for name, _ in model.named_modules()]
    return "learned" if {"wpe", "embed_positions"} & set(names) else "none"


def tensor_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes of memory behind the tensors, shared memory counted once."""
    stores = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    return sum(stores.values())
