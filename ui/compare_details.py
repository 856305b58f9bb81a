"""Below the columns of the Compare page: figures, charts, files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final, get_args

import streamlit as st

from core.compare_records import Figures, Question
from core.decode.columns import spell
from ui import compare_run as run
from ui.compare_setup import Setup
from ui.components.columns import figures_table
from ui.figures.compare_charts import Across, Kind, Point, missing, per_step, points, quality
from ui.figures.compare_figures import figures_data, record, steps_table, table
from ui.figures.compare_rows import Scene
from ui.figures.compare_words import LETTERS
from ui.figures.stages import csv_of
from ui.i18n import Catalog
from ui.widgets import NO_VALUE

PLAIN: Final = {"displayModeBar": False}
ACROSS: Final = "compare_across"


def details(found: Setup, shown: Scene, t: Catalog) -> None:
    """Draw all of it, for what is written."""
    numbers = run.all_figures(found, shown)
    if not any(numbers):
        return
    st.markdown(f"## {t('compare.figures')}")
    st.caption(t("compare.figures_note" if shown.samples == 1 else "compare.figures_note_samples"))
    figures_table(figures_data(shown, numbers, t), key="compare_figures")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _steps(shown, t)
    with right:
        _quality(shown, numbers, t)
    _files(found, shown, numbers, t)


def _steps(shown: Scene, t: Catalog) -> None:
    st.markdown(f"## {t('compare.chart')}")
    kinds = get_args(Kind)
    kind = st.segmented_control(
        t("compare.chart"),
        kinds,
        default=kinds[0],
        key="compare_kind",
        format_func=lambda id: t(f"compare.chart_{id}") if id in kinds else str(id),
        required=True,
        label_visibility="collapsed",
    )
    chosen: Kind = "entropy" if kind == "entropy" else "probability"
    st.caption(t(f"compare.chart_{chosen}_text"))
    figure = per_step(shown, chosen, t)
    alt = t(f"compare.chart_{chosen}_alt", n=len(shown.written))
    st.plotly_chart(figure, key=f"compare_steps_{chosen}", config=PLAIN, alt=alt)
    with st.expander(t("compare.chart_table"), icon=":material/table:"):
        st.dataframe(steps_table(shown, t), hide_index=True, placeholder=NO_VALUE)


def _quality(shown: Scene, numbers: Sequence[Figures | None], t: Catalog) -> None:
    st.markdown(f"## {t('compare.quality')}")
    several = any(figures is not None and figures.self_bleu is not None for figures in numbers)
    across: Across = "repeated"
    if several:
        ids = get_args(Across)
        picked = st.segmented_control(
            t("compare.quality"),
            ids,
            default=ids[0],
            key=ACROSS,
            format_func=lambda id: t(f"compare.across_{id}") if id in ids else str(id),
            required=True,
            label_visibility="collapsed",
        )
        across = "self_bleu" if picked == "self_bleu" else "repeated"
    st.caption(t(f"compare.quality_{across}_text"))
    drawn = points(shown, numbers, across)
    if not drawn:
        st.caption(t("compare.quality_short"))
        return
    figure = quality(shown, drawn, across, t)
    st.plotly_chart(
        figure, key=f"compare_quality_{across}", config=PLAIN, alt=_said(drawn, across, t)
    )
    if across == "repeated" and (short := missing(numbers, drawn)):
        names = t("compare.comma").join(LETTERS[index] for index in short)
        st.caption(t("compare.quality_missing", names=names))
    with st.expander(t("compare.chart_table"), icon=":material/table:"):
        st.dataframe(_points_table(shown, drawn, across, t), hide_index=True, placeholder=NO_VALUE)


def _said(drawn: Sequence[Point], across: Across, t: Catalog) -> str:
    whole = [
        f"{LETTERS[p.column]}: {p.perplexity:.1f}, {100 * p.across:.1f} %"
        for p in drawn
        if p.sample is None
    ]
    return t(f"compare.quality_{across}_alt", points="; ".join(whole))


def _points_table(
    shown: Scene, drawn: Sequence[Point], across: Across, t: Catalog
) -> list[dict[str, Any]]:
    return [
        {
            t("compare.column"): shown.title(p.column),
            t("compare.sample"): t("compare.all_texts") if p.sample is None else str(p.sample + 1),
            t("compare.fig_perplexity"): round(p.perplexity, 3),
            t(f"compare.axis_{across}"): f"{100 * p.across:.1f} %",
        }
        for p in drawn
    ]


# ---------------------------------------------------------------- files


def _files(found: Setup, shown: Scene, numbers: Sequence[Figures | None], t: Catalog) -> None:
    def made() -> dict[str, Any]:
        return record(shown, numbers, _asked(found.question), t)

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _download("json", "application/json", lambda: _json(made()), t)
        _download("csv", "text/csv", lambda: csv_of(table(made())), t)
        st.caption(t("compare.files_note"))


def _download(kind: str, mime: str, make: Callable[[], str | bytes], t: Catalog) -> None:
    st.download_button(
        t(f"compare.download_{kind}"),
        make,
        f"compare.{kind}",
        mime,
        key=f"compare_{kind}",
        icon=":material/download:",
        on_click="ignore",
    )


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _asked(question: Question | None) -> dict[str, Any]:
    """The question, with each strategy as the command line spells it."""
    if question is None:
        return {}
    asked = asdict(question)
    return {**asked, "columns": None, "strategies": [spell(c) for c in question.columns]}
