"""Keys and values in few bits: rounded to a grid, and packed so that the bytes are really saved.

64 neighbouring numbers share a scale and an offset of 16 bits each: 64 channels of one token, or
64 tokens of one channel. That is the algebra of transformers' ``QuantizedCache`` (quanto: per
token) and of KIVI (Liu et al. 2024: keys per channel, values per token).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Shaped, UInt8

from core.edits.grid import Grid, round_to
from core.lab.kv_records import KeySpan

GROUP: Final = 64
HALF_MAX: Final = 60_000
"""Beyond what 16 bits can hold, scales and offsets are kept in 32."""


@dataclass(frozen=True, eq=False)
class Packed:
    """Keys or values of one layer, on their grid."""

    bits: int
    span: KeySpan
    shape: tuple[int, int, int]
    """KV heads, positions, head_dim."""
    codes: UInt8[np.ndarray, " byte"]
    """8 ÷ bits codes a byte, the first one in the lowest bits."""
    scale: Float[np.ndarray, "row group"]
    offset: Float[np.ndarray, "row group"]

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.scale.nbytes + self.offset.nbytes

    @property
    def values(self) -> Float[np.ndarray, "kv_head position head_dim"]:
        """The numbers that the codes stand for, float32."""
        rows, columns = _table_shape(self.shape, self.span)
        codes = unpack(self.codes, self.bits, rows * columns).reshape(rows, columns)
        scale, offset = (
            np.repeat(part.astype(np.float32), GROUP, axis=1)[:, :columns]
            for part in (self.scale, self.offset)
        )
        table: Float[np.ndarray, "row column"] = offset + scale * codes.astype(np.float32)
        return _from_table(table, self.shape, self.span)


def packed(
    numbers: Float[np.ndarray, "kv_head position head_dim"], bits: int, span: KeySpan
) -> Packed:
    """Round to the nearest of 2^bits steps between the smallest and the largest of a group.

    The error of a number is at most half a step, and what 16 bits cost scale and offset.
    """
    table = _to_table(numbers, span)
    found = round_to(table, Grid(bits=bits, span="group", group=GROUP, symmetric=False))
    peak = float(np.abs(table).max(initial=0.0))
    kind = np.float16 if peak < HALF_MAX else np.float32
    heads, positions, width = numbers.shape
    return Packed(
        bits=bits,
        span=span,
        shape=(heads, positions, width),
        codes=pack(found.codes, bits),
        scale=found.scale.astype(kind),
        offset=found.offset.astype(kind),
    )


def pack(codes: Shaped[np.ndarray, "..."], bits: int) -> UInt8[np.ndarray, " byte"]:
    """Codes 0 … 2^bits - 1 side by side in bytes; the last byte is filled up with zeros."""
    each = 8 // bits
    flat = codes.astype(np.uint8).ravel()
    table = np.pad(flat, (0, -flat.size % each)).reshape(-1, each)
    shifts = np.arange(each, dtype=np.uint8) * bits
    out: UInt8[np.ndarray, " byte"] = np.bitwise_or.reduce(table << shifts, axis=1, dtype=np.uint8)
    return out


def unpack(bytes_: UInt8[np.ndarray, " byte"], bits: int, count: int) -> UInt8[np.ndarray, " code"]:
    """The first ``count`` codes."""
    shifts = np.arange(8 // bits, dtype=np.uint8) * bits
    codes = (bytes_[:, None] >> shifts) & (2**bits - 1)
    out: UInt8[np.ndarray, " code"] = codes.ravel()[:count].astype(np.uint8)
    return out


def _table_shape(shape: tuple[int, int, int], span: KeySpan) -> tuple[int, int]:
    heads, positions, width = shape
    return (heads * positions, width) if span == "token" else (heads * width, positions)


def _to_table(
    numbers: Float[np.ndarray, "kv_head position head_dim"], span: KeySpan
) -> Float[np.ndarray, "row column"]:
    """Rows in which neighbours share a scale."""
    heads, positions, width = numbers.shape
    turned = numbers if span == "token" else numbers.transpose(0, 2, 1)
    return turned.reshape(_table_shape((heads, positions, width), span))


def _from_table(
    table: Float[np.ndarray, "row column"], shape: tuple[int, int, int], span: KeySpan
) -> Float[np.ndarray, "kv_head position head_dim"]:
    heads, positions, width = shape
    if span == "token":
        return table.reshape(shape)
    return np.ascontiguousarray(table.reshape(heads, width, positions).transpose(0, 2, 1))
