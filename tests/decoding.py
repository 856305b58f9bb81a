"""The table of hand-worked laws, and the way its lines are read."""

import json
from pathlib import Path

import numpy as np

from core.settings import Settings

TABLE = json.loads((Path(__file__).parent / "laws" / "decoding.json").read_text(encoding="utf-8"))
PARAMETERS = ("temperature", "top_k", "top_p", "min_p", "typical_p")


def law_logits(law):
    with np.errstate(divide="ignore"):
        return np.array(law["logits"], float) if "logits" in law else np.log(law["probs"])


def law_settings(law):
    found = {name: law[name] for name in PARAMETERS if name in law}
    return Settings(order=tuple(law.get("order", ())), **found)
