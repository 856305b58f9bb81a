"""What a forward pass computes and moves, with a cache and without: counting, no measuring."""

from __future__ import annotations

from core.lab.kv_records import Work
from core.lab.shape import ModelShape


def work(shape: ModelShape, held: int, new: int, value_bytes: int) -> Work:
    """One pass over ``new`` positions with ``held`` positions in the cache, logits of the last.

    Operations as they are really done: the masked half of attention is computed, too. Every
    number takes ``value_bytes``.
    """
    matrices = 2 * (shape.active_parameters - shape.table_parameters) * new
    pairs = sum(new * seen for seen in _seen(shape, held, new))
    attention = 4 * shape.heads * shape.head_dim * pairs
    row = 2 * shape.kv_heads * shape.head_dim * value_bytes
    return Work(
        positions=new,
        flops=matrices + attention + 2 * shape.table_parameters,
        weight_bytes=round(_weights(shape, new) * value_bytes),
        kv_read=row * sum(_seen(shape, held, new)),
        kv_written=row * shape.layers * new,
    )


def kept_bytes(shape: ModelShape, length: int, value_bytes: float) -> float:
    """The cache after ``length`` tokens. A sliding layer keeps one position less than its
    window, since the next token completes it."""
    kept = sum(_kept(shape, layer, length) for layer in range(shape.layers))
    return 2 * shape.kv_heads * shape.head_dim * value_bytes * kept


def token_bytes(shape: ModelShape, value_bytes: float) -> float:
    """Keys and values of one token, before any window is full."""
    return kept_bytes(shape, 1, value_bytes)


def _window(shape: ModelShape, layer: int) -> int | None:
    """The sliding layers are counted first: for sums their order does not matter."""
    return shape.window if layer < shape.sliding_layers else None


def _kept(shape: ModelShape, layer: int, length: int) -> int:
    window = _window(shape, layer)
    return length if window is None else min(length, max(1, window - 1))


def _seen(shape: ModelShape, held: int, new: int) -> list[int]:
    """Keys that each layer's new positions are compared with, masked ones included."""
    return [_kept(shape, layer, held) + new for layer in range(shape.layers)]


def _weights(shape: ModelShape, new: int) -> float:
    """Numbers read by a pass over ``new`` tokens: of a table that is not the LM head, rows only,
    and of a mixture the experts that they meet on average."""
    idle = shape.layers * (shape.experts - shape.experts_met(new)) * shape.expert_parameters
    unread = 0 if shape.tied else shape.table_parameters - new * shape.width
    return shape.parameters - idle - unread
