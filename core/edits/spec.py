"""What is done to a model's weights, as one line: ``neurons:0.2+bits:4:group:64``.

An edit is part of a model's name (``smollm2-135m#bits:4``), so whatever can name a model, a
link, a column or a command, can name an edited one. Parts are joined by ``+``, in any order;
they are done in the order of the fields of :class:`ModelEdit`, and layers and heads are counted
as in the original, whatever else goes. Equal edits are spelled equally.

    layers:3.7              these layers are taken out
    groups:1                so many KV heads, and the query heads that share them, of each layer
    heads:1.3_4.0           layer.head: what the head writes becomes 0
    neurons:0.2             the share of the feed-forward neurons that is taken out
    zeros:0.5:wanda         the share of the weights set to 0, and how they are chosen
    zeros:2of4:magnitude    two of each four neighbours
    bits:4:group:64:asym    weights rounded to a grid, computed as before; ``:head``: the LM head
    bf16, int8, int4:64     weights really stored so; ``:head``: the LM head
    nf4, bnb8               the same by bitsandbytes
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, cast, get_args

from core.edits.grid import Grid, Span
from core.edits.masks import METHODS, Method
from core.faults import Fault

Storage = Literal["bf16", "int8", "int4", "nf4", "bnb8"]
STORAGES: Final[tuple[Storage, ...]] = get_args(Storage)
MARK: Final = "#"
"""Between the name of a model and what is done to it."""
MOST: Final = 200
"""Characters of an edit."""
MOST_NAMED: Final = 512
"""Layers or heads that an edit names."""
GROUPS: Final = (32, 64, 128)
"""Weights that share a scale where they are packed to 4 bits."""


@dataclass(frozen=True)
class Zeros:
    """Weights set to 0 in the matrices of all layers."""

    share: float = 0.5
    """0 … 1 of each matrix or row. 0.5 for two of four."""
    method: Method = "wanda"
    two_of_four: bool = False


@dataclass(frozen=True)
class Rounding:
    """Weights rounded to a grid and computed as before: what it costs in quality."""

    grid: Grid = Grid()  # noqa: RUF009 - frozen
    head: bool = False
    """Also the LM head, and with it the embedding matrix where they are one."""


@dataclass(frozen=True)
class Packing:
    """Weights really stored in fewer bytes, and multiplied from there."""

    storage: Storage = "int8"
    group: int = 64
    """Weights that share a scale, for "int4"."""
    head: bool = False
    """Also the LM head, as a copy where it is the embedding matrix."""

    @property
    def twin(self) -> Grid | None:
        """The grid that the codes stand for; ``None`` where there are none, or uneven ones."""
        if self.storage == "int8":
            return Grid(8)
        if self.storage == "int4":
            return Grid(4, "group", self.group, symmetric=False)
        return None


@dataclass(frozen=True)
class ModelEdit:
    """All that is done to a model, in this order. The default changes nothing."""

    layers: tuple[int, ...] = ()
    groups: int = 0
    heads: tuple[tuple[int, int], ...] = ()
    neurons: float = 0.0
    zeros: Zeros | None = None
    rounding: Rounding | None = None
    packing: Packing | None = None

    def __bool__(self) -> bool:
        return self != ModelEdit()

    @property
    def removes(self) -> bool:
        """Whether parts of the model are taken out, so that its shape changes."""
        return bool(self.layers or self.groups or self.neurons)


def split(reference: str) -> tuple[str, str]:
    """(name of the model, edit as typed; "" where there is none)."""
    name, _, edit = reference.partition(MARK)
    return name, edit


def join(name: str, edit: ModelEdit | str) -> str:
    """The reference of a model with what is done to it."""
    text = edit if isinstance(edit, str) else spell(edit)
    return f"{name}{MARK}{text}" if text else name


def respelled(reference: str) -> str:
    """The same reference with its edit as it is always spelled, so that one edited model has one
    name. What is no edit stays as it is."""
    name, edit = split(reference)
    try:
        return join(name, parse_edit(edit)) if MARK in reference else reference
    except Fault:
        return reference


def parse_edit(text: str) -> ModelEdit:
    """Raises Fault with one sentence for what is no edit."""
    if len(text) > MOST:
        raise Fault("edit_too_long", most=MOST)
    edit = ModelEdit()
    for part in filter(None, text.split("+")):
        name, *options = part.strip().split(":")
        changes = _read(name, options, part)
        taken = [field for field in changes if getattr(edit, field) != getattr(ModelEdit(), field)]
        if taken:
            raise Fault("edit_twice", part=part)
        edit = replace(edit, **changes)
    if edit.rounding and edit.packing:
        raise Fault("edit_rounded_and_packed")
    return edit


def spell(edit: ModelEdit) -> str:
    """The edit as one line; "" for one that changes nothing."""
    parts = []
    if edit.layers:
        parts.append("layers:" + ".".join(map(str, edit.layers)))
    if edit.groups:
        parts.append(f"groups:{edit.groups}")
    if edit.heads:
        parts.append("heads:" + "_".join(f"{layer}.{head}" for layer, head in edit.heads))
    if edit.neurons:
        parts.append(f"neurons:{edit.neurons:g}")
    if edit.zeros:
        share = "2of4" if edit.zeros.two_of_four else f"{edit.zeros.share:g}"
        parts.append(f"zeros:{share}:{edit.zeros.method}")
    if edit.rounding:
        parts.append(_spell_rounding(edit.rounding))
    if edit.packing:
        packed = edit.packing
        group = f":{packed.group}" if packed.storage == "int4" else ""
        parts.append(packed.storage + group + (":head" if packed.head else ""))
    return "+".join(parts)


def _spell_rounding(rounding: Rounding) -> str:
    grid = rounding.grid
    span = f"group:{grid.group}" if grid.span == "group" else grid.span
    ends = ("" if grid.symmetric else ":asym") + (":head" if rounding.head else "")
    return f"bits:{grid.bits}:{span}{ends}"


# ---------------------------------------------------------------- the parts


def _bad(part: str) -> Fault:
    return Fault("edit_unreadable", part=part[:60], allowed=", ".join([*_PARTS, *STORAGES]))


def _read(name: str, options: list[str], part: str) -> dict[str, Any]:
    try:
        if name in STORAGES:
            return {"packing": _packing(name, options)}
        return {name if name != "bits" else "rounding": _PARTS[name](options)}
    except Fault:
        raise
    except (KeyError, ValueError, IndexError, OverflowError):
        raise _bad(part) from None


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 6):
        raise ValueError(text)
    return int(text)


def _one(options: list[str]) -> str:
    (only,) = options
    return only


def _layers(options: list[str]) -> tuple[int, ...]:
    found = sorted({_whole(text) for text in _one(options).split(".")})
    return tuple(found[:MOST_NAMED])


def _heads(options: list[str]) -> tuple[tuple[int, int], ...]:
    found = set()
    for pair in _one(options).split("_"):
        layer, head = pair.split(".")
        found.add((_whole(layer), _whole(head)))
    return tuple(sorted(found))


def _share(name: str, text: str) -> float:
    share = round(float(text), 4)
    if not 0 <= share < 1:
        raise Fault("setting_out_of_range_high_open", name=name, value=text, low=0, high=1)
    return share


def _zeros(options: list[str]) -> Zeros:
    first, *rest = options
    method = rest[0] if rest else "wanda"
    if method not in METHODS:
        raise Fault("unknown_method", value=method, allowed=", ".join(METHODS))
    if len(rest) > 1:
        raise ValueError(options)
    if first == "2of4":
        return Zeros(0.5, method, two_of_four=True)
    return Zeros(_share("zeros", first), method)


def _rounding(options: list[str]) -> Rounding:
    bits, *rest = options
    span, group, flags = "channel", Grid().group, set(rest)
    if "group" in flags:
        place = rest.index("group")
        span = "group"
        if rest[place + 1 : place + 2] and rest[place + 1].isdecimal():
            group = _whole(rest[place + 1])
            flags.discard(rest[place + 1])
    elif "tensor" in flags:
        span = "tensor"
    if flags - {"group", "tensor", "channel", "sym", "asym", "head"}:
        raise ValueError(options)
    if len(flags & {"group", "tensor", "channel"}) > 1 or {"sym", "asym"} <= flags:
        raise ValueError(options)
    grid = Grid(_whole(bits), cast(Span, span), group, symmetric="asym" not in flags)
    return Rounding(grid, "head" in flags)


def _packing(storage: Storage, options: list[str]) -> Packing:
    flags, group = set(options), 64
    numbers = [text for text in options if text.isdecimal()]
    if storage == "int4" and numbers:
        group = _whole(_one(numbers))
        if group not in GROUPS:
            raise Fault("edit_group", value=group, allowed=", ".join(map(str, GROUPS)))
        flags -= set(numbers)
    if flags - {"head"}:
        raise ValueError(options)
    return Packing(storage, group, "head" in flags)


_PARTS: Final[dict[str, Callable[[list[str]], Any]]] = {
    "layers": _layers,
    "groups": lambda options: _whole(_one(options)),
    "heads": _heads,
    "neurons": lambda options: _share("neurons", _one(options)),
    "zeros": _zeros,
    "bits": _rounding,
}
