"""Training beside inference, as tables. Pure: records in, a table out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from core.lab.timing import Spread
from core.lab.training_records import Kept, Prediction, Training
from core.lab.training_stored import Words
from ui.figures.training import PARTS, memory_values
from ui.figures.words import percent
from ui.i18n import Catalog


def predictions_table(found: Prediction, words: Words, t: Catalog) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                t("training.col_token"): words.label(token),
                t("training.before"): before,
                t("training.after"): after,
            }
            for token, before, after in found.rows(10)
        ]
    )


def loss_table(found: Training, words: Words, t: Catalog) -> pd.DataFrame:
    """A row for each step: the loss, and p of each token of the sentence."""
    names = [f"{i}. {words.label(token)}" for i, token in enumerate(found.ask.sentence[1:], 2)]
    rows = []
    for index, (loss, row) in enumerate(zip(found.losses, found.token_p, strict=True)):
        rows.append(
            {t("training.axis_step"): index, t("training.axis_loss"): loss}
            | dict(zip(names, map(float, row), strict=True))
        )
    return pd.DataFrame(rows)


def memory_table(kept: Kept, t: Catalog) -> pd.DataFrame:
    """Exact bytes; the last rows are the sum, and the weights that move."""
    values = memory_values(kept)
    ways = ("inference", "training")
    rows: list[dict[str, Any]] = [
        {t("training.col_part"): t(f"training.{name}")}
        | {t(f"training.way_{way}"): values[way][name] for way in ways}
        for name, _, _ in PARTS
    ]
    sums: Sequence[tuple[str, tuple[int, int]]] = (
        ("sum", (kept.inference, kept.training)),
        ("moving", (0, kept.trained)),
    )
    for name, pair in sums:
        rows.append(
            {t("training.col_part"): t(f"training.{name}")}
            | {t(f"training.way_{way}"): value for way, value in zip(ways, pair, strict=True)}
        )
    return pd.DataFrame(rows)


def places_table(kept: Kept, t: Catalog) -> pd.DataFrame:
    """The activations by where they were kept."""
    return pd.DataFrame(
        [
            {
                t("training.col_place"): t("training.layer_n", n=int(name) + 1)
                if name.isdecimal()
                else t(f"training.place_{name}"),
                t("training.activations"): size,
            }
            for name, size in kept.places
        ]
    )


def time_table(found: Training, t: Catalog) -> pd.DataFrame:
    rows = []
    for name in ("inference", "forward", "backward", "update", "step"):
        spread: Spread | None = getattr(found, f"{name}_ms")
        if spread is not None:
            rows.append(
                {
                    t("training.col_part"): t(f"training.{name}"),
                    t("training.col_ms"): spread.median,
                    t("training.col_low"): spread.low,
                    t("training.col_high"): spread.high,
                    t("training.col_repeats"): spread.repeats,
                }
            )
    return pd.DataFrame(rows)


def forgotten_table(found: Training, t: Catalog) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                t("training.col_text"): t(f"training.text_{each.name}"),
                t("training.col_kl"): float(f"{each.kl:.3g}"),
                t("training.col_top1"): percent(each.top1),
                t("training.col_before"): round(each.before, 2),
                t("training.col_after"): round(each.after, 2),
                t("training.col_positions"): each.positions,
            }
            for each in found.forgotten
        ]
    )


def moved_table(found: Training, t: Catalog) -> pd.DataFrame:
    rows = sorted(found.moved, key=lambda m: (m.layer is not None, m.layer or 0))
    return pd.DataFrame(
        [
            {
                t("training.col_part"): t(f"training.kind_{m.kind}"),
                t("training.axis_layer"): None if m.layer is None else m.layer + 1,
                t("training.axis_moved"): m.relative,
                t("training.col_weights"): m.count,
            }
            for m in rows
        ]
    )


def tensors_table(found: Training, t: Catalog) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {t("training.col_tensor"): name, t("training.axis_moved"): relative}
            for name, relative in found.tensors
        ]
    )
