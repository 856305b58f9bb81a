"""From a folder of files to a model in memory."""

from __future__ import annotations

from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

from core.edits.spec import join, parse_edit, split
from core.faults import Fault
from core.models.catalog import ModelEntry, folder_of, resolve, state_on_disk
from core.models.device import pick_device, pick_dtype, set_threads
from core.models.fetch import Report, quiet
from core.models.loaded import LoadedModel, finish
from core.models.tiny import tiny
from core.models.tokenizer import chat_template, tokenizer_in

__all__ = ["LoadedModel", "chat_template", "load"]


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
    if entry.edit:
        loaded = _changed(loaded, entry)
    report(1.0, "load")
    return loaded


def _changed(loaded: LoadedModel, entry: ModelEntry) -> LoadedModel:
    from core.edits.apply import apply  # noqa: PLC0415 - only edited models need it

    try:
        # Files of the catalogue go by the name that was asked for, with the edit in it.
        name = join(split(loaded.info.name)[0], entry.edit)
        return apply(loaded, parse_edit(entry.edit), name=name)
    except (MemoryError, torch.OutOfMemoryError) as error:
        device = str(loaded.model.device)
        raise Fault("no_memory_to_load", name=entry.name, device=device) from error


def _from_folder(
    entry: ModelEntry, device: torch.device, dtype: torch.dtype, report: Report
) -> LoadedModel:
    folder = folder_of(entry)
    tokenizer = tokenizer_in(folder, entry.name)
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
