"""Plans as charts, tables and sentences. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import pandas as pd
import plotly.graph_objects as go

from core.lab.plan import Load, Plan, Precision
from core.lab.plan_advice import HERE, MOST_BATCH, Advice, Beside
from core.lab.plan_table import Planned
from core.lab.shape_presets import presets
from core.models.catalog import title_of
from ui.figures.charts import BLUE, pattern_of
from ui.figures.sources import dated
from ui.figures.words import in_bytes, in_time, needed, unbroken
from ui.i18n import Catalog

PARTS: Final = ("weights", "kv", "activations")
COLOURS: Final = dict(zip(PARTS, ("#0072B2", "#E69F00", "#009E73"), strict=True))
PATTERNS: Final = dict(zip(PARTS, ("", "/", "x"), strict=True))


def device_words(name: str, t: Catalog, *, recorded: bool = False) -> str:
    """How a device is called; the machine at hand in the reader's language, or the one on which
    the numbers were ``recorded``."""
    if name != HERE:
        return name
    return t("limits.there" if recorded else "limits.here")


def milliseconds(seconds: float) -> str:
    """A time as people say it: 0.77 ms, 41.6 ms, 13.5 s."""
    return in_time(seconds * 1000)


def share(value: float) -> str:
    """A share as people say it: 99.7 %, 0 %."""
    return f"{100 * value:.1f} %" if 0.9 < value < 1 else f"{100 * value:.0f} %"


# ---------------------------------------------------------------- sentences


def verdict(found: Planned, advice: Advice, t: Catalog) -> str:
    """Whether it fits, and what would."""
    made, load = found.plan, found.load
    assert made is not None
    memory = found.device.memory * 1e9
    values = {
        "needed": needed(made.memory, memory),
        "memory": in_bytes(memory),
        "weights": needed(made.weights, memory),
    }
    said = []
    if made.fits:
        said.append(t("limits.fits", **values))
        if advice.batch > load.batch:
            key = "room" if advice.batch < MOST_BATCH else "room_plenty"
            said.append(t(f"limits.{key}", batch=f"{advice.batch:,}"))
    else:
        key = "weights_too_large" if made.weights > memory else "too_large"
        said.append(t(f"limits.{key}", **values))
        said += _remedies(found, advice, t)
    return t("generate.sentence_join").join(said)


def _remedies(found: Planned, advice: Advice, t: Catalog) -> list[str]:
    load = found.load
    out = []
    if advice.precision and advice.precision != load.precision:
        out.append(t("limits.fits_with", precision=advice.precision))
    if advice.ranks and advice.ranks > load.tensor_parallel:
        out.append(t("limits.fits_on", ranks=advice.ranks))
    if 0 < advice.batch < load.batch:
        out.append(t("limits.fits_batch", batch=f"{advice.batch:,}"))
    return out or [t("limits.fits_nowhere")]


def bottleneck(made: Plan, load: Load, t: Catalog) -> str:
    """What a step waits for."""
    key = {
        "bandwidth": "waits_memory",
        "compute": "waits_compute",
        "communication": "waits_others",
    }[made.bound]
    return t(
        f"limits.{key}",
        batch=f"{load.batch:,}",
        share=share(made.waiting_share),
        busy=share(1 - made.waiting_share),
        communication=share(made.communication / made.per_token),
    )


# ---------------------------------------------------------------- charts and tables


def memory_chart(
    found: Sequence[Planned], chosen: Precision, memory: float, t: Catalog
) -> go.Figure:
    """Memory by part for each precision, and what one device has; the chosen one is marked."""
    figure = go.Figure()
    rows = [each for each in found if each.plan is not None]
    y = list(range(len(rows)))
    for part in PARTS:
        label = t(f"limits.part_{part}")
        figure.add_bar(
            y=y,
            x=[getattr(each.plan, part) / 1e9 for each in rows],
            orientation="h",
            name=label,
            marker={
                "color": COLOURS[part],
                "pattern": pattern_of(PATTERNS[part]),
            },
            hovertemplate=f"{label}: %{{x:,.3~g}} GB<extra></extra>",
        )
    figure.add_vline(x=memory, line={"color": "#D55E00", "width": 3})
    most = max([memory, *(each.plan.memory / 1e9 for each in rows if each.plan)])
    figure.add_annotation(
        x=memory, y=1.0, yref="paper", yanchor="bottom", showarrow=False,
        text=t("limits.device_has", memory=in_bytes(memory * 1e9)),
        xanchor="right" if memory > most * 0.6 else "left", font={"color": "#D55E00", "size": 13},
    )  # fmt: skip
    ticks = [_tick(each, chosen, t) for each in rows]
    figure.update_yaxes(tickvals=y, ticktext=ticks, autorange="reversed", fixedrange=True)
    figure.update_xaxes(
        title=t("limits.axis_gb"), range=[0, most * 1.04], tickformat=",~g", fixedrange=True
    )
    figure.update_layout(
        barmode="stack",
        bargap=0.35,
        height=90 + 48 * len(rows) + 60,
        margin={"l": 10, "r": 10, "t": 34, "b": 10},
        legend={"orientation": "h", "y": -0.28, "yanchor": "top", "x": 0, "traceorder": "normal"},
        dragmode=False,
    )
    return figure


def _tick(found: Planned, chosen: Precision, t: Catalog) -> str:
    precision = found.load.precision
    sign = "✓" if found.plan and found.plan.fits else "✗"
    name = f"<b>{precision}</b>" if precision == chosen else precision
    return f"{sign} {name} "


def batch_chart(found: Sequence[Planned], at: int, t: Catalog) -> go.Figure:
    """Tokens a second and time a token by batch size, in theory; hollow where it does not fit."""
    figure = go.Figure()
    known = [(each.load.batch, each.plan) for each in found if each.plan is not None]
    x = [batch for batch, _ in known]
    speed = [plan.tokens_per_second for _, plan in known]
    times = [plan.per_token * 1000 for _, plan in known]
    for axis, name, values, colour, symbol, dash in (
        ("y", "tokens_a_second", speed, BLUE, "circle", "solid"),
        ("y2", "ms_a_token", times, "#E06A1B", "square", "dot"),
    ):
        fits = [symbol if p.fits else f"{symbol}-open" for _, p in known]
        figure.add_scatter(
            x=x,
            y=values,
            yaxis=axis,
            name=t(f"limits.{name}"),
            mode="lines+markers",
            line={"color": colour, "dash": dash, "width": 2.5},
            marker={"symbol": fits, "size": [14 if b == at else 9 for b in x], "color": colour},
            hovertemplate="%{x}: %{y:,.3~s}<extra>" + t(f"limits.{name}") + "</extra>",
        )
    # Both axes span as many powers of ten, so that equal slopes mean equal factors.
    factors = [max(values) / min(values) for values in (speed, times) if values]
    span = max([1.0, *map(math.log10, factors)])
    logs = {
        "type": "log",
        "fixedrange": True,
        "tickformat": ",~g",
        "dtick": "D2" if span < 3 else 1,
    }
    figure.update_xaxes(
        title=t("lab.log_axis", axis=t("limits.axis_batch")),
        tickvals=x,
        type="log",
        tickformat=",d",
        fixedrange=True,
    )
    figure.update_layout(
        yaxis={
            "title": t("lab.log_axis", axis=t("limits.tokens_a_second")),
            "range": _decades(speed, span),
            **logs,
        },
        yaxis2={
            "title": t("lab.log_axis", axis=t("limits.ms_a_token")),
            "range": _decades(times, span),
            "overlaying": "y",
            "side": "right",
            "showgrid": False,
            **logs,
        },
        height=330,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
    )  # fmt: skip
    return figure


def _decades(values: Sequence[float], span: float) -> list[float]:
    """The range of a logarithmic axis: ``span`` powers of ten from the least value on."""
    low = math.log10(min(values, default=1.0))
    return [low - 0.1 * span, low + 1.1 * span]


def devices_table(found: Sequence[Planned], t: Catalog) -> pd.DataFrame:
    """One row a device: what it needs there, whether it fits, how fast at best."""
    rows = []
    for each in found:
        made = each.plan
        rows.append(
            {
                t("limits.col_device"): device_words(each.device.name, t),
                t("limits.col_fits"): _fits(each, t),
                t("limits.col_needs_gb"): made.memory / 1e9 if made else None,
                t("limits.col_has_gb"): each.device.memory,
                t("limits.col_first_ms"): made.first_token * 1e3 if made else None,
                t("limits.col_token_ms"): made.per_token * 1e3 if made else None,
                t("limits.col_tokens_s"): made.tokens_per_second if made else None,
                t("limits.col_bound"): t(f"limits.bound_{made.bound}") if made else "",
                t("limits.col_source"): _source(
                    each.device.name, each.device.source, each.device.date, t
                ),
            }
        )
    return pd.DataFrame(rows)


def _source(device: str, source: str, date: str, t: Catalog) -> str:
    """Who says so, and when: the machine itself, or a page."""
    if device == HERE:
        return t("limits.source_here", processor=source, date=unbroken(date))
    return dated(source, date, t)


def _fits(found: Planned, t: Catalog) -> str:
    if found.fault is not None:
        return t("limits.cannot_be_dealt")
    return t("limits.yes" if found.plan and found.plan.fits else "limits.no")


def beside_table(found: Sequence[Beside], t: Catalog, *, recorded: bool = False) -> pd.DataFrame:
    """One row a measurement: what it was, its bound, and the ratio; ``recorded`` as above."""
    return pd.DataFrame(
        [
            {
                t("limits.col_model"): _model(each),
                t("limits.col_theory_ratio"): each.ratio,
                t("limits.col_what"): _what(each, t),
                t("limits.col_device"): _where(each, t, recorded),
                t("limits.col_measured_ms"): each.milliseconds,
                t("limits.col_theory_ms"): each.theory,
                t("limits.col_source"): _source(each.device, each.source, each.date, t),
            }
            for each in found
        ]
    )


def _model(each: Beside) -> str:
    """Its name on all pages, not the one in links and files."""
    known = presets().get(each.model)
    return known.title if known else title_of(each.model)


def _where(each: Beside, t: Catalog, recorded: bool) -> str:
    ranks = each.load.tensor_parallel
    name = device_words(each.device, t, recorded=recorded)
    return f"{ranks} × {name}" if ranks > 1 else name


def _what(each: Beside, t: Catalog) -> str:
    load = each.load
    return t(
        f"limits.what_{each.what}",
        batch=load.batch,
        prompt=load.prompt,
        new=load.new,
        precision=load.precision,
    )
