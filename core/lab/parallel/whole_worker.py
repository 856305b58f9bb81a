"""A worker with the whole model: a replica, or one that has less memory than the model needs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, DynamicCache

from core.lab.parallel.skeleton import DTYPES, held_bytes


class WholeTask:
    """See :class:`core.lab.parallel.worker.Task`."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        torch.set_num_threads(int(spec["threads"]))
        self._model: Any = None
        self._cache: Any = None
        self._ids: torch.Tensor | None = None

    def do(self, what: str, asked: dict[str, Any]) -> dict[str, Any]:
        with torch.inference_mode():
            if what == "load":
                return self._load(asked.get("memory"))
            if what == "read":
                return self._read(asked["ids"], int(asked.get("copies", 1)), asked)
            if what == "step":
                return self._step(asked.get("file"))
        raise ValueError(what)

    def _load(self, memory: int | None) -> dict[str, Any]:
        """All of it, or with ``memory``: as much as fits into so many bytes, the rest on disk."""
        began = time.perf_counter()
        options: dict[str, Any] = {"attn_implementation": "eager"}
        if memory is None and torch.cuda.is_available():
            options["device_map"] = {"": int(self._spec["rank"]) % torch.cuda.device_count()}
        elif memory is not None:
            fast: dict[Any, Any] = {0: memory} if torch.cuda.is_available() else {"cpu": memory}
            options |= {
                "device_map": "auto",
                "max_memory": fast,
                "offload_folder": str(Path(self._spec["out"]) / "offload"),
            }
        model: Any = AutoModelForCausalLM.from_pretrained(
            self._spec["folder"],
            dtype=DTYPES[self._spec["dtype"]],
            trust_remote_code=False,
            use_safetensors=True,
            local_files_only=True,
            **options,
        )
        self._model = model.eval().requires_grad_(False)
        return {
            "ms": 1000 * (time.perf_counter() - began),
            "weights": held_bytes(model),
            "places": _places(model),
        }

    def _read(self, ids: list[int], copies: int, asked: dict[str, Any]) -> dict[str, Any]:
        """Read the prompt, as many times side by side as there are texts to be continued."""
        if "threads" in asked:
            torch.set_num_threads(int(asked["threads"]))
        self._cache = DynamicCache(config=self._model.config)
        rows = torch.tensor([ids], device=self._device).expand(copies, -1)
        began = time.perf_counter()
        self._advance(rows)
        return {"ms": 1000 * (time.perf_counter() - began)}

    def _step(self, file: str | None) -> dict[str, Any]:
        """One token more of every text, the likeliest."""
        assert self._ids is not None
        began = time.perf_counter()
        logits = self._advance(self._ids)
        took = time.perf_counter() - began
        if file is not None:
            np.savez(Path(self._spec["out"]) / file, logits=logits[0].float().cpu().numpy())
        return {"ms": 1000 * took}

    def _advance(self, ids: torch.Tensor) -> torch.Tensor:
        output = self._model(ids, cache=self._cache, use_cache=True, logits_to_keep=1)
        logits: torch.Tensor = output.logits[:, -1]
        # Choosing the token also waits for an accelerator to be done.
        self._ids = logits.argmax(-1, keepdim=True).cpu().to(self._device)
        return logits

    @property
    def _device(self) -> torch.device:
        return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")


def _places(model: Any) -> list[list[Any]]:
    """[module, where, bytes] in the model's order; a tied table counts where it comes first."""
    table: dict[str, Any] = getattr(model, "hf_device_map", {"": "cpu"})
    seen: set[str] = set()
    found = []
    tied = {"lm_head"} if model.config.get_text_config().tie_word_embeddings else set()
    for name, where in table.items():
        module = model.get_submodule(name) if name else model
        size = 0
        for path, parameter in module.named_parameters():
            full = f"{name}.{path}"
            if full not in seen and name not in tied:
                seen.add(full)
                size += parameter.numel() * parameter.element_size()
        found.append([name or "model", str(where), size])
    return found
