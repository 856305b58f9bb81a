"""Random models of a few thousand weights, made in memory: for tests, and for a first look.

Their text is nonsense, but everything about them is real: architecture, attention, caches,
and a byte-level tokenizer that reads any text.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from core.models.loaded import LoadedModel, finish
from core.models.tiny_text import CHAT_TEMPLATE, END, tiny_tokenizer

__all__ = ["ARCHITECTURES", "CHAT_TEMPLATE", "tiny", "tiny_of", "tiny_tokenizer"]

SEED: Final = 20
CONTEXT: Final = 512
_SIZES: Final[dict[str, Any]] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": CONTEXT,
}
_GPT2: Final[dict[str, Any]] = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": CONTEXT}
_GEMMA3: Final[dict[str, Any]] = {
    **_SIZES,
    "head_dim": 16,
    "num_hidden_layers": 3,
    "query_pre_attn_scalar": 16,
    "sliding_window": 8,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
}
ARCHITECTURES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "llama": ("llama", _SIZES),
    "gpt2": ("gpt2", _GPT2),
    "qwen2": ("qwen2", _SIZES),
    "qwen3": ("qwen3", {**_SIZES, "head_dim": 16}),
    "gemma3": ("gemma3_text", _GEMMA3),
    "mistral": ("mistral", {**_SIZES, "sliding_window": None}),
    "phi": ("phi", {**_SIZES, "num_key_value_heads": 4}),
}


def tiny_of(
    architecture: str = "llama",
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> LoadedModel:
    """A random model of that architecture (a key of ``ARCHITECTURES``), always the same one.

    Raises KeyError for another architecture.
    """
    model_type, sizes = ARCHITECTURES[architecture]
    tokenizer = tiny_tokenizer()
    end = tokenizer.token_to_id(END)
    config = AutoConfig.for_model(
        model_type,
        **sizes,
        vocab_size=tokenizer.get_vocab_size(),
        bos_token_id=tokenizer.token_to_id("<|im_start|>"),
        eos_token_id=end,
        pad_token_id=end,
        tie_word_embeddings=False,
        # The usual 0.02 leaves all tokens nearly equally likely: nothing to see or to test.
        initializer_range=0.3,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    model = model.to(device=device, dtype=dtype)
    name = "tiny" if architecture == "llama" else f"tiny-{architecture}"
    return finish(model, tokenizer, CHAT_TEMPLATE, name=name)


def tiny(*, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> LoadedModel:
    """The model ``tiny`` of the catalogue: a random Llama of 2 layers, 4 heads on 2 KV heads."""
    return tiny_of("llama", device=device, dtype=dtype)
