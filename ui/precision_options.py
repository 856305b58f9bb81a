"""What a reader can set on the Precision page, in one link parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from core.edits.grid import Grid
from core.edits.spec import Packing, Rounding
from core.lab.quantize_records import BITS, PACKINGS, named
from ui import lab_options, lab_parts
from ui.lab_options import Table
from ui.view import one_of, within

FIELD: Final = "precision"
SHARES: Final = ("tensor", "channel", "128", "64", "32")
"""Which weights share a scale: all of a matrix, a row, so many neighbours."""
GRIDS: Final = ("sym", "asym")
HEADS: Final = ("off", "on")
STORES: Final = tuple(named(packing) for packing in PACKINGS)
NAME_CAP: Final = 80
"""Characters of a matrix's name in a link."""

TABLE: Final[Table] = {
    "bits": (4, within(min(BITS), max(BITS))),
    "share": ("channel", one_of(SHARES)),
    "grid": ("sym", one_of(GRIDS)),
    "head": ("off", one_of(HEADS)),
    "store": ("int4:64", one_of(STORES)),
    "matrix": ("", lambda text: text[:NAME_CAP]),
    "row": (-1, within(-1, 2**24)),
}


def here() -> dict[str, Any]:
    """What this reader set."""
    return lab_options.here(FIELD, TABLE)


def chosen(name: str, key: str) -> Callable[[], None]:
    """The callback of the widget ``key`` that sets the option ``name``."""
    return lab_options.chosen(FIELD, TABLE, name, key)


def curve_of(share: str, grid: str, bits: int = 8) -> Grid:
    """The grid that a choice of buttons stands for."""
    symmetric = grid == "sym"
    if share in ("tensor", "channel"):
        return Grid(bits, "tensor" if share == "tensor" else "channel", symmetric=symmetric)
    return Grid(bits, "group", int(share), symmetric)


def setting_here() -> Rounding:
    """The rounding that this reader chose."""
    values = here()
    grid = curve_of(values["share"], values["grid"], values["bits"])
    return Rounding(grid, values["head"] == "on")


def packing_here() -> Packing:
    """The way to store the weights that this reader chose."""
    return dict(zip(STORES, PACKINGS, strict=True))[here()["store"]]


def buttons(name: str, values: Sequence[Any], **words: Any) -> None:
    """A row of buttons that sets one option; ``words`` as ``ui.lab_parts.buttons`` takes them."""
    lab_parts.buttons(FIELD, TABLE, name, values, **words)
