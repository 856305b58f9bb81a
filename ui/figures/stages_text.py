"""What the stages that look at the text need in the browser, as plain values. Pure."""

from __future__ import annotations

import base64
from collections import Counter
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from core.decode.measure import probabilities
from core.decode.past import Past
from core.settings import PROCESSOR_NAMES, STAGE_NAMES, Settings
from core.trace import Choice

TEXTS: Final = ("banned", "pattern")
"""Stages that work with texts; all others work with one number."""
RULES: Final = ("no_repeat_ngram", *TEXTS)
"""Stages that forbid tokens; which ones, Python alone can work out."""
TEXT_OFF: Final[dict[str, Any]] = {name: getattr(Settings(), name) for name in PROCESSOR_NAMES}
FEW: Final = 500
"""Ids that are sent as a list; more of them are sent as bits."""


def settings_data(settings: Settings) -> dict[str, Any]:
    """The stages' parameters, ``None`` for those that are off; of the filters, their order."""
    numbers = (*STAGE_NAMES, *(name for name in PROCESSOR_NAMES if name not in TEXTS))
    return {
        **{name: settings.parameter(name) for name in numbers},
        "banned": list(settings.banned),
        "pattern": settings.pattern,
        "order": list(settings.filters),
    }


def text_data(
    logits: Float[np.ndarray, " vocabulary"], choice: Choice, settings: Settings, past: Past | None
) -> dict[str, Any]:
    """What the browser needs to go through the stages that look at the text.

    ``text``: (id, times generated) of each token that the text has. ``forbidden``: the tokens
    that each rule forbade. Both are empty where no stage was applied although some are on:
    they would have left nothing, and a token was forced.
    """
    applied = any(stage.name in PROCESSOR_NAMES for stage in choice.stages)
    if past is None or (settings.processors and not applied):
        return {"text": [], "forbidden": {name: [] for name in RULES}}
    times = Counter(past.generated)
    # A prompt may hold ids for which the model has no score.
    text = [(id, times[id]) for id in sorted(set(past.ids)) if id < logits.size]
    return {"text": text, "forbidden": _forbidden(logits, choice)}


def _forbidden(
    logits: Float[np.ndarray, " vocabulary"], choice: Choice
) -> dict[str, list[int] | str]:
    """Ids, or one bit an id (lowest first) in base64. The penalties the browser works out."""
    out: dict[str, list[int] | str] = {}
    before = probabilities(logits) > 0
    for stage in choice.stages:
        if stage.name in RULES:
            gone = before & ~stage.keeps
            ids = np.flatnonzero(gone)
            bits = np.packbits(gone, bitorder="little").tobytes()
            few = ids.size <= FEW
            out[stage.name] = ids.tolist() if few else base64.b64encode(bits).decode()
        before = stage.keeps
    return out
