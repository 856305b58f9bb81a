"""What the journey says of a model from its :class:`~core.trace.ModelInfo` alone."""

from __future__ import annotations

from typing import Any, Final, Literal

from core.model_info import ModelInfo

PositionKind = Literal["rotary", "learned", "alibi", "none", "unknown"]

# Beginnings of transformers' class names.
# fmt: off
ROTARY: Final = (
    "Llama", "Gemma", "Mistral", "Ministral", "Mixtral", "Qwen", "Phi3", "Phi4", "PhiFor",
    "GPTNeoX", "Olmo", "StableLm", "Cohere", "Granite", "SmolLM", "Starcoder2", "Glm",
    "Exaone", "Deepseek", "Helium", "Arcee",
)
LEARNED: Final = ("GPT2", "OPT", "GPTNeoFor", "GPTBigCode", "OpenAIGPT", "BioGpt")
ALIBI: Final = ("Bloom", "Mpt")
SLIDING: Final = ("Gemma2", "Gemma3", "Mistral", "Ministral", "Starcoder2", "Cohere2")
# fmt: on
"""Layers that look back only so far: their cache stops growing."""
BYTES: Final = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}


def position_kind(info: ModelInfo) -> PositionKind:
    """How the position of a token enters, as far as the architecture's name tells."""
    if info.layers == 0:
        return "none"
    if info.architecture.startswith(ROTARY):
        return "rotary"
    if info.architecture.startswith(LEARNED):
        return "learned"
    return "alibi" if info.architecture.startswith(ALIBI) else "unknown"


def kv_cache(info: ModelInfo, positions: int) -> dict[str, Any]:
    """Bytes of keys and values for ``positions``: 2 · layers · KV heads · head width · bytes."""
    size = BYTES.get(info.dtype.removeprefix("torch."), 4)
    each = 2 * info.layers * info.kv_heads * info.head_dim * size
    return {
        "layers": info.layers,
        "kv_heads": info.kv_heads,
        "head_dim": info.head_dim,
        "size": size,
        "per_token": each,
        "bytes": each * positions,
        "at_most": info.architecture.startswith(SLIDING),
    }
