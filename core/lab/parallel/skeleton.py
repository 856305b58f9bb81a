"""A model without weights, to be filled with the slices that one worker needs."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import psutil
import torch
from accelerate import init_empty_weights
from safetensors import safe_open
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM

from core.engine.traced import ATTENTION
from core.lab.parallel.checkpoint import files_of
from core.lab.parallel.deal import Span

DTYPES: Final = {
    "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16
}  # fmt: skip


def empty_model(folder: Path, dtype: torch.dtype) -> Any:
    """The architecture of the folder, with parameters that take no memory yet."""
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    with init_empty_weights(include_buffers=False):
        model: Any = AutoModelForCausalLM.from_config(config, dtype=dtype)
    model.set_attn_implementation(ATTENTION)
    return model.eval().requires_grad_(False)


class Slices:
    """Rows and columns of tensors on disk; only what is asked for is read."""

    def __init__(self, folder: Path, dtype: torch.dtype, device: torch.device) -> None:
        self._files = files_of(folder)
        self._dtype, self._device = dtype, device
        self._stack = ExitStack()
        self._open: dict[Path, Any] = {}

    def __enter__(self) -> Slices:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def whole(self, name: str) -> nn.Parameter:
        return self._own(self._slice(name)[:])

    def rows(self, name: str, span: Span) -> nn.Parameter:
        return self._own(self._slice(name)[slice(*span)])

    def columns(self, name: str, span: Span) -> nn.Parameter:
        return self._own(self._slice(name)[:, slice(*span)])

    def size(self, name: str) -> tuple[int, ...]:
        return tuple(self._slice(name).get_shape())

    def _slice(self, name: str) -> Any:
        path = self._files[name]
        if path not in self._open:
            self._open[path] = self._stack.enter_context(safe_open(path, framework="pt"))
        return self._open[path].get_slice(name)

    def _own(self, found: Tensor) -> nn.Parameter:
        """Memory of its own: a slice that still belongs to the file would keep all of it."""
        own = torch.empty(found.shape, dtype=self._dtype, device=self._device)
        return nn.Parameter(own.copy_(found), requires_grad=False)


def fill(module: nn.Module, prefix: str, slices: Slices) -> None:
    """Give every parameter under ``module`` that still has no memory its whole tensor."""
    for name, parameter in list(module.named_parameters()):
        if parameter.is_meta:
            path, _, last = name.rpartition(".")
            setattr(module.get_submodule(path), last, slices.whole(f"{prefix}{name}"))


def held_bytes(model: nn.Module) -> int:
    """Bytes of the parameters that are in memory; shared ones once."""
    found = {
        p.untyped_storage().data_ptr(): p.untyped_storage().nbytes()
        for p in model.parameters()
        if not p.is_meta
    }
    return sum(found.values())


def process_bytes() -> int:
    """Memory that this process owns: without files that are only mapped, where that is known."""
    info = psutil.Process(os.getpid()).memory_info()
    return int(info.rss - getattr(info, "shared", 0))


def loopback() -> str:
    """The name of the interface that reaches this machine alone."""
    return "lo" if sys.platform == "linux" else "lo0"
