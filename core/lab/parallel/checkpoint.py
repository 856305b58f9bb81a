"""The weights as files that workers can read their shares from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.faults import Fault
from core.lab.parallel.folders import private_folder, temporary
from core.models.catalog import folder_of, resolve

if TYPE_CHECKING:
    from core.engine.local import LocalEngine

INDEX: Final = "model.safetensors.index.json"
ONE: Final = "model.safetensors"


@contextmanager
def checkpoint(engine: LocalEngine, model: str) -> Iterator[Path]:
    """A folder with config and safetensors of the model in use.

    The model's own folder where it has one and holds exactly these weights; otherwise (a model
    made in memory, an edited one) what is in memory, written to a folder that is gone
    afterwards. Raises Fault for weights that are no plain numbers any more.
    """
    own = _own_folder(engine, model)
    if own is not None:
        yield own
        return
    with private_folder() as name:
        folder = Path(name)
        with engine.borrowed() as borrowed, temporary():
            _write(borrowed, folder)
        yield folder


def check_plain(model: Any) -> None:
    """Raises Fault where weights are packed: then they live in modules of this project, and are
    read by nobody else."""
    if any(type(module).__module__.startswith("core.") for module in model.modules()):
        raise Fault("split_needs_plain_weights")


def files_of(folder: Path) -> dict[str, Path]:
    """Name of each tensor → the file with it."""
    from safetensors import safe_open  # noqa: PLC0415

    index = folder / INDEX
    if index.is_file():
        table = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        return {name: folder / file for name, file in table.items()}
    with safe_open(folder / ONE, framework="np") as file:
        return dict.fromkeys(file.keys(), folder / ONE)


def _own_folder(engine: LocalEngine, model: str) -> Path | None:
    if "#" in model:
        return None
    entry = resolve(model)
    if entry.light:
        return None
    folder = folder_of(entry)
    try:
        there = files_of(folder).keys()
    except (OSError, ValueError, KeyError):
        return None
    with engine.borrowed() as borrowed:
        wanted = set(_tensors(borrowed))
    return folder if wanted <= there else None


def _tensors(model: Any) -> dict[str, Any]:
    """Parameters by name, tied ones once. (Buffers that are not parameters are made anew.)"""
    return dict(model.named_parameters())


def _write(model: Any, folder: Path) -> None:
    from safetensors import SafetensorError  # noqa: PLC0415
    from safetensors.torch import save_file  # noqa: PLC0415

    check_plain(model)
    tensors = _tensors(model)
    plain = {name: t.detach().contiguous().cpu() for name, t in tensors.items()}
    try:
        save_file(plain, folder / ONE)
    except SafetensorError as error:
        # Its own kind of error, with the system's number in the text alone.
        number = re.search(r"os error (\d+)", str(error))
        raise OSError(int(number[1]) if number else 0, "not written") from error
    model.config.save_pretrained(folder)
