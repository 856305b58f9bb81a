"""From a GGUF file to safetensors and tokenizer.json, once: loading is then 20 times faster.

Runs as a process of its own (``python -m core.models.convert GGUF FOLDER``), so that a
running app neither stops for it nor keeps its memory. It prints how far it is, a fraction
a line.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

READ: Final = 0.35
TOKENIZER: Final = 0.5
WEIGHTS: Final = 0.9
"""Shares of the time after which each part is done, as measured on the packaged models."""
DIGITS_APART: Final = frozenset({"smollm", "refact", "starcoder"})
"""Pre-tokenizers, by their GGUF name, that cut digits apart first; transformers forgets it."""


def convert(source: Path, target: Path, report: Callable[[float], None]) -> None:
    """Write the model in ``source`` to the folder ``target``, as 32-bit floats."""
    # The functions below are replaced before transformers looks them up.
    gguf: Any = import_module("gguf")
    # transformers reads the file four times and builds this table once for every module:
    # three quarters of the time.
    gguf.GGUFReader = functools.cache(gguf.GGUFReader)
    gguf.get_tensor_name_map = functools.cache(gguf.get_tensor_name_map)
    report(0.02)
    reader = gguf.GGUFReader(str(source))
    report(0.25)
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    loader: Any = import_module("transformers.modeling_gguf_pytorch_utils")
    report(READ)
    tokenizer: Any = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    _mend_digits(tokenizer, reader)
    tokenizer.save_pretrained(target)
    report(TOKENIZER)
    loader.tqdm = functools.partial(_counted, report)
    model: Any = AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.float32
    )
    report(WEIGHTS)
    # Loaded from GGUF, a model calls itself quantized and refuses to be saved; it is plain now.
    model.hf_quantizer = None
    model.is_quantized = False
    model.__dict__.pop("quantization_method", None)
    del model.config.quantization_config
    model.save_pretrained(target)
    report(1.0)


def _counted(report: Callable[[float], None], tensors: Iterable[Any], **_: object) -> Iterator[Any]:
    """The tensors one by one, reporting the share of their bytes that is behind."""
    table = list(tensors)
    total = sum(int(tensor.n_bytes) for tensor in table) or 1
    done = 0
    for tensor in table:
        yield tensor
        done += int(tensor.n_bytes)
        report(TOKENIZER + (WEIGHTS - TOKENIZER) * done / total)


def _mend_digits(tokenizer: Any, reader: Any) -> None:
    from tokenizers import pre_tokenizers  # noqa: PLC0415

    field = reader.fields.get("tokenizer.ggml.pre")
    if field is None or field.contents() not in DIGITS_APART:
        return
    inner = tokenizer.backend_tokenizer
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )


def _say(fraction: float) -> None:
    print(f"{fraction:.3f}", flush=True)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]), _say)
