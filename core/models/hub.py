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


def download(name: str, folder: Path, done: Callable[[float], None]) -> None:
    """Fetch the files of the hub model ``name`` into ``folder``.

    ``done(fraction)`` is called while they grow. Raises Fault when the model does not exist,
    is closed, has no safetensors, or cannot be reached.
    """
    from huggingface_hub import HfApi, errors, snapshot_download  # noqa: PLC0415

    try:
        facts = HfApi().model_info(name, files_metadata=True, timeout=20)
        wanted = {f.rfilename: f.size or 0 for f in facts.siblings or [] if _wanted(f.rfilename)}
        if not any(file.endswith(".safetensors") for file in wanted):
            raise Fault("hub_without_safetensors", name=name)
        total = sum(wanted.values()) or 1
        check_space(name, total)
        with _watching(folder, total, done):
            snapshot_download(
                name, revision=facts.sha, local_dir=folder, allow_patterns=list(wanted)
            )
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
    _tidy(folder)


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
