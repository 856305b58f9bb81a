"""The Probabilities page's component: sliders that re-weight the whole vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import streamlit as st

from core.tokens import Vocabulary
from ui.components.bundle import component
from ui.components.vocabulary import carry, labels_of
from ui.figures.stages import Scene, logits_blob, stages_data
from ui.i18n import Catalog

Act = Callable[[str], Callable[[], None]]
PURE: Final = ("dom", "decode", "store", "stages_text", "stages")
PARTS: Final = (
    "stages_charts", "stages_moves", "stages_cards", "stages_further", "stages_draw",
    "stages_rows", "stages_view",
)  # fmt: skip
_STAGES = component("stages", js=(*PURE, *PARTS), css=("base", "stages"))


def stages(
    scene: Scene, t: Catalog, vocabulary: Vocabulary | None, model: str, act: Act, *, key: str
) -> None:
    """Draw ``scene``; ``vocabulary`` is that of ``model``, None for numbers typed by hand.

    A released slider or a click sets the trigger "action" of ``key`` and calls ``act(key)``.
    The event's serial number goes back with the answer, so that the browser knows when its
    own settings have been heard.
    """
    answered = f"{key}_answered"
    on_action = act(key)

    def heard() -> None:
        event = (st.session_state.get(key) or {}).get("action")
        serial = event.get("serial") if isinstance(event, Mapping) else None
        st.session_state[answered] = serial if isinstance(serial, int) else None
        on_action()

    scores, blob = logits_blob(scene.logits)
    labels, text = labels_of(model, scene.logits.size, vocabulary) if vocabulary else (None, b"")
    data = stages_data(scene, t, scores=scores, labels=labels)
    _STAGES(key=key, data={**data, "ack": st.session_state.get(answered)}, on_action_change=heard)
    carry("logits", scores, blob)
    if labels:
        carry("labels", labels, text)
