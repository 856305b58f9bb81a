"""Results that come with the project, for a first look: measured once, on a machine that is named.

Each file is what ``python -m core lab prune --all --model NAME --json FILE`` wrote.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from core.lab.machine import Machine
from core.lab.prune_records import (
    Crossing,
    Crossings,
    Importance,
    Judged,
    Point,
    Removal,
    Removals,
    Size,
    Sum,
    Sweep,
    Times,
    Together,
)
from core.lab.timing import Spread

FOLDER: Final = Path(__file__).with_name("prune_recorded")


@dataclass(frozen=True)
class Stored:
    """All experiments of one model."""

    sweep: Sweep
    removals: Removals
    importance: Importance
    heads: Together
    layers: Together
    crossings: Crossings


def command(model: str) -> str:
    """What measures it again."""
    return f".venv/bin/python -m core lab prune --all --model {model} --json FILE"


@cache
def stored(model: str) -> Stored | None:
    """The recorded results of a packaged model; ``None`` for any other."""
    path = FOLDER / f"{model}.json"
    if not model.replace("-", "").isalnum() or not path.is_file():
        return None
    return read(json.loads(path.read_text(encoding="utf-8")))


def read(table: dict[str, Any]) -> Stored:
    """The records of a table as the command line writes it. Raises KeyError, TypeError."""
    return Stored(
        sweep=_sweep(table["sweep"]),
        removals=_removals(table["removals"]),
        importance=_importance(table["importance"]),
        heads=_together(table["heads_together"]),
        layers=_together(table["layers_together"]),
        crossings=_crossings(table["crossings"]),
    )


def _common(table: dict[str, Any]) -> dict[str, Any]:
    return {**table, "machine": Machine(**table["machine"])}


def _sweep(table: dict[str, Any]) -> Sweep:
    points = [Point(**{**p, "judged": Judged(**p["judged"])}) for p in table["points"]]
    return Sweep(**{**_common(table), "points": tuple(points)})


def _times(table: dict[str, Any]) -> Times:
    spreads = {name: Spread(**table[name]) for name in ("original", "edited")}
    return Times(**{**table, **spreads})


def _removals(table: dict[str, Any]) -> Removals:
    rows = [
        Removal(row["edit"], Judged(**row["judged"]), Size(**row["size"]), _times(row["times"]))
        for row in table["rows"]
    ]
    changes = {"rows": tuple(rows), "original": Size(**table["original"])}
    return Removals(**{**_common(table), **changes})


def _importance(table: dict[str, Any]) -> Importance:
    heads = tuple(tuple(row) for row in table["heads"])
    changes = {"texts": tuple(table["texts"]), "layers": tuple(table["layers"]), "heads": heads}
    return Importance(**{**_common(table), **changes})


def _together(table: dict[str, Any]) -> Together:
    return Together(**{**_common(table), "sums": tuple(Sum(**s) for s in table["sums"])})


def _crossings(table: dict[str, Any]) -> Crossings:
    points = [
        Crossing(**{**p, "dense": Spread(**p["dense"]), "sparse": Spread(**p["sparse"])})
        for p in table["points"]
    ]
    pairs = tuple((float(share), int(size)) for share, size in table["sparse_bytes"])
    return Crossings(**{**_common(table), "points": tuple(points), "sparse_bytes": pairs})
