"""The toy model's table: which token comes next, written down by hand.

The file is JSON: ``vocab`` (words), ``end`` (the words that end a text), and ``next``: from
the *generated* words so far, joined by one space ("" at the start), to the next-token
probabilities in the order of ``vocab``. ``*`` answers for every history that has no row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from core.faults import Fault
from core.text.reader import repair

DEFAULT: Final = Path(__file__).with_name("toy_default.json")
FALLBACK: Final = "*"
FILE_TOLERANCE: Final = 1e-6
"""How far a row of a file may miss 1. Such a row is never changed, so that what stands in
the file is what is shown."""
TYPED_TOLERANCE: Final = 1e-3
"""The same for numbers typed on the spot (three thirds as 0.333), which are divided by their
sum."""
MAX_FILE_BYTES: Final = 20_000_000


@dataclass(frozen=True, eq=False)
class ToyTable:
    vocab: tuple[str, ...]
    end_ids: tuple[int, ...]
    logits: Mapping[str, Float[np.ndarray, " vocabulary"]]
    """History → ln p of every word (or scores, where those were typed); -inf for p = 0."""

    def row(self, generated: Sequence[int]) -> Float[np.ndarray, " vocabulary"]:
        """Logits after these generated tokens. Raises Fault when the table has no such row."""
        history = " ".join(self.vocab[token] for token in generated)
        row = self.logits.get(history, self.logits.get(FALLBACK))
        if row is None:
            raise Fault("toy_no_row", history=history)
        return row


def read_table(path: Path) -> ToyTable:
    """The table of a JSON file. Raises Fault with one sentence for whatever is wrong with it."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise Fault("toy_too_big", name=path.name, limit=MAX_FILE_BYTES // 1_000_000)
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Fault("no_toy_file", name=str(path)) from None
    except OSError as error:
        raise Fault("toy_unreadable", name=str(path), reason=error.strerror) from None
    except UnicodeDecodeError:
        raise Fault("toy_not_json", name=path.name, reason="not UTF-8") from None
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        reason = f"{error.msg}, line {error.lineno}"
        raise Fault("toy_not_json", name=path.name, reason=reason) from None
    except (ValueError, RecursionError):
        raise Fault("toy_not_json", name=path.name, reason="too deep or too long") from None
    return parse_table(content)


def parse_table(content: Any) -> ToyTable:
    """A table from the values of its JSON. Raises Fault as :func:`read_table`."""
    if not isinstance(content, dict) or not {"vocab", "next"} <= content.keys():
        raise Fault("toy_parts")
    vocab = _words(content["vocab"])
    end = content.get("end", [])
    ids = {word: id for id, word in enumerate(vocab)}
    if not isinstance(end, list) or not all(isinstance(word, str) and word in ids for word in end):
        raise Fault("toy_end", value=end)
    rows = content["next"]
    if not isinstance(rows, dict) or not rows:
        raise Fault("toy_parts")
    for history in rows:
        unknown = [w for w in history.split(" ") if w not in ids] if history else []
        if unknown and history != FALLBACK:
            raise Fault("toy_history", history=history, word=unknown[0])
    logits = {history: _row(history, values, len(vocab)) for history, values in rows.items()}
    return ToyTable(vocab, tuple(sorted({ids[word] for word in end})), logits)


def _words(value: Any) -> tuple[str, ...]:
    good = isinstance(value, list) and all(isinstance(w, str) and _is_word(w) for w in value)
    if not good or not value or len(set(value)) < len(value):
        raise Fault("toy_vocab")
    return tuple(value)


def _is_word(text: str) -> bool:
    """JSON can spell half a surrogate pair (``\\ud800``), which is no text and has no bytes."""
    return text.split() == [text] and repair(text) == text


def _row(history: str, values: Any, size: int) -> Float[np.ndarray, " vocabulary"]:
    if not isinstance(values, list) or len(values) != size:
        count = len(values) if isinstance(values, list) else 0
        raise Fault("toy_row_length", history=history, count=count, size=size)
    for value in values:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1 + FILE_TOLERANCE:
            raise Fault("toy_row_number", history=history, value=value)
    row = np.array(values, dtype=np.float64)
    if abs(row.sum() - 1) > FILE_TOLERANCE:
        raise Fault("toy_row_sum", history=history, total=round(float(row.sum()), 9))
    return _log(row)


def _log(probabilities: Float[np.ndarray, " vocabulary"]) -> Float[np.ndarray, " vocabulary"]:
    with np.errstate(divide="ignore"):
        logits: Float[np.ndarray, " vocabulary"] = np.log(probabilities)
    logits.setflags(write=False)
    return logits


def _numbers(values: ArrayLike, code: str) -> Float[np.ndarray, " vocabulary"]:
    try:
        row = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise Fault(code) from None
    if row.ndim != 1 or row.size == 0:
        raise Fault(code)
    return row


def logits_of(probabilities: ArrayLike) -> Float[np.ndarray, " vocabulary"]:
    """ln p of typed probabilities, which are divided by their sum first.

    Raises Fault when they are not one row of numbers from 0 to 1, or when their sum misses 1
    by more than TYPED_TOLERANCE.
    """
    row = _numbers(probabilities, "probs_not_numbers")
    bad = ~(row >= 0) | (row == np.inf)
    if bad.any():
        raise Fault("probs_bad_number", id=int(bad.argmax()), value=float(row[bad.argmax()]))
    if not abs(row.sum() - 1) <= TYPED_TOLERANCE:
        raise Fault("probs_sum", total=round(float(row.sum()), 6))
    return _log(row / row.sum())


def toy_from_numbers(
    *,
    probabilities: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
) -> ToyTable:
    """A table that always answers with the same typed numbers, one of the two kinds.

    ``labels`` name the tokens ("a", "b", … by default); they may repeat and hold spaces.
    Raises Fault as :func:`logits_of`; logits are checked when a choice is made from them.
    """
    if probabilities is not None and logits is None:
        row = logits_of(probabilities)
    elif logits is not None and probabilities is None:
        row = _numbers(logits, "logits_not_numbers")
        row.setflags(write=False)
    else:
        raise ValueError("give either probabilities or logits")
    names = tuple(labels) if labels is not None else tuple(map(letters, range(row.size)))
    if len(names) != row.size:
        raise ValueError(f"{row.size} numbers need as many labels, not {len(names)}")
    return ToyTable(names, (), {FALLBACK: row})


def letters(index: int) -> str:
    """a … z, then aa, ab, … as in the columns of a spreadsheet."""
    head = letters(index // 26 - 1) if index >= 26 else ""
    return head + "abcdefghijklmnopqrstuvwxyz"[index % 26]


@cache
def default_table() -> ToyTable:
    """The example that comes with the project."""
    return read_table(DEFAULT)
