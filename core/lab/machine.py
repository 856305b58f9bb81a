"""What something was measured on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import psutil

CPU_INFO: Final = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Machine:
    processor: str
    cores: int
    """Those that this process may use."""
    threads: int
    """Of torch, for one pass."""
    memory: int
    """Bytes."""
    torch: str
    device: str
    """Where the model is: "cpu", or the accelerator's own name."""
    date: str
    """The day and the time, in UTC; older records have the day alone."""


def machine(device: str = "cpu") -> Machine:
    """This machine, today; ``device`` as torch names it. Imports torch."""
    import torch  # noqa: PLC0415 - takes seconds; a page's first paint must not wait for it

    named = device
    if device.startswith("cuda") and torch.cuda.is_available():
        named = torch.cuda.get_device_name(device)
    return Machine(
        processor=processor(),
        cores=cores(),
        threads=torch.get_num_threads(),
        memory=psutil.virtual_memory().total,
        torch=version("torch"),
        device=named,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def cores() -> int:
    """Those that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        return os.cpu_count() or 1


def processor() -> str:
    """Its name, as the system gives it."""
    try:
        lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
