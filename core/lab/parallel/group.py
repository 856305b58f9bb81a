"""A worker's place among the ranks: who they are, and what is sent between them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from core.lab.parallel.skeleton import DTYPES, loopback


class Group:
    """The ranks of one experiment. They meet in a file that only they can read, and speak over
    the loopback interface; NCCL where every rank has an accelerator of its own."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.rank, self.ranks = int(spec["rank"]), int(spec["ranks"])
        self.dtype = DTYPES[spec["dtype"]]
        torch.set_num_threads(int(spec["threads"]))
        own = torch.cuda.device_count() >= self.ranks
        self.backend = "nccl" if own else "gloo"
        self.device = torch.device("cuda", self.rank) if own else torch.device("cpu")
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback())
        # (torch exports it in a way that its own types do not know.)
        store = dist.FileStore(spec["meeting"], self.ranks)  # type: ignore[attr-defined]
        dist.init_process_group(
            self.backend,
            store=store,
            rank=self.rank,
            world_size=self.ranks,
            timeout=timedelta(seconds=float(spec["patience"])),
        )
        self.waited = 0.0
        """Seconds spent in sending and waiting since the last reset."""
        self.what = ""
        """What is being sent now."""

    @contextmanager
    def sending(self, what: str) -> Iterator[None]:
        """Time what is sent in the body, under that name."""
        before, self.what = self.what, what
        began = time.perf_counter()
        try:
            yield
        finally:
            self.waited += time.perf_counter() - began
            self.what = before

    def add_up(self, tensor: Tensor, what: str) -> Tensor:
        """The sum over all ranks, in place (all-reduce)."""
        with self.sending(what):
            dist.all_reduce(tensor)
        return tensor

    def side_by_side(self, tensor: Tensor, sizes: list[int], what: str) -> Tensor:
        """The ranks' slices of the last dimension next to each other, on every rank
        (all-gather). Shorter slices travel with filling, as all must be of one size."""
        longest = max(sizes)
        own = torch.nn.functional.pad(tensor, (0, longest - tensor.shape[-1])).contiguous()
        found = [torch.empty_like(own) for _ in sizes]
        with self.sending(what):
            dist.all_gather(found, own)
        return torch.cat([t[..., :n] for t, n in zip(found, sizes, strict=True)], dim=-1)

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        dist.barrier()

    def settle(self) -> None:
        """Wait until an accelerator has done what it was told, so that its time is counted."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


class Watch(TorchDispatchMode):
    """Counts what torch itself hands to its communication operations, by ``group.what``."""

    def __init__(self, group: Group) -> None:
        super().__init__()
        self._group = group
        self.calls: dict[str, int] = {}
        self.bytes: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "c10d" and self._group.what:
            # The results of a gather come first, what this rank gives after them.
            given = args[1] if "gather" in func.__name__ else args[0]
            size = sum(t.numel() * t.element_size() for t in _tensors(given))
            what = self._group.what
            self.calls[what] = self.calls.get(what, 0) + 1
            self.bytes[what] = self.bytes.get(what, 0) + size
        return func(*args, **(kwargs or {}))

    @property
    def seen(self) -> dict[str, list[int]]:
        """What → [calls, bytes]."""
        return {what: [self.calls[what], self.bytes[what]] for what in self.calls}


def _tensors(found: Any) -> Iterator[Tensor]:
    if isinstance(found, Tensor):
        yield found
    elif isinstance(found, list | tuple):
        for each in found:
            yield from _tensors(each)
