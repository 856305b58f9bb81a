"""What speculative decoding found: the rounds, the rates, the honest time."""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.lab.speculative_records import Speculation
from core.lab.training_stored import Words
from ui.figures import speculative as figures
from ui.figures.words import in_bytes, percent, two_digits, whole_percent
from ui.i18n import Catalog
from ui.lab_parts import PLAIN, table
from ui.marks import mark
from ui.training_show import quoted

SHOWN: Final = 16
"""Rounds that are drawn; all of them are in the table."""
CLOSE: Final = 0.05
"""Speeds that differ by less, as a share, count as equal."""


def show_speculation(t: Catalog, found: Speculation, words: Words) -> None:
    """Rounds first, then rates and times."""
    _headline(t, found)
    st.markdown(f"### {t('training.rounds_title')}")
    st.markdown(figures.legend(t))
    lines = [
        figures.round_line(number, each, words, t)
        for number, each in enumerate(found.rounds[:SHOWN], 1)
    ]
    st.markdown("  \n".join(lines))
    if len(found.rounds) > SHOWN:
        st.caption(t("training.rounds_more", n=len(found.rounds) - SHOWN))
    table(t, figures.rounds_table(found, words, t), "training_rounds")
    _texts(t, found, words)
    left, right = st.columns(2, gap="medium")
    with left:
        _times(t, found)
    with right:
        _rates(t, found)


def _headline(t: Catalog, found: Speculation) -> None:
    one, two, three, four = st.columns(4)
    if found.acceptance is not None:
        one.metric(
            t("training.metric_accepted"),
            whole_percent(found.acceptance),
            help=t("training.metric_accepted_help", kept=found.accepted, judged=found.judged),
        )
    if found.tokens_per_pass is not None:
        two.metric(
            t("training.metric_pass"),
            f"{found.tokens_per_pass:.2f}",
            help=t("training.metric_pass_help"),
        )
    if found.expected is not None:
        three.metric(
            t("training.metric_expected"),
            f"{found.expected:.2f}",
            help=t("training.metric_expected_help"),
        )
    if found.speed is not None:
        times = f"{found.speed:.2f}"
        way = "faster" if found.speed >= 1 else "slower"
        four.metric(
            t("training.metric_speed"),
            f"× {times}",
            t(f"training.metric_{way}", times=times),
            # No rise and no fall since before: the words alone.
            delta_color="off",
            delta_arrow="off",
            help=t("training.metric_speed_help"),
        )


def _texts(t: Catalog, found: Speculation, words: Words) -> None:
    with_draft, alone = (quoted(words.text(ids)) for ids in (found.ids, found.plain_ids))
    if found.same_text:
        st.markdown(t("training.same_text", text=with_draft))
        return
    lines = [t("training.text_drafted", text=with_draft), t("training.text_alone", text=alone)]
    st.markdown("  \n".join(lines))
    st.caption(t("training.near_tie" if found.greedy else "training.same_law"))


def _times(t: Catalog, found: Speculation) -> None:
    st.markdown(f"### {t('training.speed_title')}")
    speed = found.speed
    if speed is not None and found.ms_a_token and found.plain_ms_a_token:
        far = abs(speed - 1) > CLOSE
        verdict = ("speed_faster" if speed > 1 else "speed_slower") if far else "speed_equal"
        times = {
            "drafted": two_digits(found.ms_a_token),
            "alone": two_digits(found.plain_ms_a_token),
            "times": f"{speed:.2f}",
        }
        st.markdown(t(f"training.{verdict}", **times))
    figure = figures.time_chart(found, t)
    st.plotly_chart(figure, key="training_speed_chart", config=PLAIN, alt=t("training.speed_alt"))
    table(t, figures.time_table(found, t), "training_speed")
    plain_ms, draft_ms, check_ms = found.plain_ms, found.draft_ms, found.check_ms
    if plain_ms and draft_ms and check_ms and found.expected_speed is not None:
        st.caption(
            t(
                "training.speed_why",
                draft=f"{draft_ms.median / plain_ms.median:.2f}",
                check=f"{check_ms.median / plain_ms.median:.2f}",
                positions=found.gamma + 1,
                gamma=found.gamma,
                expected=f"{found.expected or 0:.2f}",
                speed=f"{found.expected_speed:.2f}",
            )
        )


def _rates(t: Catalog, found: Speculation) -> None:
    st.markdown(f"### {t('training.rates_title')}")
    mark(t, "computed", t("training.rates_how"))
    figure = figures.expected_chart(found, t)
    st.plotly_chart(figure, key="training_rates_chart", config=PLAIN, alt=t("training.rates_alt"))
    table(t, figures.expected_table(found, t), "training_rates")
    if found.mean_overlap is not None:
        st.caption(
            t(
                "training.rates_overlap",
                overlap=percent(found.mean_overlap),
                model=in_bytes(found.model_bytes),
                draft=in_bytes(found.draft_bytes),
            )
        )
