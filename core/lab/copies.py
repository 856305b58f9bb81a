"""A private copy of a model, for experiments that change its weights again and again."""

from __future__ import annotations

import copy
import gc
from typing import Any, Final

import psutil
import torch
from torch import nn

from core.engine.local import LocalEngine
from core.faults import Fault

SPARE: Final = 1.2
"""What has to be free, for each byte of a copy."""


def private(engine: LocalEngine) -> Any:
    """The same model with tensors of its own; nothing done to it is seen by anybody else.

    Raises Fault where there is no room for it.
    """
    needed = engine.info.bytes_in_memory
    gc.collect()  # The copy before this one may still be there (core.engine.gone).
    on_cpu = engine.info.device == "cpu"
    if on_cpu and psutil.virtual_memory().available < SPARE * needed:
        raise Fault("no_memory_to_copy", name=engine.info.name, needed=needed // 10**6)
    try:
        with engine.borrowed() as model, torch.inference_mode(False):
            # The structure alone, so that everybody else waits for a moment only.
            shared = {id(p): nn.Parameter(p.data, requires_grad=False) for p in model.parameters()}
            twin = copy.deepcopy(model, dict(shared))
        for parameter in twin.parameters():
            parameter.data = parameter.data.clone()
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise Fault("no_memory_to_copy", name=engine.info.name, needed=needed // 10**6) from error
    return twin
