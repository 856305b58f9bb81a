"""From a folder of files to a model in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from core.faults import Fault
from core.models.catalog import ModelEntry, folder_of, resolve, state_on_disk
from core.models.device import pick_device, pick_dtype, set_threads
from core.models.fetch import Report, quiet
from core.models.loaded import LoadedModel, finish
from core.models.tiny import tiny

__all__ = ["LoadedModel", "load"]

MAX_TEMPLATE: Final = 200_000


def load(
    model: ModelEntry | str,
    *,
    device: str | None = None,
    dtype: str | None = None,
    progress: Report | None = None,
) -> LoadedModel:
    """The model, read from this machine; it must have been fetched.

    ``device`` and ``dtype`` overrule what :mod:`core.models.device` would choose. Raises
    Fault when the files are missing, are not a causal language model, or do not fit in
    memory, and when the device is not here.
    """
    entry = resolve(model) if isinstance(model, str) else model
    report = progress or quiet
    set_threads()
    place = pick_device(device)
    number = pick_dtype(place, dtype)
    report(0.0, "load")
    if entry.kind == "tiny":
        loaded = tiny(device=place, dtype=number)
    elif state_on_disk(entry) != "ready" or entry.kind == "toy":
        raise Fault("not_fetched", name=entry.name)
    else:
        loaded = _from_folder(entry, place, number, report)
    report(1.0, "load")
    return loaded


def _from_folder(
    entry: ModelEntry, device: torch.device, dtype: torch.dtype, report: Report
) -> LoadedModel:
    folder = folder_of(entry)
    tokenizer = _tokenizer(entry, folder)
    report(0.3, "load")
    logging.disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        if config.is_encoder_decoder:
            raise Fault("not_causal", name=entry.name)
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            attn_implementation="eager",
            trust_remote_code=False,
            use_safetensors=True,
            local_files_only=True,
        )
        report(0.9, "load")
        model = model.to(device)
    except Fault:
        raise
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise Fault("no_memory_to_load", name=entry.name, device=str(device)) from error
    except SafetensorError as error:
        raise Fault("weights_damaged", name=entry.name) from error
    except Exception as error:
        # Half a dozen types of errors; their messages may quote folders of this machine.
        raise Fault("not_loadable", name=entry.name, reason=type(error).__name__) from error
    label = entry.title if entry.kind == "folder" else entry.name
    return finish(model, tokenizer, chat_template(folder), name=label)


def _tokenizer(entry: ModelEntry, folder: Path) -> Tokenizer:
    try:
        if (folder / "tokenizer.json").is_file():
            # 30 times faster than AutoTokenizer, and all that is needed
            return Tokenizer.from_file(str(folder / "tokenizer.json"))
        slow: Any = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
        tokenizer: Tokenizer = slow.backend_tokenizer
        return tokenizer
    except Exception as error:
        # tokenizers raises bare Exceptions
        raise Fault("no_tokenizer", name=entry.name) from error


def chat_template(folder: Path) -> str | None:
    """The chat template in ``folder``, in any of the three places where it is kept."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return _bounded(file.read_text(encoding="utf-8"))
    for name in ("chat_template.json", "tokenizer_config.json"):
        try:
            found = json.loads((folder / name).read_text(encoding="utf-8")).get("chat_template")
        except (OSError, ValueError, AttributeError):
            continue
        if isinstance(found, list):
            named = {item["name"]: item["template"] for item in found}
            found = named.get("default", next(iter(named.values()), None))
        if isinstance(found, str):
            return _bounded(found)
    return None


def _bounded(template: str) -> str | None:
    return template if len(template) <= MAX_TEMPLATE else None
