"""The feed-forward part as a memory of neurons: which are active, and what each writes.

A neuron's activation multiplies its column of the down projection, and the result is added to
the residual stream (Geva et al. 2021, "Transformer Feed-Forward Layers Are Key-Value
Memories"). Read through the LM head, without the final norm, that column names tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from core.engine.protocol import Engine
from core.faults import Fault
from core.trace import Forward

NEAR_ZERO: Final = 0.01
"""Below this share of the layer's largest activation (by size), a neuron counts as silent."""
MOST: Final = 0.9
"""Share of the sum of squared activations by which a layer's busy neurons are counted."""
Scored = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Neuron:
    """One neuron of one layer, at one position."""

    index: int
    value: float
    """Its activation: what enters the down projection."""
    gate: float | None
    """Before the activation function; ``None`` in architectures without a gate."""
    up: float | None
    column: float
    """Length of its column of the down projection."""
    promotes: Scored
    """(token, what value × column adds to its score, without the final norm), most first."""
    suppresses: Scored

    @property
    def size(self) -> float:
        """Length of what it adds: |activation| · ‖column‖."""
        return abs(self.value) * self.column


@dataclass(frozen=True, eq=False)
class Activity:
    """How sparse the activations of each layer are, at one position."""

    near_zero: Float[np.ndarray, " layer"]
    """Share of neurons below ``NEAR_ZERO`` of the layer's largest activation, by size."""
    busy: Int[np.ndarray, " layer"]
    """Fewest neurons that hold ``MOST`` of the sum of squared activations."""
    largest: Float[np.ndarray, " layer"]
    """Size of the layer's largest activation."""


def activity(forward: Forward, row: int) -> Activity | None:
    """Of the layers that the pass captured; ``None`` when it has no neurons."""
    if forward.neurons is None:
        return None
    values = np.abs(forward.neurons[:, row].astype(np.float64))
    largest = values.max(axis=-1)
    squares = -np.sort(-(values**2), axis=-1)
    total = squares.sum(axis=-1, keepdims=True)
    reached = np.cumsum(squares, axis=-1) >= MOST * total * (1 - 1e-12)
    return Activity(
        near_zero=(values < NEAR_ZERO * largest[:, None]).mean(axis=-1),
        busy=np.where(total[:, 0] > 0, reached.argmax(axis=-1) + 1, 0),
        largest=largest,
    )


def most_active(
    engine: Engine, forward: Forward, row: int, layer: int, *, count: int = 12, top: int = 5
) -> tuple[Neuron, ...]:
    """The ``count`` neurons of ``layer`` with the largest |activation|, ties by index.

    Raises Fault when the pass has no neurons of that layer.
    """
    if forward.neurons is None or layer not in forward.layers:
        raise Fault("neurons_not_readable", architecture=engine.info.architecture)
    at = forward.layers.index(layer)
    own = forward.neurons[at, row]
    chosen = np.argsort(-np.abs(own), kind="stable")[:count]
    columns = engine.neuron_outputs(layer, [int(i) for i in chosen])
    scores = engine.project(columns * own[chosen, None])
    return tuple(
        Neuron(
            index=int(i),
            value=float(own[i]),
            gate=None if forward.gate is None else float(forward.gate[at, row, i]),
            up=None if forward.up is None else float(forward.up[at, row, i]),
            column=float(np.linalg.norm(columns[n].astype(np.float64))),
            promotes=_ends(scores[n], top),
            suppresses=tuple((token, -s) for token, s in _ends(-scores[n], top)),
        )
        for n, i in enumerate(chosen)
    )


def _ends(scores: Float[np.ndarray, " vocabulary"], top: int) -> Scored:
    near = np.argpartition(-scores, min(top, scores.size) - 1)[:top]
    best = near[np.lexsort((near, -scores[near]))]
    return tuple((int(token), float(scores[token])) for token in best)
