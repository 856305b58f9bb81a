"""Shapes without weights: published and typed ones, and configurations of the hub."""

from __future__ import annotations

import shutil
import tempfile
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Final

from core.faults import Fault
from core.lab.shape import ModelShape, shape_of
from core.models import cache as disk
from core.models import hub
from core.models.catalog import HUB_ID, ModelEntry, resolve

PRESETS: Final = Path(__file__).with_name("shape_presets.toml")
TYPED: Final = (
    "layers", "width", "heads", "kv_heads", "head_dim", "feed_forward", "vocabulary",
    "experts", "active",
)  # fmt: skip
"""What is typed, in the order in which it is spelled."""
NAMED: Final = "typed"


@dataclass(frozen=True)
class Preset:
    """A well-known model, by its published numbers."""

    title: str
    shape: ModelShape
    source: str
    date: str


@cache
def presets() -> dict[str, Preset]:
    """Name → preset, in the order of the file."""
    numbers = {field.name for field in fields(ModelShape)}
    with PRESETS.open("rb") as file:
        entries = tomllib.load(file)["model"]
    return {
        entry["name"]: Preset(
            entry["title"],
            ModelShape(**{key: value for key, value in entry.items() if key in numbers}),
            entry["source"],
            entry["date"],
        )
        for entry in entries
    }


def typed_shape(text: str) -> ModelShape:
    """The shape spelled as ``layers.width.heads.…`` in the order of TYPED; the last numbers may
    be left out. Raises Fault for what is none.
    """
    parts = text.split(".")
    least = len(TYPED) - 2
    if not least <= len(parts) <= len(TYPED):
        raise Fault("shape_not_understood", value=text, order=".".join(TYPED))
    try:
        numbers: dict[str, Any] = dict(zip(TYPED, map(int, parts), strict=False))
    except ValueError:
        raise Fault("shape_not_understood", value=text, order=".".join(TYPED)) from None
    return ModelShape(NAMED, **numbers)


def spell_shape(shape: ModelShape) -> str:
    """The text that ``typed_shape`` reads."""
    return ".".join(str(getattr(shape, name)) for name in TYPED)


def named_shape(name: str, *, local: bool = True) -> ModelShape:
    """A preset, a typed shape, a folder with a config.json, or a hub model whose configuration
    was fetched. ``local=False`` refuses folders. Raises Fault for anything else.
    """
    if name in presets():
        return presets()[name].shape
    if name[:1].isdigit() and name.replace(".", "").isdigit():
        return typed_shape(name)
    if HUB_ID.fullmatch(name):
        return fetched_shape(hub_entry(name, local=local))
    if local and (Path(name).expanduser() / "config.json").is_file():
        folder = Path(name).expanduser()
        return shape_of(_config(folder, folder.name), folder.name)
    raise Fault("unknown_shape", value=name, allowed=", ".join(presets()))


def hub_entry(name: str, *, local: bool = True) -> ModelEntry:
    """The hub model of that id. Raises Fault for what is none, and in a class."""
    entry = resolve(name, local=local)
    if entry.kind != "hub":
        raise Fault("config_of_hub_only", name=name)
    return entry


# ---------------------------------------------------------------- the hub


def config_folder(name: str) -> Path:
    return disk.home() / "configs" / name.replace("/", "--")


def fetched(entry: ModelEntry) -> bool:
    """Whether the configuration of this hub model is on this machine."""
    return any((folder / "config.json").is_file() for folder in _folders(entry.name))


def fetch_config(entry: ModelEntry) -> None:
    """Fetch the configuration of a hub model alone, a few kilobytes.

    Raises Fault when the hub cannot be reached, or has no such model.
    """
    if entry.kind != "hub" or HUB_ID.fullmatch(entry.name) is None:
        raise Fault("config_of_hub_only", name=entry.name)
    target = config_folder(entry.name)
    with disk.disk_faults(entry.name, hub.CONFIG_LIMIT):
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".partial-", dir=target.parent))
        try:
            hub.download_config(entry.name, folder)
            folder.chmod(0o755)
            # two readers may have asked for it at once: either result will do
            shutil.rmtree(target, ignore_errors=True)
            folder.replace(target)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def fetched_shape(entry: ModelEntry) -> ModelShape:
    """The shape of a hub model whose configuration was fetched. Raises Fault."""
    for folder in _folders(entry.name):
        if (folder / "config.json").is_file():
            return shape_of(_config(folder, entry.name), entry.name)
    raise Fault("not_fetched", name=entry.name)


def _folders(name: str) -> tuple[Path, ...]:
    return config_folder(name), disk.model_folder(name)


def _config(folder: Path, name: str) -> Any:
    from transformers import AutoConfig  # noqa: PLC0415 - slow, and seldom needed

    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True)
    except Exception as error:
        # An architecture that this version of transformers does not know, or no JSON at all.
        raise Fault("config_not_readable", name=name) from error
