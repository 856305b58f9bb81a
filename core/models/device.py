"""Where the arithmetic happens, with how many threads, and in which number format."""

from __future__ import annotations

import os
from typing import Final

import torch

from core.faults import Fault

DEVICE_VARIABLE: Final = "TOKEN_BY_TOKEN_DEVICE"
DTYPE_VARIABLE: Final = "TOKEN_BY_TOKEN_DTYPE"
THREADS_VARIABLE: Final = "TOKEN_BY_TOKEN_THREADS"
DTYPES: Final = {
    "float32": torch.float32,
    "fp32": torch.float32,
    "bfloat16": torch.bfloat16,
    "bf16": torch.bfloat16,
    "float16": torch.float16,
    "fp16": torch.float16,
}


def available_devices() -> tuple[str, ...]:
    """The devices of this machine, the fastest first."""
    cuda = torch.cuda.is_available()
    mps = torch.backends.mps.is_available()
    return (*(("cuda",) if cuda else ()), *(("mps",) if mps else ()), "cpu")


def pick_device(device: str | None = None) -> torch.device:
    """``device``, else TOKEN_BY_TOKEN_DEVICE, else the fastest one that is here.

    Raises Fault when the one asked for is not here.
    """
    there = available_devices()
    name = (device or os.environ.get(DEVICE_VARIABLE) or there[0]).strip().lower()
    kind, _, index = name.partition(":")
    known = kind in there and (not index or (kind == "cuda" and index.isdecimal()))
    if not known or (index and int(index) >= torch.cuda.device_count()):
        raise Fault("no_such_device", device=name, allowed=", ".join(there))
    return torch.device(name)


def pick_dtype(device: torch.device, dtype: str | None = None) -> torch.dtype:
    """``dtype``, else TOKEN_BY_TOKEN_DTYPE, else 32 bits on a CPU and 16 on a GPU.

    Raises Fault for a name that is no number format.
    """
    name = dtype or os.environ.get(DTYPE_VARIABLE)
    if name:
        if name.strip().lower() not in DTYPES:
            allowed = ", ".join(n for n in DTYPES if not n.startswith(("fp", "bf16")))
            raise Fault("no_such_dtype", dtype=name, allowed=allowed)
        return DTYPES[name.strip().lower()]
    if device.type == "cpu":
        return torch.float32
    return torch.bfloat16 if _has_bfloat16(device) else torch.float16


def _has_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        # emulated, it is slower than float16
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    try:
        one = torch.ones(2, 2, device=device, dtype=torch.bfloat16)
        return bool((one @ one).sum().item() == 8)
    except (RuntimeError, TypeError):
        return False


def set_threads(replicas: int = 1) -> int:
    """Share the cores among ``replicas`` processes, and return the threads of this one.

    TOKEN_BY_TOKEN_THREADS overrules. Raises Fault when it is not a whole number from 1.
    """
    wanted = os.environ.get(THREADS_VARIABLE)
    if wanted:
        if not wanted.isdecimal() or not 1 <= int(wanted) <= 1024:
            raise Fault("bad_threads", variable=THREADS_VARIABLE, value=wanted)
        count = int(wanted)
    else:
        count = max(1, _cores() // max(1, replicas))
    torch.set_num_threads(count)
    return count


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows do not have it
        return os.cpu_count() or 1
