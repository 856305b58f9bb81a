"""What the matrices of a model meet while it reads a text: the norms that pruning by use asks for.

The text is :data:`core.edits.CALIBRATION_TEXT`; no edited model is judged on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any, Final

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from core.edits import CALIBRATION_TEXT
from core.models.loaded import LoadedModel

Calibration = Callable[[], Sequence[int]]
"""The ids of the calibration text; asked for only where a method looks at data."""
MOST: Final = 512
"""Tokens of the calibration text that are read; it has about 300."""


def calibration_ids(tokenizer: Tokenizer, context: int) -> tuple[int, ...]:
    """The calibration text as the model reads it: cut where its context ends."""
    text = CALIBRATION_TEXT.read_text(encoding="utf-8").strip()
    return tuple(tokenizer.encode(text).ids[: min(MOST, context)])


def reader(loaded: LoadedModel) -> Calibration:
    """Reads the calibration text for a model where somebody asks for it."""
    return lambda: calibration_ids(loaded.tokenizer, loaded.info.context)


def input_norms(
    model: Any, matrices: Iterable[tuple[str, nn.Linear]], ids: Sequence[int]
) -> dict[str, Tensor]:
    """‖x‖ over all positions of ``ids`` of each input of each matrix, [column], float32.

    One pass of the model as it is; nothing is kept of it but these sums.
    """
    sums: dict[str, Tensor] = {}

    def hears(name: str) -> Any:
        def hook(_: nn.Module, args: tuple[Any, ...]) -> None:
            met = args[0].detach().reshape(-1, args[0].shape[-1])
            sums[name] = met.float().pow(2).sum(0) + sums.get(name, 0)

        return hook

    with ExitStack() as hooks, torch.inference_mode():
        for name, matrix in matrices:
            hooks.callback(matrix.register_forward_pre_hook(hears(name)).remove)
        model(torch.tensor([list(ids)], device=model.device), use_cache=False)
    return {name: total.sqrt() for name, total in sums.items()}
