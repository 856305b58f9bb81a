"""Single passes of a borrowed model, timed, with a cache of their own."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from core.engine.local import LocalEngine
from core.engine.stack import can_stack
from core.faults import Fault
from core.lab.shape import ModelShape, shape_of
from core.lab.timing import milliseconds


def new_cache(model: Any) -> DynamicCache:
    """An empty one, with the sliding windows of the model."""
    return DynamicCache(config=model.config)


def read(
    model: Any,
    new: Sequence[int],
    cache: DynamicCache | None,
    *,
    keep: int = 1,
    extra: Mapping[str, Any] | None = None,
) -> Tensor:
    """Logits after the last ``keep`` of the new tokens, [keep, vocabulary], float32.

    With a cache it is extended; without one the new tokens are the whole text.
    """
    ids = torch.tensor([list(new)], device=model.device)
    more = {} if cache is None else {"cache": cache}
    output = model(ids, use_cache=cache is not None, logits_to_keep=keep, **more, **(extra or {}))
    if model.device.type == "cuda":
        torch.cuda.synchronize(model.device)
    logits: Tensor = output.logits[0].float()
    return logits


def timed(
    engine: LocalEngine, new: Sequence[int], cache: DynamicCache | None
) -> tuple[float, Tensor]:
    """(milliseconds, logits of the last position); waiting for the model is not counted."""
    found: list[Tensor] = []
    with engine.borrowed() as model:
        ms = milliseconds(lambda: found.append(read(model, new, cache)[0]))
    return ms, found[0]


def check_keys(engine: LocalEngine) -> None:
    """Raise Fault for a model with layers that keep states instead of keys."""
    with engine.borrowed() as model:
        if not can_stack(model.config, new_cache(model)):
            raise Fault("kv_needs_keys", architecture=engine.info.architecture)


def shape_in(engine: LocalEngine) -> tuple[ModelShape, int]:
    """(the model's shape, bytes of one of its numbers).

    Raises Fault for a model whose work cannot be counted, and as ``check_keys``.
    """
    check_keys(engine)
    with engine.borrowed() as model:
        config, value = model.config, torch.empty(0, dtype=model.dtype).element_size()
    return shape_of(config, engine.info.name), value


def takes_positions(model: Any) -> bool:
    return "position_ids" in inspect.signature(model.forward).parameters
