"""What a run will hold in memory, said before it starts, and what is too much.

All figures are computed from the model's shapes, in bytes; nothing here is measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.faults import Fault
from core.limits import limit, megabytes
from core.model_info import ModelInfo
from core.trace import Capture


def attention_limit() -> int:
    """Bytes up to which the attention maps of a run are kept: 544 tokens of SmolLM2-135M."""
    return megabytes("TOKEN_BY_TOKEN_ATTENTION_MB", 320)


@dataclass(frozen=True)
class Cost:
    """Bytes that the records of a run will hold, by part."""

    attention: int
    """0 where the maps are too large to keep; the run then goes on without them."""
    residual: int
    logits: int
    kv_cache: int
    attention_kept: bool

    @property
    def total(self) -> int:
        return self.attention + self.residual + self.logits + self.kv_cache


def attention_bytes(info: ModelInfo, start: int, stop: int, layers: int | None = None) -> int:
    """Weights of the query rows ``start`` … ``stop - 1``, 4 bytes each, all heads of ``layers``."""
    if layers is None:
        layers = info.layers - len(info.without_attention)
    return layers * info.heads * (stop - start) * stop * 4


def kv_bytes_per_token(info: ModelInfo, bytes_per_value: int = 4) -> int:
    """2 · layers · KV heads · head width · bytes: keys and values of one position.

    An upper bound for sliding-window layers, which stop growing at their window.
    """
    layers = info.layers - len(info.without_attention)
    return 2 * layers * info.kv_heads * info.head_dim * bytes_per_value


def cost(info: ModelInfo, prompt: int, new: int) -> Cost:
    """The cost of reading ``prompt`` tokens and choosing ``new`` more."""
    stop = prompt + new
    maps = attention_bytes(info, 0, prompt)
    maps += sum(attention_bytes(info, p, p + 1) for p in range(prompt, stop - 1))
    kept = maps <= attention_limit()
    width = 4 * info.width
    return Cost(
        attention=maps if kept else 0,
        residual=(info.layers + 1) * stop * width,
        logits=4 * info.vocabulary * max(new, 1),
        kv_cache=kv_bytes_per_token(info) * stop,
        attention_kept=kept,
    )


def fitting_capture(info: ModelInfo, start: int, stop: int, capture: Capture) -> Capture:
    """``capture`` without what would exceed the limit; one layer alone fits more often."""
    layers = info.layers if capture.layer is None else 1
    size = attention_bytes(info, start, stop, None if capture.layer is None else 1)
    neurons = 3 * 4 * layers * (stop - start) * info.intermediate
    return replace(
        capture,
        attention=capture.attention and size <= attention_limit(),
        scores=capture.scores and 2 * size <= attention_limit(),
        neurons=capture.neurons and neurons <= attention_limit(),
    )


def prompt_limit(info: ModelInfo) -> int:
    """Most prompt tokens that are read, so that one reader cannot hold up a class.

    Room for one new token stays in the context.
    """
    return min(info.context - 1, int(limit("TOKEN_BY_TOKEN_MAX_PROMPT", 1024)))


def check_prompt(info: ModelInfo, tokens: int) -> None:
    """Raise Fault when a prompt of so many tokens is empty or does not fit."""
    if tokens == 0:
        raise Fault("empty_prompt")
    if tokens > prompt_limit(info):
        raise Fault("prompt_too_long", tokens=tokens, limit=prompt_limit(info), model=info.name)
