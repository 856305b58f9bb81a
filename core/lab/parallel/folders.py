"""Folders for what workers read and write: private, temporary, and gone in the end."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from core.faults import Fault

PREFIX: Final = "token-by-token-"
LEFTOVER: Final = 3600.0
"""Seconds after which no experiment can still be using its folder."""


@contextlib.contextmanager
def temporary() -> Iterator[None]:
    """Turn what the folder for temporary files refuses into a fault that does not name it."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        raise Fault("temporary_unwritable", reason=reason) from error


def private_folder() -> tempfile.TemporaryDirectory[str]:
    """A new one. Raises Fault where there is no room for it.

    A process that was killed could not remove its own: those go now.
    """
    with contextlib.suppress(OSError):
        _remove_leftovers(Path(tempfile.gettempdir()))
    with temporary():
        return tempfile.TemporaryDirectory(prefix=PREFIX)


def _remove_leftovers(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        found = folder.lstat()
        mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
        if mine and stat.S_ISDIR(found.st_mode) and time.time() - found.st_mtime > LEFTOVER:
            shutil.rmtree(folder, ignore_errors=True)
