"""The options of the Limits page, as they stand in the link."""

from __future__ import annotations

from typing import Final

from core.lab.plan import WEIGHT_BYTES
from ui.lab_options import Table
from ui.view import capped, one_of, within

NAME_CAP: Final = 120
RANKS: Final = (1, 2, 3, 4, 6, 8, 16, 32)
STAGES: Final = (1, 2, 4, 8, 16)
DEVICE: Final = "NVIDIA H100 80 GB SXM"
TABLE: Final[Table] = {
    "texts": (1, within(1, 256)),
    "context": (128, within(1, 2**20)),
    "model": ("llama-3-70b", capped(NAME_CAP)),
    "device": (DEVICE, capped(60)),
    "precision": ("bf16", one_of(tuple(WEIGHT_BYTES))),
    "batch": (1, within(1, 4096)),
    "prompt": (512, within(1, 2**20)),
    "new": (128, within(1, 2**20)),
    "tp": (1, within(1, 1024)),
    "pp": (1, within(1, 1024)),
}
