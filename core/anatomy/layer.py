"""One layer, operation by operation, in the order of its architecture."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from core.anatomy import formulas
from core.anatomy.records import Operation, Shape, Sizes, Structure, product_of
from core.model_info import ModelInfo, Part, Rope

_IN_ATTENTION: Final = r"(?:self_attn|attn|attention|self_attention)\."
_IN_FEED_FORWARD: Final = r"(?:mlp|feed_forward|ffn)\."
_ROLES: Final[dict[str, str]] = {
    "queries": _IN_ATTENTION + r"q_proj",
    "keys": _IN_ATTENTION + r"k_proj",
    "values": _IN_ATTENTION + r"v_proj",
    "qkv": _IN_ATTENTION + r"(?:c_attn|qkv_proj|query_key_value|Wqkv)",
    "output": _IN_ATTENTION + r"(?:o_proj|out_proj|dense|c_proj)",
    "query_norm": _IN_ATTENTION + r"(?:q_norm|q_layernorm)",
    "key_norm": _IN_ATTENTION + r"(?:k_norm|k_layernorm)",
    "gate": _IN_FEED_FORWARD + r"gate_proj",
    "up": _IN_FEED_FORWARD + r"(?:up_proj|fc1|c_fc|dense_h_to_4h)",
    "gate_up": _IN_FEED_FORWARD + r"gate_up_proj",
    "down": _IN_FEED_FORWARD + r"(?:down_proj|fc2|c_proj|dense_4h_to_h)",
    "first_norm": r"(?:input_layernorm|ln_1)",
    "second_norm": r"(?:post_attention_layernorm|ln_2)",
    "third_norm": r"pre_feedforward_layernorm",
    "fourth_norm": r"post_feedforward_layernorm",
}
_STRUCTURES: Final[dict[tuple[str, ...], Structure]] = {
    ("first_norm",): "parallel",
    ("first_norm", "second_norm"): "sequential",
    ("first_norm", "second_norm", "third_norm", "fourth_norm"): "sandwich",
    ("second_norm", "fourth_norm"): "behind",
}
_OTHER_ORDER: Final = ("GPTNeoX", "Falcon", "GPTJ", "Cohere2Moe")
"""Beginnings of class names whose order the names of their norms don't tell."""


def roles_of(own: Sequence[Part]) -> dict[str, Part]:
    """Role → part of the layer; the first part that fits."""
    found: dict[str, Part] = {}
    for part in own:
        for role, pattern in _ROLES.items():
            if role not in found and re.search(rf"\.\d+\.{pattern}$", part.name):
                found[role] = part
                break
    return found


def structure_of(info: ModelInfo, roles: dict[str, Part]) -> Structure:
    if info.architecture.startswith(_OTHER_ORDER):
        return "unknown"
    norms = tuple(r for r in ("first", "second", "third", "fourth") if f"{r}_norm" in roles)
    return _STRUCTURES.get(tuple(f"{norm}_norm" for norm in norms), "unknown")


class Layer:
    """Builds the operations of one layer in the order of its structure."""

    def __init__(  # noqa: PLR0917 - one value each of what a layer is
        self,
        info: ModelInfo,
        roles: dict[str, Part],
        structure: Structure,
        sizes: Sizes,
        window: int | None,
        rope: Rope | None,
        scaling: float | None,
    ) -> None:
        self.info, self.roles, self.structure = info, roles, structure
        self.sizes, self.rope, self.scaling = sizes, rope, scaling
        self.seen = sizes.seen if window is None else min(sizes.seen, window)
        self.stream: Shape = (("T", sizes.read), ("D", info.width))

    def operations(self) -> Iterator[Operation]:
        """In order; parts that no line names are left to the caller."""
        behind, parallel = self.structure == "behind", self.structure == "parallel"
        if not behind:
            yield from self.norm("first_norm", "h", r"\hat h", "norm")
        yield from self.attention("h" if behind else r"\hat h")
        if self.structure in ("sandwich", "behind"):
            yield from self.norm("second_norm", "o", "o'", "norm_after")
        if not parallel:
            yield self.plain("residual", rf"h\leftarrow h+{self.after('o')}", self.stream)
            following = "third_norm" if self.structure == "sandwich" else "second_norm"
            if not behind:
                yield from self.norm(following, "h", r"\hat h", "norm")
        yield from self.feed_forward("h" if behind else r"\hat h")
        if self.structure in ("sandwich", "behind"):
            yield from self.norm("fourth_norm", "f", "f'", "norm_after")
        both = "o+f" if parallel else self.after("f")
        kind = "residual_both" if parallel else "residual"
        yield self.plain(kind, rf"h\leftarrow h+{both}", self.stream)

    def after(self, name: str) -> str:
        return f"{name}'" if self.structure in ("sandwich", "behind") else name

    def plain(self, kind: str, formula: str, shape: Shape) -> Operation:
        return Operation(kind, formula, shape, 0, 0, 0)

    def norm(self, role: str, x: str, y: str, kind: str) -> Iterator[Operation]:
        part = self.roles.get(role)
        if part is not None:
            yield self.of(kind, formulas.norm(part, x, y), self.stream, part, product=False)

    def of(
        self, kind: str, formula: str, shape: Shape, *parts: Part, product: bool = True
    ) -> Operation:
        read, step = (self.sizes.read, 1) if product else (0, 0)
        return Operation(
            kind,
            formula,
            shape,
            sum(part.parameters for part in parts),
            sum(product_of(part, read) for part in parts),
            sum(product_of(part, step) for part in parts),
            tuple(part.name for part in parts),
        )

    def attention(self, read: str) -> Iterator[Operation]:
        info, roles, t = self.info, self.roles, self.sizes.read
        heads: Shape = (("H", info.heads), ("T", t), ("d", info.head_dim))
        groups: Shape = (("G", info.kv_heads), ("T", t), ("d", info.head_dim))
        fused = roles.get("qkv")
        if fused is not None:
            wide = (("T", t), ("(H+2G)d", (info.heads + 2 * info.kv_heads) * info.head_dim))
            yield self.of("qkv", formulas.linear(fused, "QKV", read, "[Q,K,V]"), wide, fused)
        for role, name, shape in (
            ("queries", "Q", heads),
            ("keys", "K", groups),
            ("values", "V", groups),
        ):
            if role in roles:
                formula = formulas.linear(roles[role], name, read, name)
                yield self.of(role, formula, shape, roles[role])
        norms = [roles[role] for role in ("query_norm", "key_norm") if role in roles]
        if norms:
            yield self.of("head_norm", formulas.head_norm(norms[0]), heads, *norms, product=False)
        if self.rope is not None or info.positions == "rope":
            formula = formulas.rotation(self.rope) if self.rope is not None else ""
            yield self.plain("rope", formula, heads)
        yield from self.weights()
        if "output" in roles:
            joined = r"[O_1,\dots,O_H]"
            formula = formulas.linear(roles["output"], "O", joined, "o")
            yield self.of("output", formula, self.stream, roles["output"])

    def weights(self) -> Iterator[Operation]:
        """Scores, softmax and the weighted sum: products without parameters."""
        info, t = self.info, self.sizes.read
        square: Shape = (("H", info.heads), ("T", t), ("T", t))
        prefill = 2 * t * t * info.heads * info.head_dim
        step = 2 * self.seen * info.heads * info.head_dim
        formula = formulas.scores(info.heads, info.kv_heads, info.head_dim, self.scaling)
        yield Operation("scores", formula, square, 0, prefill, step)
        yield self.plain("softmax", r"P_h=\mathrm{softmax}(A_h)", square)
        mixed: Shape = (("H", info.heads), ("T", t), ("d", info.head_dim))
        group = formulas.shared(info.heads, info.kv_heads)
        yield Operation("mix", rf"O_h=P_h V_{{{group}}}", mixed, 0, prefill, step)

    def feed_forward(self, read: str) -> Iterator[Operation]:
        info, roles, t = self.info, self.roles, self.sizes.read
        inner: Shape = (("T", t), ("I", info.intermediate))
        for role, name, written in (
            ("gate_up", "gu", "[g,u]"),
            ("gate", "g", "g"),
            ("up", "u", "u"),
        ):
            if role in roles:
                wide = (("T", t), ("2I", 2 * info.intermediate)) if role == "gate_up" else inner
                formula = formulas.linear(roles[role], name, read, written)
                yield self.of(role, formula, wide, roles[role])
        if "down" in roles:
            formula = formulas.activation(info.activation, gated=info.gated)
            yield self.plain("gated" if info.gated else "activation", formula, inner)
            formula = formulas.linear(roles["down"], "d", "a", "f")
            yield self.of("down", formula, self.stream, roles["down"])
