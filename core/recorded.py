"""A real run, stored: what is shown while the model is fetched or loaded.

It answers exactly the questions that were recorded, with the numbers the model gave then,
and raises NotReady for any other. The tokenizer comes along, so every token can be named.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Hashable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float
from tokenizers import Tokenizer

from core.engine.opaque import Opaque
from core.engine.protocol import Engine
from core.faults import NotReady
from core.lens import Lens, logit_lens
from core.model_info import ModelInfo
from core.tokens import Vocabulary
from core.trace import Capture, Edit, Forward

STORED: Final = Path(__file__).resolve().parent / "stored"
_FORWARD: Final = ("embedding", "residual", "normed", "logits", "attention")
_LENS: Final = ("ids", "probabilities", "followed_probability", "followed_rank")


class RecordedEngine(Opaque):
    """See :class:`core.engine.protocol.Engine`."""

    CLOSED = NotReady
    CODE = "model_loading"

    def __init__(self, folder: Path = STORED) -> None:
        about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        self.about: dict[str, Any] = about["about"]
        """When, where and from what the run was recorded."""
        lists = {name: tuple(v) for name, v in about["info"].items() if isinstance(v, list)}
        self._info = ModelInfo(**{**about["info"], **lists})
        packed = (folder / "tokenizer.json.gz").read_bytes()
        self._vocabulary = Vocabulary(
            Tokenizer.from_str(gzip.decompress(packed).decode()),
            size=self._info.vocabulary,
            end_ids=self._info.end_ids,
            chat_template=about["chat_template"],
        )
        self._steps: dict[tuple[int, tuple[int, ...]], tuple[Forward, Lens]] = {}
        for step in about["steps"]:
            with np.load(folder / step["file"], allow_pickle=False) as arrays:
                forward, lens = _unpacked(step, arrays)
            self._steps[(about["prompt_length"], forward.ids)] = (forward, lens)

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    def forward(
        self,
        ids: Sequence[int],
        *,
        prompt_length: int | None = None,
        capture: Capture = Capture(),
        edit: Edit = Edit(),
    ) -> Forward:
        if edit != Edit() or capture.scores or capture.parts or capture.neurons:
            raise NotReady("model_loading")
        return self._found(ids, prompt_length)[0]

    def lens(self, forward: Forward, followed: int) -> Lens:
        """The stored lens; it follows the token that was chosen when it was recorded."""
        for recorded, lens in self._steps.values():
            if recorded is forward and lens.followed == followed:
                return lens
        raise NotReady("model_loading")

    def next_logits(
        self,
        prefixes: Sequence[Sequence[int]],
        *,
        prompt_length: int | None = None,
        run: Hashable = None,
    ) -> Float[np.ndarray, "batch vocabulary"]:
        return np.stack([self.forward(i, prompt_length=prompt_length).logits for i in prefixes])

    def _found(self, ids: Sequence[int], prompt_length: int | None) -> tuple[Forward, Lens]:
        path = tuple(ids)
        found = self._steps.get((len(path) if prompt_length is None else prompt_length, path))
        if found is None:
            raise NotReady("model_loading")
        return found


@cache
def recorded_engine() -> RecordedEngine:
    """The stored run of the default model, read once a process; immutable, so shared."""
    return RecordedEngine()


def record(
    engine: Engine,
    forwards: Sequence[tuple[Forward, int]],
    *,
    tokenizer_json: str,
    chat_template: str | None,
    about: dict[str, Any],
    folder: Path = STORED,
) -> None:
    """Store (forward, chosen id) pairs of one run, the prompt's first, for later replay."""
    folder.mkdir(parents=True, exist_ok=True)
    steps = []
    for index, (forward, chosen) in enumerate(forwards):
        lens = logit_lens(engine, forward, chosen)
        arrays = {name: getattr(forward, name) for name in _FORWARD}
        arrays |= {f"lens_{name}": getattr(lens, name) for name in _LENS}
        name = f"step_{index}.npz"
        np.savez_compressed(folder / name, **arrays)
        steps.append(
            {
                "file": name,
                "ids": list(forward.ids),
                "start": forward.start,
                "cached": forward.cached,
                "ms": forward.ms,
                "chosen": chosen,
            }
        )
    (folder / "tokenizer.json.gz").write_bytes(gzip.compress(tokenizer_json.encode(), mtime=0))
    content = {
        "about": about,
        "info": asdict(engine.info),
        "chat_template": chat_template,
        "prompt_length": len(forwards[0][0].ids),
        "steps": steps,
    }
    (folder / "run.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _unpacked(step: dict[str, Any], arrays: Any) -> tuple[Forward, Lens]:
    forward = Forward(
        ids=tuple(step["ids"]),
        start=step["start"],
        cached=step["cached"],
        ms=step["ms"],
        layers=tuple(range(len(arrays["residual"]))),
        **{name: arrays[name] for name in _FORWARD},
    )
    lens = Lens(followed=step["chosen"], **{name: arrays[f"lens_{name}"] for name in _LENS})
    return forward, lens
