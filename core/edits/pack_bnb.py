"""The same by bitsandbytes, the library that most people use for it; only where it is installed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Final

import torch
from torch import Tensor

from core.edits.pack import DTYPE, Packed
from core.faults import Fault

BLOCK: Final = 64
"""Weights that share a scale in NF4."""


def check() -> None:
    """Raises Fault where it is not here, or does not start."""
    try:
        _library()
    except Exception as error:
        raise Fault("no_bitsandbytes") from error


@cache
def _library() -> Any:
    return import_module("bitsandbytes")


def _modules() -> Any:
    return import_module("bitsandbytes.nn.modules")


def _fits_kernel(weight: Tensor) -> bool:
    """Whether the library has its quick product on this processor, for such a matrix."""
    if weight.device.type != "cpu" or weight.shape[0] % 32 or weight.shape[1] % BLOCK:
        return False
    modules = _modules()
    there = hasattr(modules, "has_avx512bf16") and hasattr(
        modules, "_convert_weight_packed_for_cpu"
    )
    return bool(there and modules.has_avx512bf16())


class Nf4Linear(Packed):
    """4-bit codes of 16 levels that fit normally distributed weights (NF4, Dettmers et al. 2023),
    one scale for 64 neighbours."""

    codes: Tensor
    scale: Tensor
    levels: Tensor

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, copied: bool = False) -> None:
        super().__init__(weight, bias, copied)
        codes, state = _library().functional.quantize_4bit(
            weight.to(DTYPE).contiguous(), blocksize=BLOCK, quant_type="nf4"
        )
        self.kernel = _fits_kernel(weight)
        if self.kernel:
            codes, state = _modules()._convert_weight_packed_for_cpu(codes, state)
        self.register_buffer("codes", codes)
        self.register_buffer("scale", state.absmax)
        self.register_buffer("levels", state.code)
        self._state = state

    @property
    def weight(self) -> Tensor:
        if self.kernel:
            # In the kernel's own layout nothing but the kernel can read the codes.
            one = torch.eye(self.in_features, dtype=DTYPE, device=self.codes.device)
            return self.multiply(one).T
        found: Tensor = _library().functional.dequantize_4bit(self.codes, self._here())
        return found

    def multiply(self, x: Tensor) -> Tensor:
        found: Tensor = _library().matmul_4bit(x, self.codes, quant_state=self._here())
        return found

    def _here(self) -> Any:
        """The state with this layer's own tensors, wherever they were moved."""
        self._state.absmax, self._state.code = self.scale, self.levels
        return self._state


class Bnb8Linear(Packed):
    """8-bit codes, one scale a row, multiplied with activations that are rounded to 8 bits as well
    (LLM.int8(), Dettmers et al. 2022)."""

    codes: Tensor
    scale: Tensor

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, copied: bool = False) -> None:
        super().__init__(weight, bias, copied)
        codes, scale, _ = _library().functional.int8_vectorwise_quant(weight.half().contiguous())
        self.register_buffer("codes", codes)
        self.register_buffer("scale", scale)

    @property
    def weight(self) -> Tensor:
        return (self.codes.float() * self.scale[:, None] / 127).to(DTYPE)

    def multiply(self, x: Tensor) -> Tensor:
        state = _library().MatmulLtState()
        state.has_fp16_weights, state.is_training, state.threshold = False, False, 6.0
        state.CB, state.SCB = self.codes, self.scale
        # The library works in 16-bit floats, and says so at each call otherwise.
        found: Tensor = _library().matmul(x.half(), self.codes, state=state)
        return found.to(DTYPE)
