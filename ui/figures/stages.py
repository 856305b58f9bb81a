"""The step from logits to a choice, as data for the component and as a table. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from core.decode import Candidate, candidates, choose, uniform
from core.decode.measure import descending
from core.decode.past import Past
from core.settings import Settings
from core.trace import Choice, StepTrace
from ui.figures.stages_text import TEXT_OFF, settings_data, text_data
from ui.i18n import HTML_LANG, Catalog
from ui.typed import Typed

MOST_ROWS: Final = 100
"""Rows that the chart can show; their labels always travel with the data."""
LABEL_BYTES: Final = 3_500_000
"""Most bytes of labels that a page sends; with 262,144 scores that stays below 5 MB."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet reads a cell that begins like this as a formula."""


def logits_blob(logits: Float[np.ndarray, " vocabulary"]) -> tuple[str, bytes]:
    """(id, little-endian values): float32 as models give them, float64 for typed numbers."""
    wide = logits.dtype == np.float64
    blob = np.ascontiguousarray(logits, dtype="<f8" if wide else "<f4").tobytes()
    return f"{'logits64' if wide else 'logits'}:{_digest(blob)}", blob


def labels_blob(labels: Sequence[str]) -> tuple[str, bytes]:
    """(id, the labels as UTF-8, one a line), cut at the last whole label within LABEL_BYTES."""
    blob = "\n".join(labels).encode("utf-8", "replace")
    if len(blob) > LABEL_BYTES:
        blob = blob[: blob.rindex(b"\n", 0, LABEL_BYTES)]
    return f"labels:{_digest(blob)}", blob


def _digest(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()[:16]


@dataclass(frozen=True)
class Scene:
    """One set of scores on its way to a choice."""

    logits: Float[np.ndarray, " vocabulary"]
    choice: Choice
    """With its stages."""
    settings: Settings
    step: int
    label: Callable[[int], str]
    past: Past | None = None
    """The text before the step; typed numbers have none."""

    @property
    def typed(self) -> bool:
        """Typed by hand: nothing to force, and few enough labels to send them all."""
        return self.past is None

    @classmethod
    def of(cls, settings: Settings, step: StepTrace, label: Callable[[int], str]) -> Scene:
        """A step of a run, with its stages in full."""
        forward, index = step.forward, step.index
        past = Past.at(forward.ids, index)
        return cls(forward.logits, step.choice, settings, index, label, past)

    @classmethod
    def by_hand(cls, settings: Settings, typed: Typed) -> Scene:
        """Typed numbers: no text stands before them, and nothing is forced."""
        settings = replace(settings, forced=(), **TEXT_OFF)
        choice = choose(typed.logits, settings, step=0)
        return cls(typed.logits, choice, settings, 0, typed.labels.__getitem__)


def stages_data(scene: Scene, t: Catalog, *, scores: str, labels: str | None) -> dict[str, Any]:
    """What the component draws, but for the arrays named by ``scores`` and ``labels``.

    ``check`` lets the browser compare its own numbers with the choice made here.
    """
    logits, choice, settings = scene.logits, scene.choice, scene.settings
    top = [int(i) for i in descending(logits)[:MOST_ROWS]]
    named = dict.fromkeys([*top, choice.id])
    after = _softmax_of(choice, logits.size)
    return {
        "lang": HTML_LANG[t.lang],
        "strings": t.area("probabilities"),
        "logits": scores,
        "labels": labels,
        "top": [[i, scene.label(i)] for i in named],
        "settings": settings_data(settings),
        **text_data(logits, choice, settings, scene.past),
        "strategy": settings.strategy,
        "u": uniform(settings.seed, scene.step, settings.roll_at(scene.step)),
        "forced": choice.id if choice.rule == "forced" else None,
        "step": scene.step,
        "can_force": not scene.typed,
        "has_text": not scene.typed,
        "check": {"chosen": choice.id, "ids": top, "after": [float(after[i]) for i in top]},
    }


def _softmax_of(choice: Choice, size: int) -> Float[np.ndarray, " vocabulary"]:
    last = choice.stages[-1].logits
    weights: Float[np.ndarray, " vocabulary"] = np.exp(last - last.max())
    weights /= weights.sum()
    return weights


def stages_table(scene: Scene, rows: int, t: Catalog) -> pd.DataFrame:
    """The candidates as a table: one column for each stage, in the order applied."""
    found = candidates(scene.logits, scene.choice, rows)
    names = [t(f"probabilities.{stage.name}_term") for stage in scene.choice.stages]
    columns: dict[str, list[Any]] = {
        t("probabilities.table_rank"): [c.rank for c in found],
        t("probabilities.table_token"): [_name(c, scene.label, t) for c in found],
        t("probabilities.table_id"): [c.id for c in found],
        t("probabilities.table_logit"): [c.logit for c in found],
        t("probabilities.table_model"): [c.probability_model for c in found],
    }
    for i, name in enumerate(names):
        columns[t("probabilities.table_after", name=name)] = [c.after[i] for c in found]
    columns[t("probabilities.table_removed")] = [_removed(c, t) for c in found]
    columns[t("probabilities.table_chosen")] = ["◀" if c.chosen else "" for c in found]
    frame = pd.DataFrame(columns)
    for key in ("table_rank", "table_id"):
        frame[t(f"probabilities.{key}")] = frame[t(f"probabilities.{key}")].astype("Int64")
    return frame


def probability_columns(choice: Choice, t: Catalog) -> list[str]:
    """Names of the columns of :func:`stages_table` that hold probabilities."""
    names = [t(f"probabilities.{stage.name}_term") for stage in choice.stages]
    return [
        t("probabilities.table_model"),
        *(t("probabilities.table_after", name=n) for n in names),
    ]


def _name(row: Candidate, label: Callable[[int], str], t: Catalog) -> str:
    if row.id is None:
        return t("probabilities.others", n=f"{row.count:,}")
    return guarded(label(row.id))


def _removed(row: Candidate, t: Catalog) -> str:
    return t(f"probabilities.{row.removed_by}_term") if row.removed_by else ""


def guarded(text: str) -> str:
    """Text that looks like a formula gets a leading apostrophe: tables end up in spreadsheets."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def csv_of(frame: pd.DataFrame) -> bytes:
    """The table as a file; the mark at its beginning tells spreadsheets that it is UTF-8."""
    text: str = frame.to_csv(index=False)
    return b"\xef\xbb\xbf" + text.encode("utf-8", "replace")
