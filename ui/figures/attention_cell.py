"""How one attention weight came about: a derivation → what the component draws. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from core.model_info import ModelInfo
from core.trace import Token
from core.weight import Derivation, plain_scaling
from ui.figures.attention import sharing, token_list
from ui.figures.words import tiny

TOLERANCE: Final = 1e-5
"""Up to this difference, "recomputed here" counts as equal to what the model had."""


def cell_data(
    derivation: Derivation, tokens: Sequence[Token], info: ModelInfo, *, window: int | None
) -> dict[str, Any]:
    """The steps from q and k to one weight; ``tokens`` [T] are those of the whole run.

    ``rows``: one for each key up to the query, and at most one behind it (which the mask
    hides): position, q·k, score, e^(score - highest), weight recomputed, weight of the model.
    ``None`` stands for what is masked.
    """
    d = derivation
    seen = min(d.query + 2, d.scores.size)
    highest = float(d.scores.max())
    raised = np.exp(d.scores - highest)
    rows = [
        [
            place,
            _number(d.dots[place]),
            _number(d.scores[place]),
            float(raised[place]),
            float(d.weights[place]),
            float(d.captured[place]),
        ]
        for place in range(seen)
    ]
    return {
        "layer": d.layer,
        "head": d.head,
        "kv_head": d.kv_head,
        "sharing": list(sharing(info, d.head)),
        "query": d.query,
        "key": d.key,
        "tokens": token_list(tokens),
        "q": d.q.tolist(),
        "k": None if np.isnan(d.k).any() else d.k.tolist(),
        "dot": _number(d.dots[d.key]) if d.key < d.dots.size else None,
        "dim": d.q.size,
        "scaling": d.scaling,
        "plain_scaling": plain_scaling(d),
        "highest": highest,
        "sum": float(raised.sum()),
        "visible": bool(d.visible[d.key]) if d.key < d.visible.size else False,
        "future": d.key > d.query,
        "window": window,
        "rows": rows,
        "weight": float(d.weights[d.key]),
        "captured": float(d.captured[d.key]),
        "difference": d.difference,
        "difference_text": tiny(d.difference),
        "equal": d.difference <= TOLERANCE,
    }


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
