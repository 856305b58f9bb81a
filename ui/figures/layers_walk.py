"""The walk through a layer in words and numbers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from core.anatomy import Operation, Totals, Walk
from core.model_info import ModelInfo
from ui.i18n import Catalog

UNITS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def flops_text(count: int) -> str:
    """5.9 M, 12.3 G, 640: three digits are enough to compare."""
    for size, unit in UNITS:
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return str(count)


def shape_text(operation: Operation) -> str:
    """T × D = 5 × 576; numbers alone for a module without letters."""
    sizes = " × ".join(f"{size:,}" for _, size in operation.shape)
    letters = " × ".join(letter for letter, _ in operation.shape)
    return f"{letters} = {sizes}" if letters.strip(" ×1") else sizes


def cost_text(operation: Operation, t: Catalog) -> str:
    """Parameters and FLOPs of one line."""
    n = operation.parameters
    weights = t("layers.parameters", n=f"{n:,}") if n else t("layers.no_parameters")
    if not operation.prefill:
        return weights
    work = t("layers.flops", prefill=flops_text(operation.prefill), step=flops_text(operation.step))
    return f"{weights} · {work}"


def sum_text(operations: Sequence[Operation], t: Catalog) -> str:
    """How many operations, and their parameters and FLOPs together."""
    parameters, prefill, step = summed(operations)
    weights = t("layers.parameters", n=f"{parameters:,}")
    words = [t("layers.operations", n=len(operations)), weights]
    if prefill:
        words.append(t("layers.flops", prefill=flops_text(prefill), step=flops_text(step)))
    return " · ".join(words)


def summed(operations: Iterable[Operation]) -> tuple[int, int, int]:
    """Parameters, FLOPs for the prompt and for one more position."""
    found = list(operations)
    return (
        sum(o.parameters for o in found),
        sum(o.prefill for o in found),
        sum(o.step for o in found),
    )


def name_text(operation: Operation, info: ModelInfo, t: Catalog) -> tuple[str, str]:
    """(plain words, technical term) of one line; module paths for what is unknown."""
    name = t(f"layers.op_{operation.kind}")
    if operation.kind == "other":
        return name, ", ".join(operation.parts)
    sharing = "keys_one" if info.kv_heads == 1 else "keys_shared"
    if info.heads == info.kv_heads:
        sharing = "keys_alone"
    term = t(
        f"layers.op_{operation.kind}_help",
        norm=norm_name(operation),
        gated=gated_name(info.activation),
        activation=info.activation,
        sharing=t(f"layers.{sharing}", n=info.heads // max(1, info.kv_heads)),
    )
    return name, term


def norm_name(operation: Operation) -> str:
    """Which norm the formula is: only a LayerNorm subtracts the mean."""
    return "LayerNorm" if r"\mu" in operation.formula else "RMSNorm"


def gated_name(activation: str) -> str:
    """Shazeer's name of a gated feed-forward part."""
    names = {"silu": "SwiGLU", "swish": "SwiGLU", "relu": "ReGLU"}
    return names.get(activation, "GeGLU" if activation.startswith("gelu") else "GLU")


def totals_table(whole: Totals, made: Walk, t: Catalog) -> pd.DataFrame:
    """Parameters and FLOPs before, in and after the layers, and of the whole model."""
    before, after = summed(made.before), summed(made.after)
    everything = (whole.parameters, whole.prefill, whole.step)
    layers = tuple(all_ - b - a for all_, b, a in zip(everything, before, after, strict=True))
    rows: Sequence[tuple[str, tuple[int, ...]]] = (
        (t("layers.walk_before"), before),
        (t("layers.total_layers", n=whole.layers), layers),
        (t("layers.walk_after"), after),
        (t("layers.total_whole"), everything),
    )
    return pd.DataFrame(
        {
            t("layers.total_part"): [name for name, _ in rows],
            t("layers.total_parameters"): [numbers[0] for _, numbers in rows],
            t("layers.total_prefill"): [flops_text(numbers[1]) for _, numbers in rows],
            t("layers.total_step"): [flops_text(numbers[2]) for _, numbers in rows],
        }
    )
