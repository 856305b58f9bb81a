"""What a training is expected to take, before it begins."""

from __future__ import annotations

from core.lab.training_records import Ask
from core.model_info import ModelInfo


def needed_bytes(info: ModelInfo, ask: Ask) -> int:
    """Weights, gradients and the optimizer's memory in fp32, and the activations, roughly."""
    copies = 4 if ask.optimizer == "adamw" else 2
    tokens = len(ask.sentence)
    layer = 16 * info.width + 5 * info.intermediate + 4 * info.heads * tokens
    return 4 * (copies * info.parameters + tokens * (info.layers * layer + 4 * info.vocabulary))
