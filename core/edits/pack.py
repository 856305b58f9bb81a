"""Weights really stored in fewer bytes, and multiplied from there.

The products are torch's own kernels for int8 and int4 weights with bf16 activations, which give
real memory and real speed on a CPU. They are private functions of torch, and some shapes make
them fail without a word, so matrices are padded to shapes that they take; where a kernel is
missing, or computes something else on this machine, the weights are unpacked and multiplied.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from typing import Any, Final

import torch
from torch import Tensor, nn

from core.edits.grid import Grid
from core.edits.rounding import coded, matrices, rows_of
from core.edits.spec import Packing

STEP: Final = 32
"""Columns of an int8 matrix are padded to a multiple of it: on others the kernel reads past the
end (torch 2.13: wrong numbers, or a crash)."""
ROWS: Final = 16
"""Rows of an int4 matrix, likewise."""
DTYPE: Final = torch.bfloat16
"""Of the activations, and of what is not packed."""


class Packed(nn.Module, ABC):
    """A linear layer whose weights are kept as codes. To readers it looks like ``nn.Linear``."""

    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None, copied: bool) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.kernel = True
        """Whether the product is made from the codes, without unpacking them first."""
        self.copied = copied
        """Whether the same weights are also kept elsewhere: an LM head that was the embedding."""
        self.bias = None if bias is None else nn.Parameter(bias.to(DTYPE), requires_grad=False)

    @property
    @abstractmethod
    def weight(self) -> Tensor:
        """The weights that the codes stand for, [out, in], bf16. Made anew each time."""

    @abstractmethod
    def multiply(self, x: Tensor) -> Tensor:
        """x·Wᵀ for x [row, in] in bf16, as bf16."""

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, self.in_features).to(DTYPE)
        grad = torch.is_grad_enabled() and x.requires_grad
        product = _WithGradient.apply(flat, self) if grad else self.multiply(flat)
        if self.bias is not None:
            product = product + self.bias
        out: Tensor = product.reshape(*x.shape[:-1], self.out_features).to(x.dtype)
        return out

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}"


class _WithGradient(torch.autograd.Function):
    """The kernels know no gradients: that of the input is the way back through the weights."""

    @staticmethod
    def forward(context: Any, x: Tensor, layer: Packed) -> Tensor:
        context.layer = layer
        return layer.multiply(x)

    @staticmethod
    def backward(context: Any, *gradients: Any) -> tuple[Tensor, None]:
        weight = context.layer.weight
        return gradients[0].to(weight.dtype) @ weight, None


class Int8Linear(Packed):
    """8-bit codes, one scale a row: the grid ``bits:8:channel``."""

    codes: Tensor
    scale: Tensor

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, copied: bool = False) -> None:
        super().__init__(weight, bias, copied)
        found = coded(weight, Grid(8, "channel"))
        padding = -weight.shape[1] % STEP
        self.kernel = has_int8(weight.device.type)
        codes = nn.functional.pad(found.codes.to(torch.int8), (0, padding)).contiguous()
        self.register_buffer("codes", codes)
        self.register_buffer("scale", found.scale[:, 0].to(DTYPE))

    @property
    def weight(self) -> Tensor:
        codes = self.codes[:, : self.in_features].float()
        return (codes * self.scale.float()[:, None]).to(DTYPE)

    def multiply(self, x: Tensor) -> Tensor:
        if not self.kernel:
            return x @ self.weight.T
        wide = _padded(x, self.codes.shape[1])
        product: Tensor = torch._weight_int8pack_mm(wide, self.codes, self.scale)
        return product


class Int4Linear(Packed):
    """4-bit codes, a scale and an offset a group: the grid ``bits:4:group:…:asym``."""

    codes: Tensor
    """As the kernel wants them, or two to a byte: [out, in / 2], uint8."""
    scales: Tensor
    """[in / group, out, 2]: the scale, and what code 8 stands for; bf16."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None = None, *, group: int = 64, copied: bool = False
    ) -> None:
        super().__init__(weight, bias, copied)
        found = coded(weight, Grid(4, "group", group, symmetric=False))
        padding = (0, -weight.shape[1] % group, 0, -weight.shape[0] % ROWS)
        codes = nn.functional.pad(found.codes.to(torch.int32), padding).contiguous()
        self.group = group
        self.kernel = has_int4(weight.device.type)
        packed = (
            torch._convert_weight_to_int4pack_for_cpu(codes, 1)
            if self.kernel
            else (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8)
        )
        pairs = torch.stack([found.scale, found.offset + 8 * found.scale], dim=-1)
        pairs = nn.functional.pad(pairs, (0, 0, 0, 0, 0, padding[3]))
        self.register_buffer("codes", packed)
        self.register_buffer("scales", pairs.permute(1, 0, 2).contiguous().to(DTYPE))

    @property
    def weight(self) -> Tensor:
        if self.kernel:
            # How the kernel lays out its codes is its own business: it is asked for each column.
            one = torch.eye(self.in_features, dtype=DTYPE, device=self.codes.device)
            columns: Tensor = self.multiply(one)
            return columns.T
        codes = torch.stack([self.codes & 15, self.codes >> 4], dim=-1).flatten(1)
        scale, eight = self.scales.float().transpose(0, 1).unbind(-1)
        groups = codes.float().unflatten(1, (-1, self.group)) - 8
        whole: Tensor = (groups * scale[..., None] + eight[..., None]).flatten(1).to(DTYPE)
        return whole[: self.out_features, : self.in_features]

    def multiply(self, x: Tensor) -> Tensor:
        if not self.kernel:
            return x @ self.weight.T
        wide = _padded(x, self.scales.shape[0] * self.group)
        product: Tensor = torch._weight_int4pack_mm_for_cpu(
            wide, self.codes, self.group, self.scales
        )
        return product[:, : self.out_features]


def _padded(x: Tensor, columns: int) -> Tensor:
    """``x`` with zeros on the right, in one piece."""
    return nn.functional.pad(x, (0, columns - x.shape[1])).contiguous()


# ---------------------------------------------------------------- are the kernels what they should


@cache
def has_int8(device: str) -> bool:
    """Whether torch multiplies int8 weights here, and rightly."""
    if device != "cpu" or not hasattr(torch, "_weight_int8pack_mm"):
        return False
    codes = torch.arange(-32, 32, dtype=torch.int8).repeat(16, 1)
    x, scale = torch.linspace(-1, 1, 64).to(DTYPE)[None], torch.full((16,), 0.5, dtype=DTYPE)
    try:
        found = torch._weight_int8pack_mm(x, codes, scale)
    except RuntimeError:
        return False
    return _close(found, x.float() @ codes.float().T * 0.5)


@cache
def has_int4(device: str) -> bool:
    """Whether torch multiplies int4 weights here, and rightly."""
    names = ("_weight_int4pack_mm_for_cpu", "_convert_weight_to_int4pack_for_cpu")
    if device != "cpu" or not all(hasattr(torch, name) for name in names):
        return False
    codes = torch.arange(64, dtype=torch.int32).remainder(16).repeat(16, 1)
    x, scales = torch.linspace(-1, 1, 64).to(DTYPE)[None], torch.ones(2, 16, 2, dtype=DTYPE)
    try:
        packed = torch._convert_weight_to_int4pack_for_cpu(codes, 1)
        found = torch._weight_int4pack_mm_for_cpu(x, packed, 32, scales)
    except RuntimeError:
        return False
    return _close(found, x.float() @ (codes.float() - 7).T)


def _close(found: Tensor, wanted: Tensor) -> bool:
    return bool(torch.allclose(found.float(), wanted, rtol=0.02, atol=0.05))


# ---------------------------------------------------------------- a whole model


def pack_weights(model: Any, packing: Packing) -> None:
    """Store every matrix as ``packing`` says, and all else as bf16, in place.

    Raises Fault where bitsandbytes is asked for and is not here.
    """
    if packing.storage in ("nf4", "bnb8"):
        from core.edits.pack_bnb import check  # noqa: PLC0415 - optional

        check()
    # Not in inference mode, whose tensors know no gradients: attribution needs them.
    with torch.no_grad():
        if packing.storage != "bf16":
            _replace(model, packing)
        for parameter in model.parameters():
            if parameter.is_floating_point():
                # The buffers stay: rotary frequencies rounded to bf16 would be another model's.
                parameter.data = parameter.data.to(DTYPE)
    head = model.get_output_embeddings()
    if type(head) is nn.Linear:
        head.register_forward_pre_hook(_laid_anew)
    model.config.dtype = DTYPE


def _laid_anew(_: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
    """The last position of a text, as it lies in memory by itself. With the strides of the whole
    text, torch 2.13 takes the slow way through the LM head: 20 times the time in bf16."""
    (x,) = args
    return (x.reshape(-1, x.shape[-1]).view(x.shape),)


def _replace(model: Any, packing: Packing) -> None:
    head, table = model.get_output_embeddings(), model.get_input_embeddings()
    for name, module in list(matrices(model, head=packing.head)):
        copied = module is head and module.weight is table.weight
        new = _packed(rows_of(module), module.bias, packing, copied)
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, new.train(module.training))


def _packed(weight: Tensor, bias: Tensor | None, packing: Packing, copied: bool) -> Packed:
    if packing.storage == "int8":
        return Int8Linear(weight, bias, copied=copied)
    if packing.storage == "int4":
        return Int4Linear(weight, bias, group=packing.group, copied=copied)
    from core.edits.pack_bnb import Bnb8Linear, Nf4Linear  # noqa: PLC0415 - optional

    kind = Nf4Linear if packing.storage == "nf4" else Bnb8Linear
    return kind(weight, bias, copied=copied)
