"""One training step on a model that belongs to nobody else, and what it keeps in memory."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from core.engine.arrays import numpy_of
from core.engine.memory import cache_bytes
from core.engine.traced import parts_of
from core.lab.kv_passes import new_cache, read
from core.lab.training_records import Kept, Look, Optimizer, Step

TOP: Final = 10
WRITTEN: Final = 12
"""Tokens of a greedy text."""
WEIGHT_DECAY: Final = 0.01


def storages(tensors: Iterable[Tensor]) -> dict[int, int]:
    """Address → bytes of the memory behind the tensors: shared memory stands once."""
    found = (tensor.untyped_storage() for tensor in tensors)
    return {storage.data_ptr(): storage.nbytes() for storage in found}


def optimizer_of(model: Any, name: Optimizer, rate: float) -> torch.optim.Optimizer:
    """AdamW with PyTorch's defaults, or plain gradient descent, over all weights."""
    parameters = list(model.parameters())
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=rate)
    return torch.optim.AdamW(parameters, lr=rate, weight_decay=WEIGHT_DECAY, fused=True)


def loss_of(model: Any, ids: Tensor) -> tuple[Tensor, Tensor]:
    """(mean of -ln p over the tokens but the first, the scores [target, vocabulary])."""
    logits = model(ids, use_cache=False).logits[0, :-1].float()
    return functional.cross_entropy(logits, ids[0, 1:]), logits


def step(
    model: Any, optimizer: torch.optim.Optimizer, ids: Tensor, inference_ms: float
) -> Generator[None, None, tuple[Step, int]]:
    """Forward, backward, update; yields between them, returns the step and the gradients' bytes.

    The loss is the one before the update. The gradients are dropped at the end.
    """
    times = []
    with torch.enable_grad():
        began = time.perf_counter()
        loss, logits = loss_of(model, ids)
        times.append(_since(began, ids))
    yield
    began = time.perf_counter()
    loss.backward()
    times.append(_since(began, ids))
    yield
    gradients = sum(storages(p.grad for p in model.parameters() if p.grad is not None).values())
    began = time.perf_counter()
    optimizer.step()
    times.append(_since(began, ids))
    optimizer.zero_grad(set_to_none=True)
    return _step(loss, logits, ids, [*times, inference_ms]), gradients


def _step(loss: Tensor, logits: Tensor, ids: Tensor, times: Sequence[float]) -> Step:
    chances = torch.softmax(logits.detach(), -1)
    return Step(float(loss.detach()), numpy_of(chances.gather(1, ids[0, 1:, None])[:, 0]), *times)


def without_step(model: Any, ids: Tensor) -> Step:
    """The loss alone, with nothing moved and no times."""
    with torch.no_grad():
        loss, logits = loss_of(model, ids)
    return _step(loss, logits, ids, [0.0] * 4)


def _since(began: float, on: Tensor) -> float:
    if on.device.type == "cuda":
        torch.cuda.synchronize(on.device)
    return (time.perf_counter() - began) * 1000


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Of all tensors that the optimizer keeps."""
    found = (x for each in optimizer.state.values() for x in each.values())
    return sum(storages(x for x in found if isinstance(x, Tensor)).values())


def inference(model: Any, ids: Sequence[int]) -> tuple[float, int]:
    """One pass over the text as a run begins: (milliseconds, bytes of the KV cache)."""
    cache = new_cache(model)
    with torch.no_grad():
        began = time.perf_counter()
        read(model, ids, cache)
        ms = (time.perf_counter() - began) * 1000
    return ms, cache_bytes(cache)


def kept(model: Any, ids: Tensor, layers: int) -> Kept:
    """What a training step keeps of its forward pass, by the tensors that autograd saves.

    Weights are saved too, but they are there anyway, so they are not counted. One forward pass
    is run for it, and dropped.
    """
    weights = storages([*model.parameters(), *model.buffers()])
    places = dict[str, int]()
    counted = set(weights)
    with torch.enable_grad(), _place(model, layers) as where:

        def pack(tensor: Tensor) -> Tensor:
            for address, size in storages([tensor]).items():
                if address not in counted:
                    counted.add(address)
                    places[where[0]] = places.get(where[0], 0) + size
            # A tensor that the graph itself makes would keep the graph alive for ever.
            return tensor.detach()

        # The graph holds what was saved until the loss goes, so no address comes twice.
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loss, logits = loss_of(model, ids)
    del loss, logits
    return Kept(
        weights=sum(weights.values()),
        trained=sum(p.numel() for p in model.parameters() if p.requires_grad),
        cache=inference(model, ids[0].tolist())[1],
        activations=sum(places.values()),
        places=tuple(places.items()),
    )


@contextmanager
def _place(model: Any, layers: int) -> Iterator[list[str]]:
    """A list whose one entry says where the forward pass is now."""
    where, parts = ["embedding"], parts_of(model, layers)
    handles = []

    def at(name: str) -> Any:
        def hook(*_: object) -> None:
            where[0] = name

        return hook

    if parts is not None:
        handles = [
            layer.register_forward_pre_hook(at(str(index)))
            for index, layer in enumerate(parts.layers)
        ]
        # What comes behind the last layer is the final norm, the LM head and the loss.
        handles.append(parts.layers[-1].register_forward_hook(at("head")))
    try:
        yield where
    finally:
        for handle in handles:
            handle.remove()


def look(model: Any, prompt: Sequence[int], ends: Sequence[int]) -> tuple[Look, np.ndarray]:
    """(what the model makes of a prompt, p of every next token)."""
    cache, written = new_cache(model), list[int]()
    with torch.no_grad():
        row = read(model, prompt, cache)[0]
        chances = torch.softmax(row, -1)
        best = chances.topk(min(TOP, len(chances)))
        while len(written) < WRITTEN:
            written.append(int(row.argmax()))
            if written[-1] in ends:
                break
            row = read(model, written[-1:], cache)[0]
    top = tuple(zip(best.indices.tolist(), best.values.tolist(), strict=True))
    return Look(top, tuple(written)), numpy_of(chances)
