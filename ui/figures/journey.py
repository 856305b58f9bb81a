"""The journey of one prediction: records → what Home's component draws. Pure.

Everything here is measured or computed from the records; the component adds only layout.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from core.lens import Lens
from core.model_info import ModelInfo
from core.trace import Generation, StepTrace, Token
from ui.figures.journey_choice import Label, candidate_list, dice, filters
from ui.figures.journey_model import kv_cache, position_kind
from ui.figures.journey_rows import attention, changes, embeddings, lanes, telling_layer

WIDEST: Final = 1024
"""Numbers sent for each embedding; of a wider one, every k-th."""


def rise(chosen: Float[np.ndarray, " layer"], floor: float = 0.01) -> dict[str, Any] | None:
    """Where the chosen token's probability grows most on its way up the layers (from 0).

    ``since``: the first layer from which on it stays at or above ``floor``; ``None``: never.
    """
    if not chosen.size:
        return None
    before = np.concatenate([[0.0], chosen[:-1]])
    layer = int((chosen - before).argmax())
    low = np.flatnonzero(chosen < floor)
    since = int(low[-1]) + 1 if low.size else 0
    return {
        "layer": layer,
        "before": float(before[layer]),
        "after": float(chosen[layer]),
        "final": float(chosen[-1]),
        "since": since if since < chosen.size else None,
    }


def lens_view(lens: Lens | None, label: Label) -> dict[str, Any] | None:
    """Each layer's first guess, and the chosen token's probability there."""
    if lens is None or not lens.followed_probability.size:
        return None
    best = lens.ids[:, 0]
    return {
        "guesses": [label(int(token)) for token in best],
        "probabilities": [float(p) for p in lens.probabilities[:, 0]],
        "agrees": [bool(token == lens.followed) for token in best],
        "chosen": [float(p) for p in lens.followed_probability],
        "rise": rise(lens.followed_probability),
    }


def vectors(rows: Float[np.ndarray, "row width"]) -> dict[str, Any]:
    """The embeddings, packed, with the size at which their colours saturate."""
    width = rows.shape[1]
    stride = max(1, -(-width // WIDEST))
    sent = rows[:, ::stride]
    return {
        "embedding": _packed(sent),
        "width": width,
        "stride": stride,
        "sent": sent.shape[1],
        "saturation": float(np.quantile(np.abs(sent), 0.98)) if sent.size else 0.0,
    }


def journey_data(
    generation: Generation,
    view: StepTrace,
    tokens: Sequence[Token],
    *,
    info: ModelInfo,
    label: Label,
    lens: Lens | None,
) -> dict[str, Any]:
    """All that is drawn for the step in view, as JSON values.

    ``tokens`` are those that the step has read, and the one it chose; ``view.choice`` holds
    its stages. Packed arrays: ``embedding`` [row, number], ``change`` [layer, row], ``attention``
    [layer, row, column].
    """
    read = len(view.forward.ids)
    drawn = lanes(read)
    forwards = [step.forward for step in generation.steps[: view.index]] + [view.forward]
    weights = attention(forwards, drawn)
    return {
        **vectors(embeddings(forwards, drawn.positions)),
        **candidate_list(view, label),
        "step": view.index,
        "made": len(generation.steps),
        "limit": generation.spec.settings.max_new,
        "stop": generation.stop if view.index == len(generation.steps) - 1 else None,
        "lanes": [_lane(tokens[position]) for position in drawn.positions],
        "hidden": drawn.hidden,
        "joins": _lane(tokens[read]),
        "new": read - view.forward.start,
        "layers": info.layers,
        "heads": info.heads,
        "vocabulary": info.vocabulary,
        "architecture": info.architecture,
        "position": position_kind(info),
        "change": _packed(changes(forwards, drawn.positions)),
        "attention": "" if weights is None else _packed(weights),
        "layer": telling_layer(weights, len(drawn.positions)),
        "lens": lens_view(lens, label),
        "filters": filters(view.choice),
        "dice": dice(view, label),
        "rank": view.choice.rank,
        "ms": view.forward.ms,
        "cached": view.forward.cached,
        "read": read,
        "cache": kv_cache(info, read),
    }


def _packed(array: np.ndarray) -> str:
    """Base64 of little-endian float32: a component's data is either JSON or bytes, never both."""
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode()


def _lane(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "position": token.position,
        "label": token.label,
        "source": token.source,
        "special": token.special,
    }
