"""Many draws of the step in view against its exact distribution: the section below the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import streamlit as st

from core.decode.draws import Draws, chi_square, draws
from core.settings import Settings
from core.trace import Choice, StepTrace
from ui import state
from ui.context import Context
from ui.figures.chance import draws_alt, draws_chart, draws_table, p_text, verdict
from ui.figures.dice import dice_data, rolls_text
from ui.i18n import Catalog
from ui.view import DRAWS, ROUNDS_CAP
from ui.widgets import NO_VALUE, picked

USUAL: Final = 1000


@dataclass(frozen=True)
class Throw:
    """What is thrown: a full choice, and whose dice."""

    choice: Choice
    settings: Settings
    step: int
    label: Callable[[int], str]


def of_step(context: Context, step: StepTrace) -> Throw:
    """The dice of a step of the run."""
    return Throw(step.choice, context.spec.settings, step.index, context.vocabulary.label)


def chance(throw: Throw, t: Catalog) -> None:
    """Draw the section: the button, and once it was pressed the draws and their test."""
    st.markdown(f"## {t('generate.draws')}", help=t("generate.draws_help"))
    if throw.settings.is_greedy:
        top = throw.label(int(throw.choice.stages[-1].logits.argmax()))
        st.text(t("generate.draws_greedy", token=top))
        return
    st.caption(t("generate.draws_text"))
    _buttons(t)
    count, before = state.place().view.draws
    if count:
        first = 1 + count * before
        seed = throw.settings.seed
        _drawn(draws(throw.choice, seed=seed, step=throw.step, count=count, first=first), throw, t)


def dice(throw: Throw, t: Catalog) -> None:
    """A button that throws the dice of the run's step again, where no other part has one."""
    found = dice_data(throw.choice, throw.settings, throw.step)
    if found["u"] is None:
        return
    forced = throw.choice.rule == "forced"

    def again() -> None:
        state.put(state.place().reroll(throw.step))

    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            t("generate.reroll_forced" if forced else "generate.reroll"),
            help=t("generate.reroll_help_plain"),
            on_click=again,
            icon=":material/casino:",
            key="reroll",
        )
        st.caption(rolls_text(found, t))


def _buttons(t: Catalog) -> None:
    count, before = state.place().view.draws
    st.session_state["draws_count"] = count or st.session_state.get("draws_count") or USUAL

    def counted() -> None:
        if count:
            state.look(draws=(picked("draws_count", DRAWS, USUAL), 0))

    def thrown() -> None:
        wanted = picked("draws_count", DRAWS, USUAL)
        state.look(draws=(wanted, (before + 1) % ROUNDS_CAP if count else 0))

    with st.container(horizontal=True, vertical_alignment="center"):
        st.segmented_control(
            t("generate.draws_count"),
            DRAWS,
            key="draws_count",
            format_func=lambda n: f"{n:,}" if isinstance(n, int) else str(n),
            required=True,
            on_change=counted,
            label_visibility="collapsed",
        )
        name = "generate.draws_again" if count else "generate.draws_throw"
        icon = ":material/casino:"
        st.button(t(name), on_click=thrown, icon=icon, type="primary", key="draws_throw")
        if count:
            st.button(
                t("generate.draws_clear"),
                on_click=lambda: state.look(draws=(0, 0)),
                key="draws_clear",
            )


def _drawn(made: Draws, throw: Throw, t: Catalog) -> None:
    test = chi_square(made.counts, made.probabilities)
    st.plotly_chart(
        draws_chart(made, throw.label, t),
        key="draws_chart",
        config={"displayModeBar": False},
        alt=draws_alt(made, throw.label, t),
    )
    if test.p is not None:
        with st.container(horizontal=True, gap="medium"):
            st.metric("χ²", f"{test.statistic:,.2f}", help=t("generate.chi_help"), width="content")
            freedom = t("generate.chi_freedom")
            st.metric(
                freedom, f"{test.freedom:,}", help=t("generate.chi_freedom_help"), width="content"
            )
            st.metric(
                t("generate.chi_p"), p_text(test.p), help=t("generate.chi_p_help"), width="content"
            )
    st.caption(verdict(made, test, t))
    with st.expander(t("generate.draws_table"), icon=":material/table:"):
        digits = st.column_config.NumberColumn(format="%.6f")
        columns = {t("generate.col_filtered"): digits, t("generate.col_share"): digits}
        st.dataframe(
            draws_table(made, throw.label, t),
            hide_index=True,
            placeholder=NO_VALUE,
            column_config=columns,
        )
