"""Measured edits in words and tables. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from core.lab.prune_records import Effect
from ui.figures.words import in_bytes, percent
from ui.i18n import Catalog


def number(x: float) -> str:
    """A perplexity for people: 17.9, 1,234, 7.6 × 10⁷."""
    if not math.isfinite(x):
        return "∞"
    if x < 1e6:
        return f"{x:,.1f}" if x < 1000 else f"{x:,.0f}"
    mantissa, power = f"{x:.1e}".split("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa} × 10{raised}"


@dataclass(frozen=True)
class Told:
    """One edit in the short texts of its metrics."""

    perplexity: str
    perplexity_change: str
    kl: str
    top1: str
    memory: str
    memory_change: str
    ratio: str
    step: str


def told(found: Effect, t: Catalog) -> Told:
    """Empty texts where something is not measured yet."""
    judged, times, edited = found.judged, found.times, found.edited
    before = number(found.perplexity) if found.perplexity is not None else "…"
    change = ratio = step = ""
    if edited is not None:
        share = percent(edited.nbytes / found.original.nbytes)
        change = t("pruning.share_of", share=share, whole=in_bytes(found.original.nbytes))
    if times is not None:
        ratio = f"× {times.ratio:.2f}"
        step = f"{times.original.median:.1f} → {times.edited.median:.1f} ms"
    return Told(
        perplexity=number(judged.perplexity) if judged else "…",
        perplexity_change=t("pruning.original_has", value=before),
        kl=f"{judged.kl:.3f}" if judged else "…",
        top1=percent(judged.top1) if judged else "…",
        memory=in_bytes(edited.nbytes) if edited else "…",
        memory_change=change,
        ratio=ratio,
        step=step,
    )


def effect_table(found: Effect, t: Catalog) -> pd.DataFrame:
    """The original and the edited model, number by number."""
    rows = []
    judged, edited, times = found.judged, found.edited, found.times
    if judged is not None and found.perplexity is not None:
        rows.append((t("pruning.perplexity"), number(found.perplexity), number(judged.perplexity)))
        rows.append((t("pruning.kl"), "0", f"{judged.kl:.4f}"))
        rows.append((t("pruning.col_top1"), percent(1.0), percent(judged.top1)))
    if edited is not None:
        whole = found.original
        rows.append((t("pruning.col_bytes"), f"{whole.nbytes:,}", f"{edited.nbytes:,}"))
        rows.append(
            (t("pruning.col_parameters"), f"{whole.parameters:,}", f"{edited.parameters:,}")
        )
        rows.append((t("pruning.col_zeros"), f"{whole.zeros:,}", f"{edited.zeros:,}"))
    if times is not None:
        before, after = (
            f"{s.median:.1f} ({s.low:.1f} – {s.high:.1f})" for s in (times.original, times.edited)
        )
        rows.append((t("pruning.col_step"), before, after))
        rows.append((t("pruning.col_ratio"), "× 1", f"× {times.ratio:.3f}"))
    columns = [t("pruning.col_what"), t("pruning.text_before"), t("pruning.text_after")]
    return pd.DataFrame(rows, columns=columns)
