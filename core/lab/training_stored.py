"""What ``python -m bench.training --store`` measured of the default model, kept in a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.lab.machine import Machine
from core.lab.speculative_records import Drafted, PlainStep, Round, Speculation
from core.lab.training_records import (
    Ask,
    Forgotten,
    Frozen,
    Kept,
    Look,
    Moved,
    Prediction,
    Step,
    Training,
)
from core.tokens import Vocabulary

FILE: Final = Path(__file__).with_name("training_stored.json")
COMMAND: Final = ".venv/bin/python -m bench.training --store"
"""What measures all of it again."""


@dataclass(frozen=True)
class Words:
    """How the tokens of a run are said."""

    label: Callable[[int], str]
    text: Callable[[Sequence[int]], str]

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Words:
        return cls(vocabulary.label, vocabulary.text)


@dataclass(frozen=True)
class Stored:
    """A training and a text written with a draft, with the words of their tokens."""

    training: Training
    speculation: Speculation
    words: Words


@cache
def stored() -> Stored | None:
    """What was measured when the program was made."""
    if not FILE.is_file():
        return None
    return from_plain(json.loads(FILE.read_text(encoding="utf-8")))


def to_plain(
    training: Training, speculation: Speculation, vocabulary: Vocabulary
) -> dict[str, Any]:
    """Plain values, ready for a file."""
    ids = sorted({*_tokens(training), *speculation.prompt, *_spoken(speculation)})
    return {
        "words": {str(i): [vocabulary.label(i), vocabulary.text([i])] for i in ids},
        "training": asdict(training),
        "speculation": asdict(speculation),
    }


def as_text(plain: dict[str, Any]) -> str:
    """JSON, with short numbers."""
    return json.dumps(plain, default=_listed, ensure_ascii=False) + "\n"


def _listed(array: Any) -> Any:
    return [round(float(x), 6) for x in np.asarray(array).ravel()]


def _tokens(training: Training) -> Iterable[int]:
    yield from training.ask.sentence
    for found in (training.prompt, training.other):
        if found is None:
            continue
        yield from found.prompt
        for look in (found.before, found.after):
            if look is not None:
                yield from (token for token, _ in look.top)
                yield from look.written


def _spoken(speculation: Speculation) -> Iterable[int]:
    yield from speculation.ids
    yield from speculation.plain_ids
    yield from (token.id for each in speculation.rounds for token in each.drafted)


def from_plain(table: dict[str, Any]) -> Stored:
    """The records again. Raises KeyError or TypeError for what is no such file."""
    words = {int(token): tuple(pair) for token, pair in table["words"].items()}
    return Stored(
        _training(table["training"]),
        _speculation(table["speculation"]),
        Words(
            label=lambda token: words[token][0],
            text=lambda ids: "".join(words[token][1] for token in ids),
        ),
    )


def _training(table: dict[str, Any]) -> Training:
    ask = table["ask"]
    return Training(
        **{
            **table,
            "ask": Ask(**{**ask, **{n: tuple(ask[n]) for n in ("sentence", "prompt", "other")}}),
            "machine": Machine(**table["machine"]),
            "kept": Kept(**{**table["kept"], "places": _pairs(table["kept"]["places"])}),
            "steps": tuple(map(_step, table["steps"])),
            "last": _step(table["last"]),
            "prompt": _prediction(table["prompt"]),
            "other": _prediction(table["other"]),
            "forgotten": tuple(Forgotten(**each) for each in table["forgotten"]),
            "moved": tuple(Moved(**each) for each in table["moved"]),
            "tensors": _pairs(table["tensors"]),
            "frozen": Frozen(**table["frozen"]),
        }
    )


def _pairs(rows: Iterable[Sequence[Any]]) -> tuple[tuple[Any, Any], ...]:
    return tuple((first, second) for first, second in rows)


def _step(table: dict[str, Any]) -> Step:
    return Step(**{**table, "token_p": np.array(table["token_p"])})


def _prediction(table: dict[str, Any]) -> Prediction:
    numbers = {name: tuple(table[name]) for name in ("prompt", "before_p", "after_p")}
    looks = {
        name: Look(_pairs(table[name]["top"]), tuple(table[name]["written"]))
        for name in ("before", "after")
    }
    return Prediction(**{**table, **numbers, **looks})


def _speculation(table: dict[str, Any]) -> Speculation:
    rounds = tuple(
        Round(
            **{
                **each,
                "drafted": tuple(Drafted(**token) for token in each["drafted"]),
                "draft_ms": tuple(each["draft_ms"]),
            }
        )
        for each in table["rounds"]
    )
    return Speculation(
        **{
            **table,
            "prompt": tuple(table["prompt"]),
            "rounds": rounds,
            "plain": tuple(PlainStep(**each) for each in table["plain"]),
            "machine": Machine(**table["machine"]),
        }
    )
