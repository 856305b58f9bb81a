"""The formulas of a decoder layer, in LaTeX, as a given architecture computes them.

h is the residual stream, ĥ the normed stream; weights of a ``Linear`` stand transposed, as they
are stored [out, in]; those of GPT-2's ``Conv1D`` are stored [in, out].
"""

from __future__ import annotations

import math
from typing import Final

from core.model_info import Part, Rope

ONE_PLUS: Final = ("GemmaRMSNorm", "Gemma2RMSNorm", "Gemma3RMSNorm", "Qwen3NextRMSNorm")
"""Norms whose stored weight is the distance from 1."""
_ACTIVATIONS: Final = {
    "silu": (r"\mathrm{SiLU}", r"x\,\sigma(x)"),
    "swish": (r"\mathrm{SiLU}", r"x\,\sigma(x)"),
    "gelu": (r"\mathrm{GELU}", r"x\,\Phi(x)"),
    "relu": (r"\mathrm{ReLU}", r"\max(0,x)"),
    "relu2": (r"\mathrm{ReLU}^2", r"\max(0,x)^2"),
}
_TANH: Final = (
    r"\mathrm{GELU}",
    r"\tfrac x2\left(1+\tanh\left[\sqrt{2/\pi}\,(x+0.044715\,x^3)\right]\right)",
)
for _name in ("gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python_tanh"):
    _ACTIVATIONS[_name] = _TANH


def bias(part: Part, name: str) -> str:
    """`` + b`` where the part has one."""
    return f"+b_{{{name}}}" if any(w == "bias" for w, _, _ in part.weights) else ""


def matrix(part: Part, name: str) -> str:
    """The weight as it is multiplied from the right."""
    return f"W_{{{name}}}" if part.kind == "Conv1D" else rf"W_{{{name}}}^{{\mathsf T}}"


def linear(part: Part, name: str, read: str, written: str) -> str:
    return rf"{written}={read}\,{matrix(part, name)}{bias(part, name)}"


def norm(part: Part, x: str, y: str) -> str:
    """RMSNorm or LayerNorm of ``x``, as the part is."""
    if "RMS" in part.kind:
        weight = "(1+w)" if part.kind in ONE_PLUS else "w"
        under = rf"\sqrt{{\tfrac1D\sum_i {x}_i^2+\varepsilon}}"
        return rf"{y}=\frac{{{x}}}{{{under}}}\odot {weight}"
    shift = bias(part, "")[:2]
    return rf"{y}=\frac{{{x}-\mu}}{{\sqrt{{\sigma^2+\varepsilon}}}}\odot w{shift}"


def head_norm(part: Part) -> str:
    """The norm on each query and key head."""
    name = r"\mathrm{RMSNorm}" if "RMS" in part.kind else r"\mathrm{LayerNorm}"
    return rf"q\leftarrow {name}(q),\quad k\leftarrow {name}(k)"


def rotation(rope: Rope) -> str:
    """The pair of dimensions that is rotated, by position times frequency."""
    if rope.layout == "halves":
        first, second = "x_i", rf"x_{{i+{rope.dims // 2}}}"
    else:
        first, second = "x_{2i}", "x_{2i+1}"
    pair = rf"\begin{{pmatrix}}{first}\\{second}\end{{pmatrix}}"
    turn = (
        r"\begin{pmatrix}\cos p\theta_i&-\sin p\theta_i\\\sin p\theta_i&\cos p\theta_i\end{pmatrix}"
    )
    return rf"{pair}\leftarrow {turn}{pair}"


def scores(heads: int, kv_heads: int, head_dim: int, scaling: float | None) -> str:
    usual = scaling is None or math.isclose(scaling, head_dim**-0.5, rel_tol=1e-3)
    product = rf"Q_h K_{{{shared(heads, kv_heads)}}}^{{\mathsf T}}"
    if usual:
        return rf"A_h=\frac{{{product}}}{{\sqrt d}}+M"
    return rf"A_h={scaling:.4g}\cdot {product}+M"


def shared(heads: int, kv_heads: int) -> str:
    """Which KV head serves query head h."""
    if heads == kv_heads:
        return "h"
    return r"1" if kv_heads == 1 else rf"\lceil h/{heads // kv_heads}\rceil"


def activation(name: str, *, gated: bool) -> str:
    """What enters the down projection, and the function written out."""
    symbol, body = _ACTIVATIONS.get(name, (rf"\mathrm{{{_letters(name) or 'act'}}}", ""))
    made = rf"a={symbol}(g)\odot u" if gated else rf"a={symbol}(u)"
    # Two lines: one would be wider than a phone.
    return rf"\begin{{gathered}}{made}\\{symbol}(x)={body}\end{{gathered}}" if body else made


def _letters(name: str) -> str:
    return "".join(char for char in name if char.isascii() and char.isalnum())
