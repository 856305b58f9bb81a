"""Tiny random models of further architectures, each with a part that the usual ones lack."""

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from core.models.loaded import LoadedModel, finish
from core.models.tiny import CHAT_TEMPLATE, tiny_tokenizer

_SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 128,
}
_MIXED = ["conv", "full_attention", "conv"]
FAMILIES = {
    # soft caps on the scores and on the logits
    "gemma2": {
        **_SIZES, "head_dim": 16, "sliding_window": 8,
        "attn_logit_softcapping": 0.5, "final_logit_softcapping": 2.0,
    },
    # a learned sink a head
    "gpt_oss": {
        **_SIZES, "head_dim": 8, "sliding_window": 8,
        "num_local_experts": 2, "num_experts_per_tok": 1,
    },
    # q, k, v in one projection, and gate and up in another
    "phi3": {**_SIZES, "sliding_window": None},
    # norms behind the parts only
    "olmo2": _SIZES,
    # a table of positions that begins with rows for padding
    "opt": {
        "hidden_size": 32, "word_embed_proj_dim": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "ffn_dim": 64, "max_position_embeddings": 128,
    },
    # layers that keep a state instead of keys
    "lfm2": {**_SIZES, "num_hidden_layers": 3, "layer_types": _MIXED},
    # three layers with a recurrence for each one with attention
    "qwen3_next": {
        **_SIZES, "num_hidden_layers": 4, "head_dim": 16, "linear_num_value_heads": 4,
        "linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
        "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16,
    },
    # no limit of the context in its config
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    # no attention at all
    "mamba": {"hidden_size": 32, "num_hidden_layers": 2},
}  # fmt: skip


def random_model(family: str, seed: int = 1):
    """A transformers model of the family, the same one for a seed."""
    tokenizer = tiny_tokenizer()
    config = AutoConfig.for_model(
        family,
        **FAMILIES.get(family, _SIZES),
        vocab_size=tokenizer.get_vocab_size(),
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
        tie_word_embeddings=False,
        initializer_range=0.3,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
        # Sinks and biases are made of zeros, or of nothing.
        for name, weight in model.named_parameters():
            if name.endswith(("sinks", "bias")):
                torch.nn.init.normal_(weight, std=0.5)
    return model


def family_of(family: str) -> LoadedModel:
    """A random model of the family, loaded. Raises Fault where it cannot be described."""
    return finish(random_model(family), tiny_tokenizer(), CHAT_TEMPLATE, name=family)


def saved(folder, seed: int, family: str = "llama"):
    """A random model as a folder of this machine."""
    folder.mkdir(parents=True)
    random_model(family, seed).save_pretrained(folder)
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    return str(folder)
