"""The folder of fetched models: complete ones only, each with a manifest of what it is.

A model appears under its name in one rename, when everything in it is finished; until then
it grows in a folder with another name, which the next fetch of that model sweeps away.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from core.faults import Fault

HOME_VARIABLE: Final = "TOKEN_BY_TOKEN_HOME"
MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
"""Raised when converted folders change, so that older ones are made anew."""


def home() -> Path:
    """The folder for everything this project keeps: TOKEN_BY_TOKEN_HOME, or the user's cache."""
    chosen = os.environ.get(HOME_VARIABLE)
    return Path(chosen).expanduser() if chosen else user_cache_path("token-by-token")


def model_folder(name: str) -> Path:
    """Where the model ``name`` stands once it is complete."""
    return home() / "models" / name.replace("/", "--")


def is_complete(folder: Path) -> bool:
    """Whether ``folder`` holds every file of its manifest, at its full size."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return manifest["format"] == FORMAT and all(
            (folder / name).stat().st_size == size for name, size in manifest["files"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def write_manifest(folder: Path, facts: dict[str, Any]) -> None:
    """Record what ``folder`` holds: ``facts``, and the size of each file."""
    files = {p.name: p.stat().st_size for p in sorted(folder.iterdir()) if p.name != MANIFEST}
    table = {"format": FORMAT, **facts, "files": files}
    (folder / MANIFEST).write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")


@contextmanager
def locked(name: str, waiting: Callable[[], None]) -> Iterator[None]:
    """One process at a time works on the model; ``waiting()`` is called while another does."""
    folder = model_folder(name)
    with disk_faults(name, 0):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.parent / f".{folder.name}.lock")
        while True:
            try:
                lock.acquire(timeout=0.5)
                break
            except Timeout:
                waiting()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def workshop(name: str) -> Iterator[Path]:
    """A new empty folder to build the model in, gone afterwards. Only under the lock."""
    target = model_folder(name)
    prefix = f".partial-{target.name}-"
    for left in target.parent.glob(prefix + "*"):
        shutil.rmtree(left, ignore_errors=True)
    folder = target.parent / f"{prefix}{os.getpid()}"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(folder: Path, name: str) -> Path:
    """Give the finished ``folder`` the model's name; an incomplete one of that name goes."""
    target = model_folder(name)
    if target.exists():
        shutil.rmtree(target)
    for file in folder.iterdir():
        # safetensors writes for its owner alone; the folder may be shared by a class
        file.chmod(0o644)
    folder.replace(target)
    return target


def check_space(name: str, needed: int) -> None:
    """Raise Fault when ``needed`` bytes do not fit on the disk of the cache."""
    free = shutil.disk_usage(home()).free
    if free < needed:
        raise disk_full(name, needed)


def disk_full(name: str, needed: int) -> Fault:
    """The fault that says how much room has to be made."""
    return Fault("disk_full", name=name, needed=f"{needed / 1e6:,.0f}")


@contextmanager
def disk_faults(name: str, needed: int) -> Iterator[None]:
    """Turn what the disk refuses into faults that name no folder of this machine."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(name, needed) from error
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        raise Fault("cache_unwritable", variable=HOME_VARIABLE, reason=reason) from error


def bytes_under(folder: Path) -> int:
    """The size of all files in ``folder``, while others may still be writing there."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_size
            except OSError:
                continue
    return total
