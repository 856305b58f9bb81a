"""How much memory the workers will need, and whether it is there. No torch."""

from __future__ import annotations

from typing import Final

import psutil

from core.faults import Fault
from core.lab.parallel.deal import TensorPlan
from core.lab.parallel.stages import layer_cost
from core.model_info import ModelInfo

PROCESS: Final = 300_000_000
"""About what Python and torch take in each process."""


def weights_of(info: ModelInfo, plan: TensorPlan) -> tuple[int, ...]:
    """Bytes of weights on each rank by counting; norms and biases, which all have, are left out."""
    table = info.vocabulary * info.width
    layers = info.layers * layer_cost(info)
    # One table where the LM head is the embedding matrix, otherwise two.
    tables = max(1, round((info.parameters - layers) / table)) if table else 1
    matrices = 3 if info.gated else 2
    found = []
    for hand in plan.hands:
        heads, kv = (b - a for a, b in (hand.heads, hand.kv_heads))
        neurons, rows = (b - a for a, b in (hand.neurons, hand.rows))
        layer = info.width * (info.head_dim * (2 * heads + 2 * kv) + matrices * neurons)
        found.append((info.layers * layer + tables * rows * info.width) * plan.number_bytes)
    return tuple(found)


def check_room(weights: int, processes: int) -> None:
    """Raises Fault where so many processes with ``weights`` bytes together do not fit."""
    needed = weights + processes * PROCESS
    free = psutil.virtual_memory().available
    if needed > free:
        raise Fault(
            "ranks_no_room",
            ranks=processes,
            needed=f"{needed / 1e9:,.1f}",
            free=f"{free / 1e9:,.1f}",
        )
