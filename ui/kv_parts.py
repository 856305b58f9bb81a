"""What the parts of the KV cache page share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ui import lab_parts
from ui.kv_options import FIELD, TABLE


def choice(name: str, values: Sequence[Any], **words: Any) -> None:
    """A row of buttons that sets one option; ``words`` as ``ui.lab_parts.buttons`` takes them."""
    lab_parts.buttons(FIELD, TABLE, name, values, key=f"kv_set_{name}", **words)
