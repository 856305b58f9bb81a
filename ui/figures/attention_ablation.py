"""What switching heads off changed → what the component draws. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from core.ablation import Effect, Shift
from core.decode.measure import bits
from core.model_info import ModelInfo
from core.trace import Edit, Token

Off = tuple[tuple[int, int], ...]
NOTHING_OFF: Final[dict[str, Any]] = {"off": []}
"""What is drawn where no head and no layer is off: a sentence."""


@dataclass(frozen=True)
class Texts:
    """The text after the step in view, token by token, without and with the edit."""

    before: tuple[int, ...]
    after: tuple[int, ...]


def edit_of(off: Off, info: ModelInfo) -> Edit:
    """The edit that a view asks for; what the model does not have is left out."""
    layers = {layer for layer, head in off if head < 0 and layer < info.layers}
    heads = [
        (layer, head)
        for layer, head in off
        if 0 <= head < info.heads and layer < info.layers and layer not in layers
    ]
    return Edit(heads_off=tuple(sorted(heads)), layers_off=tuple(sorted(layers)))


def effect_data(
    found: Effect, texts: Texts | None, edit: Edit, label: Callable[[int], str]
) -> dict[str, Any]:
    """Both distributions' first tokens, the chosen token, KL in bits, and both texts."""

    def row(shift: Shift) -> dict[str, Any]:
        return {**asdict(shift), "label": label(shift.id), "chosen": shift.id == found.chosen.id}

    return {
        "off": [[layer, -1] for layer in edit.layers_off] + [list(x) for x in edit.heads_off],
        "rows": [row(shift) for shift in found.top],
        "chosen": row(found.chosen),
        "kl": bits(found.kl) if np.isfinite(found.kl) else None,
        "texts": None if texts is None else _texts(texts, label),
    }


def _texts(texts: Texts, label: Callable[[int], str]) -> dict[str, Any]:
    same = 0
    for before, after in zip(texts.before, texts.after, strict=False):
        if before != after:
            break
        same += 1
    return {
        "before": [label(token) for token in texts.before],
        "after": [label(token) for token in texts.after],
        "same": same,
    }


def attribution_data(
    values: Float[np.ndarray, " token"],
    row: Float[np.ndarray, " token"] | None,
    tokens: Sequence[Token],
    target: str,
    score: float,
) -> dict[str, Any]:
    """Gradient × input of every token that was read, beside the attention of the last row.

    ``values`` are in logits; ``score`` is the logit of ``target``, the token explained.
    """
    return {
        "tokens": [{"label": token.label, "source": token.source} for token in tokens],
        "values": [float(value) for value in values],
        "attention": None if row is None else [float(weight) for weight in row],
        "target": target,
        "score": score,
        "sum": float(values.sum()),
    }
