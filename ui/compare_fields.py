"""The settings of one column of the Compare page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import streamlit as st

from core.compare_records import Column
from core.decode.columns import PRESETS, parse_column, spell
from core.edits.spec import split
from core.faults import Fault
from core.models.catalog import CATALOGUE
from core.settings import (
    BEAM_KINDS,
    MAX_BEAMS,
    MAX_NGRAM,
    MAX_PENALTY,
    MAX_TEMPERATURE,
    STOP_RULES,
    STRATEGIES,
    BeamSettings,
    Settings,
    Strategy,
)
from ui import state
from ui.compare_setup import Slot, put, swap, texts
from ui.decoding_controls import seed_of
from ui.edit_words import model_words
from ui.i18n import Catalog
from ui.view import COLUMN_CAP
from ui.widgets import show

HERE: Final = "here"
"""The model of the whole page."""
KINDS: Final = ("greedy", "sample", "beam")
MOST_BEAMS: Final = 16
REFUSED: Final = "compare_refused"


@dataclass(frozen=True)
class Field:
    """A number that may be off (``off``) or has a usual value."""

    name: str
    low: float
    high: float
    step: float
    off: bool = True
    message: str = ""

    @property
    def label(self) -> str:
        return self.message or f"frame.{self.name}"


TEMPERATURE: Final = Field("temperature", 0.0, MAX_TEMPERATURE, 0.1, off=False)
FILTERS: Final = (
    Field("top_k", 1, 2**31, 1),
    Field("top_p", 0.0, 1.0, 0.05),
    Field("min_p", 0.0, 1.0, 0.05),
    Field("typical_p", 0.0, 1.0, 0.05),
)
PENALTIES: Final = (
    Field("repetition_penalty", 0.01, MAX_PENALTY, 0.1),
    Field("no_repeat_ngram", 1, MAX_NGRAM, 1),
    Field("presence_penalty", -MAX_PENALTY, MAX_PENALTY, 0.1),
    Field("frequency_penalty", -MAX_PENALTY, MAX_PENALTY, 0.1),
)
BEAM_FIELDS: Final = (
    Field("width", 1, MOST_BEAMS, 1, off=False, message="compare.width"),
    Field("length_penalty", -MAX_PENALTY, MAX_PENALTY, 0.1, False, "compare.length_penalty"),
)
DIVERSE: Final = (
    Field("groups", 1, MAX_BEAMS, 1, off=False, message="compare.groups"),
    Field("diversity", 0.0, 100.0, 0.1, off=False, message="compare.diversity"),
)


def column_at(index: int) -> Column:
    """The column as it stands; the first preset where it cannot be read."""
    found = texts()
    try:
        return parse_column(found[index])
    except (Fault, IndexError):
        return PRESETS["greedy"]


def _change(index: int, **fields: Any) -> None:
    """Other settings; what is not allowed changes nothing and gets its sentence."""
    column = column_at(index)
    if not all(hasattr(column.settings, name) for name in fields):
        # A widget of the strategy that this column had before: the browser still knew it.
        return
    refused = st.session_state.setdefault(REFUSED, {})
    refused.clear()
    try:
        new = replace(column, settings=replace(column.settings, **fields))
        if len(spell(new)) > COLUMN_CAP:
            raise Fault("column_too_long", most=COLUMN_CAP)
        swap(index, new)
    except Fault as fault:
        refused[index, texts()[index]] = fault


def _tell(index: int, key: str, field: str, convert: Callable[[Any], Any]) -> Callable[[], None]:
    def changed() -> None:
        try:
            _change(index, **{field: convert(st.session_state[key])})
        except Fault as fault:
            st.session_state.setdefault(REFUSED, {})[index, texts()[index]] = fault

    return changed


def fields(index: int, slot: Slot, t: Catalog) -> None:
    column = slot.column or PRESETS["greedy"]
    settings = column.settings
    kind = "beam" if isinstance(settings, BeamSettings) else settings.strategy
    st.segmented_control(
        t("frame.strategy"),
        KINDS,
        key=show(f"c{index}_kind", kind),
        format_func=lambda id: t(f"compare.kind_{id}") if id in KINDS else str(id),
        on_change=lambda: _switch(index, st.session_state[f"c{index}_kind"]),
    )
    if isinstance(settings, BeamSettings):
        _beam_fields(index, settings, t)
    else:
        _step_fields(index, settings, t)
    _model(index, column, t)
    _line(index, slot, t)


def _switch(index: int, kind: str | None) -> None:
    column = column_at(index)
    if kind == "beam" and not isinstance(column.settings, BeamSettings):
        swap(index, replace(column, settings=BeamSettings()))
    elif kind in STRATEGIES:
        old = column.settings
        base = Settings() if isinstance(old, BeamSettings) else old
        strategy: Strategy = "greedy" if kind == "greedy" else "sample"
        swap(index, replace(column, settings=replace(base, strategy=strategy)))


def _step_fields(index: int, settings: Settings, t: Catalog) -> None:
    if settings.strategy == "sample":
        _numbers(index, (TEMPERATURE, *FILTERS), settings, t)
        if state.place().view.dice == "own":
            _seed(index, settings.seed, t)
    _numbers(index, PENALTIES, settings, t)


def _beam_fields(index: int, settings: BeamSettings, t: Catalog) -> None:
    _numbers(index, BEAM_FIELDS, settings, t)
    _pick(index, "kind", BEAM_KINDS, settings.kind, t)
    if settings.kind == "sampled":
        _numbers(index, (TEMPERATURE,), settings, t)
        _seed(index, settings.seed, t)
    if settings.kind == "diverse":
        _numbers(index, DIVERSE, settings, t)
    _pick(index, "stop", STOP_RULES, settings.stop, t)


def _pick(index: int, field: str, ids: tuple[str, ...], value: str, t: Catalog) -> None:
    key = f"c{index}_beam_{field}"
    st.segmented_control(
        t(f"compare.{field}"),
        ids,
        key=show(key, value),
        format_func=lambda id: t(f"compare.{field}_{id}") if id in ids else str(id),
        on_change=_tell(index, key, field, lambda id: id or value),
    )


def _numbers(index: int, fields: tuple[Field, ...], settings: Any, t: Catalog) -> None:
    for pair in range(0, len(fields), 2):
        for place, field in zip(st.columns(2), fields[pair : pair + 2], strict=False):
            with place:
                _number(index, field, getattr(settings, field.name), t)


def _number(index: int, field: Field, value: Any, t: Catalog) -> None:
    whole = isinstance(field.step, int)
    key = f"c{index}_{field.name}"

    def convert(typed: Any) -> Any:
        if typed is None:
            return None if field.off else value
        return None if field.off and field.name in ("top_p", "typical_p") and typed == 0 else typed

    st.number_input(
        t(field.label),
        field.low,
        max(field.high, value or 0) if not whole else max(int(field.high), value or 0),
        value=None,
        key=show(key, value),
        step=field.step,
        placeholder=t("frame.off"),
        help=t(f"{field.label}_help"),
        on_change=_tell(index, key, field.name, convert),
    )


def _seed(index: int, seed: int, t: Catalog) -> None:
    key = f"c{index}_seed"
    if st.session_state.get(key) != str(seed):
        st.session_state[key] = str(seed)
    st.text_input(
        t("frame.seed"),
        key=key,
        max_chars=26,
        help=t("compare.seed_help"),
        on_change=_tell(index, key, "seed", lambda text: seed_of(text or "0")),
    )


def _model(index: int, column: Column, t: Catalog) -> None:
    listed = [HERE, *CATALOGUE]
    chosen = column.model or HERE
    here = split(state.place().spec.model)[0]
    listed += [name for name in dict.fromkeys((here, chosen)) if name not in listed]
    key = f"c{index}_model"

    def changed() -> None:
        picked = st.session_state[key]
        swap(index, replace(column_at(index), model=None if picked == HERE else picked))

    st.selectbox(
        t("frame.model"),
        listed,
        key=show(key, chosen),
        format_func=lambda id: model_title(str(id), t),
        on_change=changed,
        help=t("compare.model_help"),
    )


def model_title(id: str, t: Catalog) -> str:
    if id == HERE:
        return t("compare.model_here")
    return model_words(t, id)


def _line(index: int, slot: Slot, t: Catalog) -> None:
    """The column as the command line writes it: everything can be typed there."""
    key = f"c{index}_line"
    if st.session_state.get(f"{key}_of") != slot.text:
        st.session_state[key] = st.session_state[f"{key}_of"] = slot.text

    def changed() -> None:
        found = texts()
        found[index] = st.session_state[key].replace("\n", " ").strip()[:COLUMN_CAP] or "greedy"
        put(found)

    st.text_input(
        t("compare.line"),
        key=key,
        max_chars=COLUMN_CAP,
        help=t("compare.line_help"),
        on_change=changed,
    )
