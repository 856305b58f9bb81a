"""Models of the Hugging Face hub: weights as safetensors only, no code, no pickled files."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from core.faults import Fault
from core.models.cache import bytes_under, check_space

POLL: Final = 0.3
WANTED: Final = ("*.safetensors", "*.safetensors.index.json", "*.jinja", "merges.txt")
WANTED_JSON: Final = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "chat_template.json",
)
TOKENIZER_FILES: Final = ("tokenizer.json", "config.json", "generation_config.json")
TOKENIZER_LIMIT: Final = 100_000_000
"""Bytes; the largest tokenizers known have 40 million."""
CONFIG_LIMIT: Final = 1_000_000
"""Bytes; configurations have a few thousand."""


def download(name: str, folder: Path, done: Callable[[float], None]) -> None:
    """Fetch the files of the hub model ``name`` into ``folder``.

    ``done(fraction)`` is called while they grow. Raises Fault when the model does not exist,
    is closed, has no safetensors, or cannot be reached.
    """
    with _faults(name):
        revision, sizes = _listing(name)
        wanted = {file: size for file, size in sizes.items() if _wanted(file)}
        if not any(file.endswith(".safetensors") for file in wanted):
            raise Fault("hub_without_safetensors", name=name)
        total = sum(wanted.values()) or 1
        check_space(name, total)
        with _watching(folder, total, done):
            _snapshot(name, revision, folder, list(wanted))


def download_tokenizer(name: str, folder: Path) -> None:
    """Fetch only what says how ``name`` reads text, a few megabytes, into ``folder``.

    Raises Fault as ``download``, and for a model without a tokenizer.json of a sane size.
    """
    with _faults(name):
        revision, sizes = _listing(name)
        wanted = {file: sizes[file] for file in TOKENIZER_FILES if file in sizes}
        if "tokenizer.json" not in wanted or sum(wanted.values()) > TOKENIZER_LIMIT:
            raise Fault("hub_without_tokenizer", name=name)
        check_space(name, sum(wanted.values()))
        _snapshot(name, revision, folder, list(wanted))


def download_config(name: str, folder: Path) -> None:
    """Fetch only the configuration of ``name``: its numbers, a few kilobytes.

    Raises Fault as ``download``, and for a model without a configuration of a sane size.
    """
    with _faults(name):
        revision, sizes = _listing(name)
        if not 0 < sizes.get("config.json", 0) <= CONFIG_LIMIT:
            raise Fault("hub_without_config", name=name)
        _snapshot(name, revision, folder, ["config.json"])


def _listing(name: str) -> tuple[str | None, dict[str, int]]:
    """The newest revision of the model, and its files with their bytes."""
    from huggingface_hub import HfApi  # noqa: PLC0415

    facts = HfApi().model_info(name, files_metadata=True, timeout=20)
    return facts.sha, {f.rfilename: f.size or 0 for f in facts.siblings or []}


def _snapshot(name: str, revision: str | None, folder: Path, files: list[str]) -> None:
    from huggingface_hub import snapshot_download  # noqa: PLC0415

    snapshot_download(name, revision=revision, local_dir=folder, allow_patterns=files)
    _tidy(folder)


@contextmanager
def _faults(name: str) -> Iterator[None]:
    """Turn what goes wrong on the way to the hub into faults."""
    from huggingface_hub import errors  # noqa: PLC0415

    try:
        yield
    except errors.GatedRepoError as error:
        raise Fault("hub_gated", name=name) from error
    except errors.RepositoryNotFoundError as error:
        raise Fault("hub_unknown", name=name) from error
    except Fault:
        raise
    except OSError as error:
        if error.errno:
            raise
        raise Fault("hub_unreachable", name=name) from error
    except Exception as error:
        # The transport underneath has exceptions of its own, which change with its version.
        raise Fault("hub_unreachable", name=name) from error


def _wanted(file: str) -> bool:
    path = Path(file)
    return len(path.parts) == 1 and (
        file in WANTED_JSON or any(path.match(pattern) for pattern in WANTED)
    )


def _tidy(folder: Path) -> None:
    """Remove the downloader's own bookkeeping."""
    shutil.rmtree(folder / ".cache", ignore_errors=True)


@contextmanager
def _watching(folder: Path, total: int, done: Callable[[float], None]) -> Iterator[None]:
    """Report the growth of ``folder`` while the body runs."""
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(POLL):
            done(min(bytes_under(folder) / total, 0.99))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
