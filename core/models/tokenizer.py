"""The tokenizer of a model, read without its weights: no torch, and seconds less."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from tokenizers import Tokenizer

from core.faults import Fault
from core.models import cache, hub
from core.models.catalog import ModelEntry, folder_of, state_on_disk
from core.models.tiny_text import tiny_tokenizer

MAX_TEMPLATE: Final = 200_000


def tokenizer_folder(entry: ModelEntry) -> Path | None:
    """The folder that holds the tokenizer of ``entry``: the model's, or that of a tokenizer
    fetched alone. ``None``: it is not on this machine, or stands in no file."""
    if entry.light:
        return None
    if state_on_disk(entry) == "ready":
        return folder_of(entry)
    alone = _alone(entry)
    return alone if (alone / "tokenizer.json").is_file() else None


def open_tokenizer(entry: ModelEntry) -> Tokenizer:
    """The tokenizer of ``entry``, which must be on this machine and no toy.

    Raises Fault when nothing was fetched, or when there is no tokenizer that can be read.
    """
    if entry.kind == "tiny":
        return tiny_tokenizer()
    folder = tokenizer_folder(entry)
    if folder is None:
        raise Fault("not_fetched", name=entry.name)
    return tokenizer_in(folder, entry.name)


def fetch_tokenizer(entry: ModelEntry) -> Path:
    """Fetch the tokenizer of a hub model without its weights, and return its folder.

    Raises Fault when the hub cannot be reached, or the model cannot be read.
    """
    entry = entry.unedited
    found = tokenizer_folder(entry)
    if found is not None:
        return found
    target = _alone(entry)
    with cache.disk_faults(entry.name, hub.TOKENIZER_LIMIT):
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".partial-", dir=target.parent))
        try:
            hub.download_tokenizer(entry.name, folder)
            folder.chmod(0o755)
            # two readers may have asked for it at once: either result will do
            shutil.rmtree(target, ignore_errors=True)
            folder.replace(target)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return target


def _alone(entry: ModelEntry) -> Path:
    return cache.home() / "tokenizers" / entry.unedited.name.replace("/", "--")


def tokenizer_in(folder: Path, name: str) -> Tokenizer:
    """The tokenizer that lies in ``folder``. Raises Fault, naming ``name``."""
    try:
        if (folder / "tokenizer.json").is_file():
            # 30 times faster than AutoTokenizer, and all that is needed
            return Tokenizer.from_file(str(folder / "tokenizer.json"))
        from transformers import AutoTokenizer  # noqa: PLC0415 - slow, and seldom needed

        slow: Any = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
        tokenizer: Tokenizer = slow.backend_tokenizer
        return tokenizer
    except Exception as error:
        # tokenizers raises bare Exceptions
        raise Fault("no_tokenizer", name=name) from error


def facts_in(folder: Path) -> tuple[int | None, tuple[int, ...]]:
    """(rows of the vocabulary, end ids) as the model's own files say them; none where they don't.

    The same numbers that a loaded model has (:mod:`core.models.loaded`).
    """
    config, settings = _table(folder / "config.json"), _table(folder / "generation_config.json")
    inner = config.get("text_config")
    text = inner if isinstance(inner, dict) else {}
    size = text.get("vocab_size", config.get("vocab_size"))
    named = (table.get("eos_token_id") for table in (settings, config, text))
    end = next((value for value in named if value is not None), ())
    ids = end if isinstance(end, list | tuple) else [end]
    return (
        size if isinstance(size, int) and size > 0 else None,
        tuple(sorted(id for id in ids if isinstance(id, int))),
    )


def chat_template(folder: Path) -> str | None:
    """The chat template in ``folder``, in any of the three places where it is kept."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return _bounded(file.read_text(encoding="utf-8"))
    for name in ("chat_template.json", "tokenizer_config.json"):
        found = _table(folder / name).get("chat_template")
        if isinstance(found, list):
            named = {item["name"]: item["template"] for item in found}
            found = named.get("default", next(iter(named.values()), None))
        if isinstance(found, str):
            return _bounded(found)
    return None


def _bounded(template: str) -> str | None:
    return template if len(template) <= MAX_TEMPLATE else None


def _table(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
