"""Speculative decoding as words, charts and tables. Pure: records in, a figure out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go

from core.lab.speculative import expected_tokens
from core.lab.speculative_records import Drafted, Round, Speculation
from core.lab.training_stored import Words
from ui.figures.charts import BLUE, INK, ORANGE, dressed, pattern_of
from ui.figures.training import GREEN, GREY, PINK
from ui.figures.words import two_digits
from ui.i18n import Catalog, plain

SIGNS: Final = {True: "✓", False: "✗", None: "·"}
COLOURS: Final = {True: "blue", False: "orange", None: "gray"}
MOST_GAMMA: Final = 8
PIECES: Final = (
    ("draft", PINK, "."),
    ("check", BLUE, "\\"),
    ("plain", GREEN, "x"),
    ("choose", GREY, ""),
)


def round_line(number: int, found: Round, words: Words, t: Catalog) -> str:
    """One round as Markdown: each token with its sign, rejected ones struck through."""
    return " ".join((f"**{number}.**", *_badges(found, words)))


def _badges(found: Round, words: Words) -> Iterator[str]:
    for token in found.drafted:
        label = _shown(words.label(token.id))
        if token.kept is False:
            label = f"~~{label}~~"
        yield f":{COLOURS[token.kept]}-badge[{SIGNS[token.kept]} {label}]"
    if found.extra is not None:
        sign, colour = ("→", "green") if found.ending == "replaced" else ("+", "violet")
        # A plus at the beginning would make a list of it.
        yield f":{colour}-badge[{plain(sign)} {_shown(words.label(found.extra))}]"


def _shown(label: str) -> str:
    return plain(label if len(label) <= 24 else label[:23] + "…")


def legend(t: Catalog) -> str:
    """What the signs mean, drawn like them."""
    signs = (("blue", "✓", "kept"), ("orange", "✗", "rejected"), ("green", "→", "replaced"))
    more = (("violet", "\\+", "bonus"), ("gray", "·", "unjudged"))
    return " ".join(
        f":{colour}-badge[{sign}] {t(f'training.sign_{name}')}"
        for colour, sign, name in (*signs, *more)
    )


def time_parts(found: Speculation) -> dict[str, dict[str, float]]:
    """Milliseconds a token by what they went into, with the draft and without."""
    new, plain_new = max(1, len(found.ids)), max(1, len(found.plain))
    return {
        "drafted": {
            "draft": sum(sum(r.draft_ms) for r in found.rounds) / new,
            "check": sum(r.check_ms for r in found.rounds) / new,
            "plain": 0.0,
            "choose": sum(r.choose_ms for r in found.rounds) / new,
        },
        "alone": {
            "draft": 0.0,
            "check": 0.0,
            "plain": sum(s.pass_ms for s in found.plain) / plain_new,
            "choose": sum(s.choose_ms for s in found.plain) / plain_new,
        },
    }


def time_chart(found: Speculation, t: Catalog) -> go.Figure:
    """Milliseconds a token, with the draft and without, by what they went into."""
    parts = time_parts(found)
    most = max(sum(each.values()) for each in parts.values()) or 1.0
    figure = go.Figure()
    for name, colour, pattern in PIECES:
        values = [parts["alone"][name], parts["drafted"][name]]
        figure.add_bar(
            x=values,
            y=[0, 1],
            orientation="h",
            name=t(f"training.piece_{name}"),
            text=[two_digits(v) if v > 0.06 * most else "" for v in values],
            textposition="inside",
            insidetextanchor="middle",
            insidetextfont={"color": INK},
            marker={"color": colour, "pattern": pattern_of(pattern)},
            hovertemplate=f"{t(f'training.piece_{name}')}: %{{x:,.1f}} ms<extra></extra>",
        )
    figure.update_layout(barmode="stack")
    figure.update_xaxes(title=t("training.axis_ms_token"), tickformat=",~g", fixedrange=True)
    figure.update_yaxes(
        tickmode="array",
        tickvals=[0, 1],
        ticktext=[t("training.alone"), t("training.drafted")],
        fixedrange=True,
    )
    return dressed(figure, 240, bargap=0.3, legend_traceorder="normal")


def expected_chart(found: Speculation, t: Catalog) -> go.Figure:
    """Tokens a pass by the formula, for each length of a draft, and what was measured."""
    figure = go.Figure()
    alpha = found.acceptance
    gammas = list(range(1, max(MOST_GAMMA, found.gamma) + 1))
    if alpha is not None:
        figure.add_scatter(
            x=gammas,
            y=[expected_tokens(alpha, gamma) for gamma in gammas],
            mode="lines+markers",
            name=t("training.by_formula"),
            line={"color": GREY, "dash": "dot", "width": 2},
            marker={"symbol": "circle-open", "size": 8},
            hovertemplate="γ = %{x}: %{y:.2f}<extra></extra>",
        )
    if found.tokens_per_pass is not None:
        figure.add_scatter(
            x=[found.gamma],
            y=[found.tokens_per_pass],
            mode="markers",
            name=t("training.by_measure"),
            marker={"symbol": "diamond", "size": 14, "color": ORANGE},
            hovertemplate="γ = %{x}: %{y:.2f}<extra></extra>",
        )
    figure.update_xaxes(title=t("training.axis_gamma"), dtick=1, fixedrange=True)
    figure.update_yaxes(
        title=t("training.axis_tokens_pass"), rangemode="tozero", fixedrange=True, tickformat="~g"
    )
    return dressed(figure, 280, bargap=0.3, legend_traceorder="normal")


# ---------------------------------------------------------------- tables


def rounds_table(found: Speculation, words: Words, t: Catalog) -> pd.DataFrame:
    """A row for each token that was drafted or added."""
    rows: list[dict[str, Any]] = []
    for number, each in enumerate(found.rounds, 1):
        for token in each.drafted:
            rows.append(_drafted(number, token, words, t))
        if each.extra is not None:
            sign = "replaced" if each.ending == "replaced" else "bonus"
            rows.append(
                {
                    t("training.col_round"): number,
                    t("training.col_token"): words.label(each.extra),
                    t("training.col_verdict"): t(f"training.sign_{sign}"),
                    t("training.col_q"): None,
                    t("training.col_p"): each.extra_p,
                    t("training.col_chance"): None,
                    t("training.col_u"): None,
                    t("training.col_overlap"): None,
                }
            )
    return pd.DataFrame(rows)


def _drafted(number: int, token: Drafted, words: Words, t: Catalog) -> dict[str, Any]:
    verdict = {True: "kept", False: "rejected", None: "unjudged"}[token.kept]
    chance = None if token.p is None else min(1.0, token.p / token.q)
    return {
        t("training.col_round"): number,
        t("training.col_token"): words.label(token.id),
        t("training.col_verdict"): t(f"training.sign_{verdict}"),
        t("training.col_q"): token.q,
        t("training.col_p"): token.p,
        t("training.col_chance"): chance,
        t("training.col_u"): token.u,
        t("training.col_overlap"): token.overlap,
    }


def time_table(found: Speculation, t: Catalog) -> pd.DataFrame:
    """The passes with their spread, and what a token takes in all."""
    rows: list[dict[str, Any]] = []
    for name in ("plain", "draft", "check", "round"):
        spread = getattr(found, f"{name}_ms")
        if spread is not None:
            rows.append(
                {
                    t("training.col_part"): t(f"training.pass_{name}", n=found.gamma + 1),
                    t("training.col_ms"): spread.median,
                    t("training.col_low"): spread.low,
                    t("training.col_high"): spread.high,
                    t("training.col_repeats"): spread.repeats,
                }
            )
    for name, value in (("drafted", found.ms_a_token), ("alone", found.plain_ms_a_token)):
        if value is not None:
            rows.append(
                {
                    t("training.col_part"): t(f"training.{name}_token"),
                    t("training.col_ms"): value,
                    t("training.col_low"): None,
                    t("training.col_high"): None,
                    t("training.col_repeats"): None,
                }
            )
    return pd.DataFrame(rows)


def expected_table(found: Speculation, t: Catalog) -> pd.DataFrame:
    alpha = found.acceptance
    rows = []
    for gamma in range(1, max(MOST_GAMMA, found.gamma) + 1):
        rows.append(
            {
                t("training.axis_gamma"): gamma,
                t("training.by_formula"): None if alpha is None else expected_tokens(alpha, gamma),
                t("training.by_measure"): found.tokens_per_pass if gamma == found.gamma else None,
            }
        )
    return pd.DataFrame(rows)
