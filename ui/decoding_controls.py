"""The sidebar's decoding settings: how the next token is chosen, and how many.

The further filters stand in a fold of their own, open as soon as one of them is on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import streamlit as st

from core.faults import Fault
from core.settings import MAX_NGRAM, MAX_PENALTY, MAX_SEED, STRATEGIES, Settings
from ui import link, state
from ui.i18n import Catalog
from ui.widgets import TOLD, forget_drafts, same, show, show_text, tell

PATTERNS: Final = (" ?(yes|no)", " ?[0-9]{4}")
"""Examples; a model puts the space before a word."""
MORE_OFF: Final[dict[str, Any]] = {
    name: getattr(Settings(), name)
    for name in (
        "typical_p", "repetition_penalty", "presence_penalty", "frequency_penalty",
        "no_repeat_ngram", "banned", "pattern",
    )
}  # fmt: skip


@dataclass(frozen=True)
class Field:
    """A number that may be off."""

    name: str
    key: str
    low: float
    high: float
    step: float
    convert: Callable[[Any], Any] = same


def _off_at_zero(value: Any) -> Any:
    """A nucleus of nothing is no setting: 0 reads as "off"."""
    return value or None


FIELDS: Final = (
    Field("top_k", "w_k", 1, 2**31, 1),
    Field("top_p", "w_p", 0.0, 1.0, 0.05, _off_at_zero),
    Field("min_p", "w_m", 0.0, 1.0, 0.05),
)
MORE: Final = (
    Field("typical_p", "w_typical", 0.0, 1.0, 0.05, _off_at_zero),
    Field("no_repeat_ngram", "w_ngram", 1, MAX_NGRAM, 1),
    Field("repetition_penalty", "w_repeat", 0.01, MAX_PENALTY, 0.1),
    Field("presence_penalty", "w_presence", -MAX_PENALTY, MAX_PENALTY, 0.1),
    Field("frequency_penalty", "w_frequency", -MAX_PENALTY, MAX_PENALTY, 0.1),
)


def decoding(t: Catalog) -> None:
    """Draw the strategy, the filters, the dice and the output limit."""
    settings = state.place().spec.settings
    st.segmented_control(
        t("frame.strategy"),
        list(STRATEGIES),
        key=show("w_strategy", settings.strategy),
        format_func=lambda s: t(f"frame.strategy_{s}") if s in STRATEGIES else str(s),
        on_change=tell("w_strategy", "strategy", lambda s: s or settings.strategy),
        help=t("frame.strategy_help"),
        width="stretch",
    )
    st.slider(
        t("frame.temperature"),
        0.0,
        max(2.0, settings.temperature),
        key=show("w_t", settings.temperature),
        step=0.05,
        help=t("frame.temperature_help"),
        on_change=tell("w_t", "temperature"),
    )
    if settings.temperature == 0:
        st.caption(t("frame.temperature_zero"))
    for column, field in zip(st.columns(3), FIELDS, strict=True):
        with column:
            _number(field, settings, t)
    _more(settings, t)
    left, right = st.columns(2)
    with left:
        _seed(settings, t)
    right.number_input(
        t("frame.max_new"),
        1,
        link.STEPS_CAP,
        key=show("w_max", settings.max_new),
        help=t("frame.max_new_help"),
        on_change=tell("w_max", "max_new", lambda v: v or 1),
    )
    refused = st.session_state.get("refused")
    if refused is not None:
        st.error(t.fault(refused))


def _number(field: Field, settings: Settings, t: Catalog) -> None:
    st.number_input(
        t(f"frame.{field.name}"),
        field.low,
        field.high,
        value=None,
        key=show(field.key, getattr(settings, field.name)),
        step=field.step,
        placeholder=t("frame.off"),
        help=t(f"frame.{field.name}_help"),
        on_change=tell(field.key, field.name, field.convert),
    )


# ---------------------------------------------------------------- the seed


def seed_of(text: str) -> int:
    """The seed that was typed. Raises Fault for what is no whole number, or too large."""
    plain = re.sub(r"[\s,，_]", "", text)
    if not re.fullmatch(r"[-+]?\d{1,30}", plain):
        raise Fault("setting_not_whole", name="seed", value=text)
    return int(plain)


def _seed(settings: Settings, t: Catalog) -> None:
    # As text: a number field of the browser rounds whatever is above 2**53.
    st.text_input(
        t("frame.seed"),
        value=show_text("w_seed", str(settings.seed)),
        key="w_seed",
        max_chars=len(str(MAX_SEED)) + 6,
        help=t("frame.seed_help"),
        on_change=tell("w_seed", "seed", lambda text: seed_of(text or "0")),
    )


# ---------------------------------------------------------------- the further filters


def more_on(settings: Settings) -> list[str]:
    """Names of the further filters that are on, in the order applied."""
    typical = ["typical_p"] if settings.typical_p is not None else []
    return [*settings.processors, *typical]


def more_off() -> None:
    """Switch all further filters off."""
    forget_drafts()
    state.ask(**MORE_OFF)


def _fold(count: int) -> str:
    """The key of the fold: a new one, which opens it, where a filter came on from elsewhere.

    (A fold keeps what its reader made of it; and a new one would take the focus of a reader
    who is typing in it.)
    """
    here = st.session_state.pop(TOLD, False)
    before = st.session_state.get("more_count", 0)
    st.session_state["more_count"] = count
    if count and not before and not here:
        st.session_state["more_turns"] = st.session_state.get("more_turns", 0) + 1
    return f"more_filters_{st.session_state.get('more_turns', 0)}"


def _more(settings: Settings, t: Catalog) -> None:
    count = len(more_on(settings))
    label = t("frame.more_on", n=count) if count else t("frame.more")
    with st.expander(label, expanded=count > 0, key=_fold(count), icon=":material/tune:"):
        for at in range(0, len(MORE), 2):
            pair = st.columns(2, vertical_alignment="bottom")
            for column, field in zip(pair, MORE[at : at + 2], strict=False):
                with column:
                    _number(field, settings, t)
        st.text_area(
            t("frame.banned"),
            value=show_text("w_banned", "\n".join(settings.banned)),
            key="w_banned",
            placeholder=t("frame.banned_placeholder"),
            help=t("frame.banned_help"),
            on_change=tell("w_banned", "banned", banned_of),
            height=90,
        )
        _pattern(settings, t)
        st.button(
            t("frame.more_reset"), on_click=more_off, key="more_reset", disabled=not count,
            width="stretch",
        )  # fmt: skip


def banned_of(text: str | None) -> tuple[str, ...]:
    """The texts typed, one a line. Raises Fault where a link could not carry them."""
    found = tuple(line.strip() for line in (text or "").splitlines() if line.strip())
    words, characters = link.BANNED_CAP
    if len(found) > words or any(len(line) > characters for line in found):
        raise Fault("banned_too_long", words=words, characters=characters)
    return found


def pattern_of(text: str | None) -> str:
    """The pattern typed. Raises Fault where a link could not carry it, or nobody can read it."""
    found = text or ""
    if len(found) > link.PATTERN_CAP:
        raise Fault("pattern_too_long", characters=link.PATTERN_CAP)
    state.check_rules(Settings(pattern=found))
    return found


def _pattern(settings: Settings, t: Catalog) -> None:
    st.text_input(
        t("frame.pattern"),
        value=show_text("w_pattern", settings.pattern),
        key="w_pattern",
        placeholder=t("frame.off"),
        help=t("frame.pattern_help"),
        on_change=tell("w_pattern", "pattern", pattern_of),
    )
    with st.container(horizontal=True, gap="small"):
        for i, example in enumerate(PATTERNS):
            st.button(
                f"`{example.replace(' ', '␣')}`",
                key=f"pattern_{i}",
                help=t(f"frame.pattern_example_{i + 1}"),
                on_click=_take,
                args=(example,),
                type="tertiary",
            )


def _take(pattern: str) -> None:
    st.session_state[TOLD] = True
    forget_drafts()
    state.ask(pattern=pattern)
