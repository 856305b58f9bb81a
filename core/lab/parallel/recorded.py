"""What the commands measured of the packaged models with ``--record``, kept in a file."""

from __future__ import annotations

import json
import types
from dataclasses import asdict, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from core.lab.parallel.records import OffloadRun, PipelineRun, ReplicaRun, TensorRun

FILE: Final = Path(__file__).with_name("recorded.json")
Run = TensorRun | PipelineRun | OffloadRun | ReplicaRun
T = TypeVar("T")


def key_of(model: str, run: Run) -> str:
    """The question that a record answers: ``smollm2-135m tensor 3 even``."""
    if isinstance(run, TensorRun):
        return f"{model} tensor {run.plan.ranks} {run.plan.attention}"
    if isinstance(run, PipelineRun):
        return f"{model} pipeline {run.plan.stages} {run.plan.by}"
    if isinstance(run, OffloadRun):
        return f"{model} offload {run.share:g}"
    return f"{model} replicas {run.dtype}"


def record(model: str, run: Run, path: Path = FILE) -> None:
    """Keep it for the pages, without its arrays; what is known of other questions stays."""
    if isinstance(run, TensorRun):
        run = replace(run, partials=None, sums=None, dense=None, positions=())
    found = {**_read(path), key_of(model, run): _rounded(asdict(run))}
    text = json.dumps(dict(sorted(found.items())), indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    _table.cache_clear()


def recorded(key: str, kind: type[T]) -> T | None:
    """The record of a question, or ``None``."""
    found = _table().get(key)
    return None if found is None else _made(kind, found)


@cache
def _table() -> dict[str, Any]:
    return _read(FILE)


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _rounded(value: Any) -> Any:
    """Six digits of each number: the rest is another machine's noise."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value


def _made(kind: Any, value: Any) -> Any:
    """Plain values as the type that they were."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        known = {field.name for field in fields(kind)}
        made: Any = kind
        return made(**{n: _made(hints[n], v) for n, v in value.items() if n in known})
    if value is None or get_origin(kind) is None:
        return value
    inner = get_args(kind)
    if get_origin(kind) is tuple:
        if len(inner) == 2 and inner[1] is Ellipsis:
            return tuple(_made(inner[0], each) for each in value)
        return tuple(_made(one, each) for one, each in zip(inner, value, strict=True))
    if get_origin(kind) is types.UnionType:
        return _made(next(one for one in inner if one is not type(None)), value)
    return value
