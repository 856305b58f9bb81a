"""What ``python -m bench.kv_cache --store`` measured of the packaged models, kept in a file."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from core.lab.kv_records import ContextPoint, Contexts, Trick, TrickResult, Tricks, Work
from core.lab.machine import Machine
from core.lab.timing import Spread

FILE: Final = Path(__file__).with_name("kv_stored.json")
COMMAND: Final = ".venv/bin/python -m bench.kv_cache --store"
"""What measures all of it again."""


@cache
def stored() -> dict[str, tuple[Contexts, Tricks]]:
    """Model name → what was measured of it."""
    if not FILE.is_file():
        return {}
    table = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: (_contexts(x["contexts"]), _tricks(x["tricks"])) for name, x in table.items()}


def store(found: dict[str, tuple[Contexts, Tricks]], path: Path = FILE) -> None:
    """Write the file; models measured earlier and not now are kept."""
    table = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for name, (contexts, tricks) in found.items():
        table[name] = {
            "contexts": asdict(contexts),
            # The contexts name the machine for both.
            "tricks": asdict(replace(tricks, machine=None)),
        }
    path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def _contexts(table: dict[str, Any]) -> Contexts:
    points = tuple(
        ContextPoint(
            **{
                **point,
                "cached_ms": Spread(**point["cached_ms"]),
                "whole_ms": Spread(**point["whole_ms"]),
                "cached": Work(**point["cached"]),
                "whole": Work(**point["whole"]),
            }
        )
        for point in table["points"]
    )
    return Contexts(**{**table, "points": points, "machine": Machine(**table["machine"])})


def _tricks(table: dict[str, Any]) -> Tricks:
    results = tuple(
        TrickResult(**{**result, "trick": Trick(**result["trick"])}) for result in table["results"]
    )
    return Tricks(**{**table, "results": results})
