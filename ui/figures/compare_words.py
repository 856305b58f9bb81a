"""What the columns of a comparison are called, and why two of them part, in words. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from core.compare_records import Column, Difference
from core.decode.columns import PRESETS, spell_number
from core.faults import Fault
from core.settings import BeamSettings, Settings
from ui.i18n import Catalog

LETTERS: Final = "ABCDEF"
COLOURS: Final = ("#2B87C2", "#E06A1B", "#149A74", "#B5659B", "#8B6FD0", "#8A7A1E")
"""One a column, readable on both grounds; letters and markers say the same."""
SYMBOLS: Final = ("circle", "square", "diamond", "triangle-up", "cross", "star")

Part = tuple[str, str]
"""("text" or "token", what it says)."""
Label = Callable[[int], str]


def title(index: int, column: Column, t: Catalog) -> str:
    """``A · Top-p 0.9``: how a column is named wherever it stands alone."""
    return f"{LETTERS[index]} · {name(column, t)}"


def name(column: Column, t: Catalog) -> str:
    """A strategy in a few words, with every value that is not as usual."""
    settings = column.settings
    named = _beam(settings, t) if isinstance(settings, BeamSettings) else _steps(settings, t)
    return named[:1].upper() + named[1:]


def _value(key: str, value: object, t: Catalog) -> str:
    shown = spell_number(value) if isinstance(value, float) else str(value)
    return t(f"compare.say_{key}", value=shown)


def _beam(settings: BeamSettings, t: Catalog) -> str:
    parts = [t(f"compare.name_beam_{settings.kind}", n=settings.width)]
    if settings.length_penalty:
        parts.append(_value("length_penalty", settings.length_penalty, t))
    if settings.stop != "best":
        parts.append(t("compare.say_stop_full"))
    if settings.kind == "sampled" and settings.temperature != 1:
        parts.append(_value("temperature", settings.temperature, t))
    if settings.kind == "diverse":
        parts.append(_value("groups", settings.groups, t))
    return t("compare.comma").join(parts)


def _steps(settings: Settings, t: Catalog) -> str:
    parts = []
    if settings.strategy == "sample":
        if settings.temperature == 0:
            parts.append(t("compare.name_zero"))
        elif settings.temperature != 1:
            parts.append(_value("temperature", settings.temperature, t))
        for key in ("top_k", "top_p", "min_p", "typical_p"):
            if settings.parameter(key) is not None and settings.temperature != 0:
                parts.append(_value(key, settings.parameter(key), t))
        parts = parts or [t("compare.name_pure")]
    else:
        parts.append(t("compare.name_greedy"))
    for stage in settings.processors:
        texts = stage in ("banned", "pattern")
        parts.append(
            t(f"compare.say_{stage}") if texts else _value(stage, settings.parameter(stage), t)
        )
    if settings.forced:
        parts.append(t("compare.say_forced", value=len(settings.forced)))
    if settings.rolls:
        parts.append(t("compare.say_rolls", value=len(settings.rolls)))
    return t("compare.comma").join(parts)


def preset_of(column: Column) -> str | None:
    """The ready strategy that a column is, by its id."""
    return next((id for id, ready in PRESETS.items() if ready.settings == column.settings), None)


# ---------------------------------------------------------------- the first difference


def reason(
    found: Difference,
    columns: tuple[Column, Column],
    other: int,
    labels: tuple[Label, Label],
    us: tuple[float | None, float | None],
    *,
    t: Catalog,
    done: bool,
) -> list[Part]:
    """Why a column parts from the reference, number ``other``, as words and tokens in turn.

    Of the column and of the reference: ``columns``; ``labels`` that name their tokens; ``us``,
    the dice of both at that step.
    """
    here = "" if found.here is None else labels[0](found.here)
    there = "" if found.there is None else labels[1](found.there)
    values = {
        "n": 0 if found.step is None else found.step + 1,
        "other": LETTERS[other],
        "u": _dice(us[0]),
        "v": _dice(us[1]),
        "stage": _stage(found, t),
    }
    return spread(t(f"compare.{_key(found, columns, done)}"), here, there, values)


SIDED: Final = ("not_drawn", "search", "forced", "one_ended")
"""Reasons that are the doing of one of the two."""


def _key(found: Difference, columns: tuple[Column, Column], done: bool) -> str:
    """The message that says it."""
    if found.step is None:
        return "why_same" if done else "why_same_so_far"
    side = "" if found.removed_here else "_there"
    if found.reason == "removed":
        loser = columns[1] if found.removed_here else columns[0]
        return f"why_removed{side}{'_drawn' if _draws(loser) else ''}"
    if found.reason in ("moved", "reordered"):
        return f"why_{found.reason}{'_by' if found.stage else ''}"
    return f"why_{found.reason}{side if found.reason in SIDED else ''}"


def _draws(column: Column) -> bool:
    return isinstance(column.settings, Settings) and not column.settings.is_greedy


def _dice(u: float | None) -> str:
    return "–" if u is None else f"{u:.3f}"


def _stage(found: Difference, t: Catalog) -> str:
    if found.stage is None:
        return ""
    value = found.parameter
    if value is None or found.stage in ("banned", "pattern"):
        return t(f"compare.stage_{found.stage}")
    shown = spell_number(value) if isinstance(value, float) else str(value)
    return t("compare.stage_is", name=t(f"compare.stage_{found.stage}"), value=shown)


def spread(text: str, here: str, there: str, values: dict[str, object]) -> list[Part]:
    """A message cut at its tokens; whatever a token's text is, it stays one part."""
    parts: list[Part] = []
    for piece in re.split(r"(\{here\}|\{there\})", text):
        if piece in ("{here}", "{there}"):
            parts.append(("token", here if piece == "{here}" else there))
        elif piece:
            parts.append(("text", piece.format(**values)))
    return parts


def fault_text(fault: Fault, t: Catalog) -> str:
    """The sentence as plain text, for what draws text as it is."""
    return t("fault." + fault.code, **fault.params)


def said(parts: list[Part]) -> str:
    """The same as one line of text."""
    return "".join(f"“{text}”" if kind == "token" else text for kind, text in parts)
