"""What fits where, and how fast it could be at best: theory, from counting and data sheets.

Times are lower bounds (roofline: Williams et al. 2009): each part takes as long as its bytes at
the full bandwidth or its operations at the full rate, whichever is longer. Real programs reach
a share of that; the share is measured elsewhere and stated beside.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from core.faults import Fault
from core.lab.shape import ModelShape

DEVICES: Final = Path(__file__).with_name("devices.toml")
Precision = Literal["fp32", "bf16", "int8", "int4"]
WEIGHT_BYTES: Final[dict[Precision, float]] = {"fp32": 4, "bf16": 2, "int8": 1, "int4": 0.5}
GROUP: Final = 64
"""Weights that share a scale where they are integers; scale and offset take 2 bytes each."""
EXCHANGE_SECONDS: Final = 10e-6
"""One all-reduce or hand-over within a machine, however small: assumed."""


@dataclass(frozen=True)
class Device:
    name: str
    memory: float
    """GB."""
    bandwidth: float
    """GB/s."""
    fp32: float
    """TFLOP/s."""
    bf16: float
    link: float
    """GB/s to the others, both directions together; 0 where there are none."""
    source: str
    date: str

    def rate(self, precision: Precision) -> float:
        """Operations a second; integer weights are unpacked and multiplied as bf16."""
        return (self.fp32 if precision == "fp32" else self.bf16) * 1e12


@cache
def devices() -> tuple[Device, ...]:
    """Those with published figures."""
    with DEVICES.open("rb") as file:
        return tuple(Device(**entry) for entry in tomllib.load(file)["device"])


@dataclass(frozen=True)
class Load:
    """What is to be run. Raises Fault with one sentence for illegal values."""

    precision: Precision = "bf16"
    batch: int = 1
    prompt: int = 512
    """Tokens read at once."""
    new: int = 128
    """Tokens written after it."""
    tensor_parallel: int = 1
    pipeline_parallel: int = 1

    def __post_init__(self) -> None:
        if self.precision not in WEIGHT_BYTES:
            allowed = ", ".join(WEIGHT_BYTES)
            raise Fault("unknown_precision", value=self.precision, allowed=allowed)
        limits = {"batch": 2**20, "prompt": 2**24, "new": 2**24, "tensor_parallel": 1024}
        for name, high in {**limits, "pipeline_parallel": 1024}.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise Fault("setting_not_whole", name=name, value=value)
            if not 1 <= value <= high:
                raise Fault("setting_out_of_range", name=name, value=value, low=1, high=high)

    @property
    def context(self) -> int:
        return self.prompt + self.new

    @property
    def devices(self) -> int:
        return self.tensor_parallel * self.pipeline_parallel

    @property
    def activation_bytes(self) -> int:
        return 4 if self.precision == "fp32" else 2


@dataclass(frozen=True)
class Plan:
    """All bytes are of one device, the fullest; all seconds lower bounds."""

    weights: float
    kv: float
    activations: float
    """Estimated: the widest tensors of one layer, for the positions read at once."""
    fits: bool
    first_token: float
    """Seconds from the prompt to its first token."""
    per_token: float
    """Seconds from one token to the next, at the middle of the text."""
    reading: float
    """Seconds of ``per_token`` that the bytes need at the full bandwidth."""
    computing: float
    """Seconds of ``per_token`` that the operations need at the full rate; both go on at once."""
    tokens_per_second: float
    """Of the whole batch; with pipeline stages, when each of them has a batch to work on."""
    bound: Literal["bandwidth", "compute", "communication"]
    """What takes most of ``per_token``."""
    communication_bytes: float
    """Sent by one device for one new token of the batch."""
    communication: float
    """Seconds of ``per_token``."""

    @property
    def memory(self) -> float:
        return self.weights + self.kv + self.activations

    @property
    def waiting_share(self) -> float:
        """The share of a step in which the arithmetic units wait, for memory or for others."""
        return 1 - self.computing / self.per_token


def plan(shape: ModelShape, device: Device, load: Load) -> Plan:
    """The bounds of ``shape`` on ``load.devices`` devices.

    Raises Fault where the heads or the layers cannot be dealt out to so many, or where the
    device stands alone.
    """
    tensor, stages = load.tensor_parallel, load.pipeline_parallel
    _check(shape, tensor, stages)
    if load.devices > 1 and device.link <= 0:
        raise Fault("device_alone", name=device.name)
    held = min(tensor, shape.kv_heads)
    kv_all = load.batch * shape.kv_bytes(load.context, load.activation_bytes)
    fullest = math.ceil(shape.layers / stages) / shape.layers
    kv = kv_all / held * fullest
    whole = weight_bytes(shape, load.precision)
    # The first stage holds the embedding matrix, the last one the LM head.
    table = table_bytes(shape, load.precision)
    tables = table * (1 if shape.tied else 2)
    weights = (whole if stages == 1 else (whole - tables) * fullest + table) / tensor
    activations = _activations(shape, load) / tensor
    bytes_sent, waiting = _communication(shape, device, load, 1)
    middle = load.prompt + max(1, load.new // 2)
    reading, computing = _decode(shape, device, load, middle, held)
    per_token = max(reading, computing) + waiting
    prompt_sent = _communication(shape, device, load, load.prompt)[1]
    flops = load.batch * shape.prefill_flops(load.prompt) / tensor
    prefill = max(flops / device.rate(load.precision), whole / tensor / (device.bandwidth * 1e9))
    times = {"bandwidth": reading, "compute": computing, "communication": waiting}
    bound: Literal["bandwidth", "compute", "communication"]
    bound = (
        "communication"
        if waiting > max(reading, computing)
        else ("bandwidth" if times["bandwidth"] >= times["compute"] else "compute")
    )
    return Plan(
        weights=weights,
        kv=kv,
        activations=activations,
        fits=weights + kv + activations <= device.memory * 1e9,
        first_token=prefill + prompt_sent,
        per_token=per_token,
        reading=reading,
        computing=computing,
        tokens_per_second=load.batch * stages / per_token,
        bound=bound,
        communication_bytes=bytes_sent,
        communication=waiting,
    )


def weight_bytes(shape: ModelShape, precision: Precision) -> float:
    """Of the whole model. Integers bring scale and offset of each group; tables and norms are
    not rounded and stay at two bytes."""
    if precision in ("fp32", "bf16"):
        return shape.parameters * WEIGHT_BYTES[precision]
    tables = shape.table_parameters * (1 if shape.tied else 2) + shape.norm_parameters
    return (shape.parameters - tables) * (WEIGHT_BYTES[precision] + 4 / GROUP) + tables * 2


def table_bytes(shape: ModelShape, precision: Precision) -> float:
    """Of the embedding matrix, or of the LM head."""
    return shape.table_parameters * (4 if precision == "fp32" else 2)


def _check(shape: ModelShape, tensor: int, stages: int) -> None:
    if shape.heads % tensor:
        raise Fault("heads_do_not_split", heads=shape.heads, ranks=tensor)
    if shape.kv_heads % tensor and tensor % shape.kv_heads:
        raise Fault("heads_do_not_split", heads=shape.kv_heads, ranks=tensor)
    if stages > shape.layers:
        raise Fault("more_stages_than_layers", layers=shape.layers, stages=stages)


def _activations(shape: ModelShape, load: Load) -> float:
    inner = (2 if shape.gated else 1) * shape.feed_forward * shape.active
    widest = max(inner, (shape.heads + 2 * shape.kv_heads) * shape.head_dim) + 2 * shape.width
    logits = load.batch * shape.vocabulary * 4
    return load.batch * load.prompt * widest * load.activation_bytes + logits


def _decode(
    shape: ModelShape, device: Device, load: Load, context: int, held: int
) -> tuple[float, float]:
    """(seconds of reading, seconds of computing) of one token, through all stages in turn."""
    bytes_each = weight_bytes(shape, load.precision) / shape.parameters
    idle = shape.experts - shape.experts_met(load.batch)
    unread = shape.layers * idle * shape.expert_parameters * bytes_each
    # The embedding matrix is looked up, not read; a tied one is read as the LM head.
    unread += 0 if shape.tied else shape.table_parameters * bytes_each
    weights = (weight_bytes(shape, load.precision) - unread) / load.tensor_parallel
    kv = load.batch * shape.kv_bytes(context, load.activation_bytes) / held
    flops = load.batch * shape.decode_flops(context) / load.tensor_parallel
    return (weights + kv) / (device.bandwidth * 1e9), flops / device.rate(load.precision)


def _communication(
    shape: ModelShape, device: Device, load: Load, tokens: int
) -> tuple[float, float]:
    """(bytes that one device sends, seconds) for ``tokens`` positions of the batch.

    Tensor parallel: two all-reduces a layer, as a ring 2(W - 1)/W of the tensor each. Pipeline:
    one hand-over at each border.
    """
    tensor, stages = load.tensor_parallel, load.pipeline_parallel
    size = load.batch * tokens * shape.width * load.activation_bytes
    rounds = 2 * shape.layers if tensor > 1 else 0
    ring = rounds * size * 2 * (tensor - 1) / tensor
    hand_over = (stages - 1) * size / tensor
    exchanges = rounds + stages - 1
    if not exchanges:
        return 0.0, 0.0
    one_way = device.link / 2 * 1e9
    # A text crosses every border, a device stands in front of one.
    sent = ring / stages + (size / tensor if stages > 1 else 0.0)
    return sent, (ring + hand_over) / one_way + exchanges * EXCHANGE_SECONDS
