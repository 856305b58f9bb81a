"""Numbers typed by hand, read kindly: ``a 0.5, b 0.3, c 0.2``, one a line, or a JSON list.

Pure. What was typed is never changed here; what cannot be read is answered with a sentence.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn

import numpy as np
from jaxtyping import Float

from core.faults import Fault
from core.visible import visible

Kind = Literal["probabilities", "logits"]

LEAST: Final = 2
MOST: Final = 50
MAX_CHARACTERS: Final = 2000
"""Longest text that is kept, in the address bar too."""
MAX_LABEL: Final = 40
TOLERANCE: Final = 1e-3
"""How far typed probabilities may miss 1: three thirds written 0.333 are meant."""

_NUMBER: Final = r"[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|inf(?:inity)?|∞)"
_ITEM: Final = re.compile(
    rf"(?:(?P<label>.*?)(?:\s*[:=]\s*|\s+))?(?P<number>{_NUMBER})\s*(?P<percent>%?)", re.I
)
_ONLY_NUMBERS: Final = re.compile(rf"{_NUMBER}\s*%?(?:\s+{_NUMBER}\s*%?)+", re.I)
_HALF_WIDTH: Final = str.maketrans("０１２３４５６７８９．－−＋％：＝", "0123456789.--+%:=")
_SEPARATOR: Final = re.compile(r"[,;，；、\n]")


@dataclass(frozen=True)
class Typed:
    """A small vocabulary and one number for each of its tokens."""

    kind: Kind
    labels: tuple[str, ...]
    numbers: tuple[float, ...]

    @property
    def logits(self) -> Float[np.ndarray, " vocabulary"]:
        """The scores: typed, or the logarithms of the probabilities (-inf for 0)."""
        row = np.array(self.numbers, dtype=np.float64)
        if self.kind == "logits":
            return row
        with np.errstate(divide="ignore"):
            logs: Float[np.ndarray, " vocabulary"] = np.log(row / row.sum())
        return logs


def pack(kind: Kind, text: str) -> str:
    """One string for the address bar and the session: ``p:a 0.5, b 0.5``."""
    return f"{kind[0]}:{text[:MAX_CHARACTERS]}"


def unpack(own: str) -> tuple[Kind, str]:
    """The two parts of :func:`pack`; anything else is read as probabilities."""
    head, colon, text = own.partition(":")
    if colon and head in ("p", "l"):
        return ("logits" if head == "l" else "probabilities"), text[:MAX_CHARACTERS]
    return "probabilities", own[:MAX_CHARACTERS]


def parse(kind: Kind, text: str) -> Typed:
    """Read what was typed.

    Raises Fault with one sentence: nothing typed, an item without a number, too few or too
    many tokens, a negative probability, a sum that is not 1, only impossible tokens.
    """
    pairs = read(text)
    if not LEAST <= len(pairs) <= MOST:
        raise Fault("typed_count", count=len(pairs), low=LEAST, high=MOST)
    labels = tuple(_label(label, i) for i, (label, _) in enumerate(pairs))
    numbers = tuple(number for _, number in pairs)
    (_check_probabilities if kind == "probabilities" else _check_logits)(labels, numbers)
    return Typed(kind, labels, numbers)


def read(text: str) -> list[tuple[str, float]]:
    """(label or "", number) of each item, in the order typed. Raises Fault as :func:`parse`."""
    stripped = text.strip()
    if not stripped:
        raise Fault("typed_empty")
    if stripped[0] in "[{":
        return _from_json(stripped)
    return [pair for part in _SEPARATOR.split(stripped) if part.strip() for pair in _item(part)]


def rescaled(text: str) -> str:
    """The same labels with numbers that add up to 1, as new text for the field."""
    pairs = read(text)
    total = math.fsum(number for _, number in pairs)
    shares = [(label, f"{number / total:.6g}") for label, number in pairs]
    if any(_SEPARATOR.search(label) or label[:1] in "[{" for label, _ in pairs):
        return json.dumps([[label, float(share)] for label, share in shares], ensure_ascii=False)
    return ", ".join(f"{label} {share}".strip() for label, share in shares)


def can_rescale(kind: Kind, text: str) -> bool:
    """Whether dividing by the sum would mend what was typed."""
    if kind != "probabilities":
        return False
    try:
        numbers = [number for _, number in read(text)]
    except Fault:
        return False
    total = _total(numbers) if all(map(math.isfinite, numbers)) else math.inf
    return LEAST <= len(numbers) <= MOST and min(numbers) >= 0 and 0 < total < math.inf


def _item(part: str) -> list[tuple[str, float]]:
    plain = " ".join(part.translate(_HALF_WIDTH).split())
    if _ONLY_NUMBERS.fullmatch(plain):
        return [("", _number(found)) for found in re.findall(rf"{_NUMBER}\s*%?", plain, re.I)]
    match = _ITEM.fullmatch(plain)
    if match is None:
        raise Fault("typed_item", item=part.strip()[:MAX_LABEL])
    return [((match["label"] or "").strip(), _number(match["number"] + match["percent"]))]


def _number(text: str) -> float:
    plain = text.strip().lower().replace("∞", "inf")
    return float(plain[:-1]) / 100 if plain.endswith("%") else float(plain)


def _from_json(text: str) -> list[tuple[str, float]]:
    try:
        value: Any = json.loads(text, parse_int=float)
    except (ValueError, RecursionError):
        raise Fault("typed_json") from None
    items = list(value.items()) if isinstance(value, dict) else value
    return [_json_item(item) for item in items]


def _json_item(item: Any) -> tuple[str, float]:
    label, number = item if isinstance(item, list | tuple) and len(item) == 2 else ("", item)
    if not isinstance(number, float) or not isinstance(label, str):
        raise Fault("typed_item", item=str(item)[:MAX_LABEL])
    return label, number


def _label(label: str, index: int) -> str:
    """The label made visible, or A, B, … Z, AA, AB … where none was typed."""
    if label:
        return visible(label[:MAX_LABEL])
    first, second = divmod(index, 26)
    return (chr(64 + first) if first else "") + chr(65 + second)


def _total(numbers: Iterable[float]) -> float:
    try:
        return math.fsum(numbers)
    except OverflowError:  # it refuses a sum beyond the largest float
        return math.inf


def _check_probabilities(labels: tuple[str, ...], numbers: tuple[float, ...]) -> None:
    for label, number in zip(labels, numbers, strict=True):
        if not 0 <= number < math.inf:
            raise Fault("typed_negative", label=label, value=number)
    total = _total(numbers)
    if total == 0:
        raise Fault("logits_all_impossible")
    if abs(total - 1) > TOLERANCE:
        raise Fault("typed_sum", total=f"{total:.6g}")


def _check_logits(labels: tuple[str, ...], numbers: tuple[float, ...]) -> None:
    for label, number in zip(labels, numbers, strict=True):
        if math.isnan(number) or number == math.inf:
            _refuse_logit(label, number)
    if max(numbers) == -math.inf:
        raise Fault("logits_all_impossible")


def _refuse_logit(label: str, number: float) -> NoReturn:
    raise Fault("typed_logit", label=label, value=number)
