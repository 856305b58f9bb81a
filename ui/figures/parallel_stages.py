"""Pictures of a pipeline, of offloading and of copies. Pure."""

from __future__ import annotations

from typing import Final

import plotly.graph_objects as go

from core.lab.parallel.records import OffloadRun, PipelineRun, ReplicaRun, Timeline
from core.lab.parallel.stages import StagePlan
from ui.figures.charts import INK, percents, plain
from ui.figures.parallel import COLOURS, GREY, PATTERNS, dress
from ui.figures.words import percent, whole_percent
from ui.i18n import Catalog

SYMBOLS: Final = ("circle", "square", "diamond", "triangle-up")
DASHES: Final = ("solid", "dash")
FAINT: Final = "rgba(128,128,128,0.14)"


def cost_chart(plan: StagePlan, layer: int, head: int, t: Catalog) -> go.Figure:
    """What a token costs each stage: its layers, and the LM head at the end."""
    y = list(range(plan.stages))
    layers = [(b - a) * layer / 1e6 for a, b in plan.layers]
    heads = [0.0] * (plan.stages - 1) + [head / 1e6]
    figure = go.Figure()
    for values, key, colour, pattern, text in (
        (layers, "layers", COLOURS[0], "", [_span(a, b, t) for a, b in plan.layers]),
        (heads, "head", COLOURS[1], "/", ["" for _ in y[:-1]] + [t("parallel.lm_head")]),
    ):
        figure.add_bar(
            orientation="h",
            y=y,
            x=values,
            name=t(f"parallel.cost_{key}"),
            text=text,
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            textfont={"color": INK},
            marker={"color": colour, "pattern": {"shape": pattern, "fillmode": "overlay",
                    "fgopacity": 0.25, "fgcolor": "#ffffff"}},
            hovertemplate="%{x:,.1f} M<extra>" + t(f"parallel.cost_{key}") + "</extra>",
        )  # fmt: skip
    figure.update_yaxes(
        tickvals=y,
        ticktext=[t("parallel.stage", n=n) for n in y],
        autorange="reversed",
        fixedrange=True,
    )
    figure.update_xaxes(title=t("parallel.axis_cost"), fixedrange=True)
    figure.update_layout(barmode="stack", bargap=0.3)
    return dress(figure, 130 + 46 * plan.stages)


def _span(first: int, end: int, t: Catalog) -> str:
    one = end == first + 1
    return str(end) if one else t("parallel.layers_span", first=first + 1, last=end)


def lighter(colour: str) -> str:
    """Halfway from #RRGGBB to white: for a neighbouring bar, on which INK can be read, too."""
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{(255 + part) // 2:02X}" for part in parts)


def gantt(found: Timeline, stages: int, t: Catalog) -> go.Figure:
    """When each stage worked on each micro-batch; what is left empty is the bubble."""
    whole = max(bar.end for bar in found.bars)
    figure = go.Figure()
    figure.add_bar(
        orientation="h",
        y=list(range(stages)),
        x=[whole] * stages,
        width=0.72,
        name=t("parallel.idle"),
        marker={"color": FAINT, "line": {"color": GREY, "width": 1}},
        hoverinfo="skip",
    )
    for stage in range(stages):
        own = [bar for bar in found.bars if bar.stage == stage]
        figure.add_bar(
            orientation="h",
            y=[stage] * len(own),
            base=[bar.start for bar in own],
            x=[bar.end - bar.start for bar in own],
            width=0.72,
            name=t("parallel.stage", n=stage),
            text=[str(bar.micro_batch + 1) for bar in own],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            textfont={"color": INK, "size": 15},
            marker={
                "color": [
                    COLOURS[stage] if bar.micro_batch % 2 == 0 else lighter(COLOURS[stage])
                    for bar in own
                ],
                "line": {"color": "#ffffff", "width": 1.5},
            },
            customdata=[[bar.micro_batch + 1, bar.start, bar.end] for bar in own],
            hovertemplate=t("parallel.piece", n="%{customdata[0]}")
            + "<br>%{customdata[1]:.0f} – %{customdata[2]:.0f} ms<extra></extra>",
        )
    figure.update_yaxes(
        tickvals=list(range(stages)),
        ticktext=[t("parallel.stage", n=n) for n in range(stages)],
        range=[stages - 0.5, -0.5],
        fixedrange=True,
    )
    figure.update_xaxes(title=t("parallel.axis_ms"), range=[0, whole * 1.01], fixedrange=True)
    figure.update_layout(barmode="overlay")
    return dress(figure, 120 + 60 * stages)


def bubble_chart(run: PipelineRun, t: Catalog) -> go.Figure:
    """Idle share by number of micro-batches: measured, by formula, with these stages."""
    x = list(range(len(run.runs)))
    figure = go.Figure()
    figure.add_bar(
        x=x,
        y=[found.bubble for found in run.runs],
        name=t("parallel.bubble_measured"),
        marker={"color": COLOURS[0]},
        text=[whole_percent(found.bubble) for found in run.runs],
        textposition="inside",
        insidetextanchor="start",
        textangle=0,
        textfont={"color": INK, "size": 15},
        customdata=[percent(found.bubble) for found in run.runs],
        hovertemplate="%{customdata}<extra>" + t("parallel.bubble_measured") + "</extra>",
    )
    for values, key, colour, symbol, dash in (
        ([r.ideal for r in run.runs], "bubble_ideal", COLOURS[1], "diamond", "dash"),
        ([r.unequal for r in run.runs], "bubble_unequal", COLOURS[2], "square", "dot"),
    ):
        figure.add_scatter(
            x=x,
            y=values,
            mode="lines+markers",
            name=t(f"parallel.{key}"),
            line={"color": colour, "dash": dash, "width": 2},
            marker={"symbol": symbol, "size": 11, "color": colour},
            customdata=[percent(value) for value in values],
            hovertemplate="%{customdata}<extra>" + t(f"parallel.{key}") + "</extra>",
        )
    figure.update_xaxes(
        tickvals=x,
        ticktext=[str(found.micro_batches) for found in run.runs],
        title=t("parallel.axis_micro"),
        fixedrange=True,
    )
    most = max([share for r in run.runs for share in (r.bubble, r.ideal, r.unequal)], default=1.0)
    figure.update_yaxes(
        title=t("parallel.axis_bubble"), rangemode="tozero", fixedrange=True, **percents(most)
    )
    figure.update_layout(bargap=0.45)
    return dress(figure, 340)


def places_chart(run: OffloadRun, t: Catalog) -> go.Figure:
    """The model from its first module to its last, and where each part lives."""
    figure, seen = go.Figure(), set[str]()
    kinds = list(dict.fromkeys(place.where for place in run.places))
    for place in run.places:
        kind = kinds.index(place.where)
        figure.add_bar(
            orientation="h",
            y=[0],
            x=[place.bytes / 1e6],
            name=where_text(place.where, t),
            legendgroup=place.where,
            showlegend=place.where not in seen,
            text=[where_text(place.where, t)],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            textfont={"color": INK},
            marker={
                "color": COLOURS[kind],
                "line": {"color": "#ffffff", "width": 1.5},
                "pattern": {"shape": PATTERNS[kind], "fillmode": "overlay", "fgopacity": 0.25,
                            "fgcolor": "#ffffff"},
            },
            customdata=[[plain(place.first), plain(place.last)]],
            hovertemplate="%{customdata[0]} … %{customdata[1]}<br>%{x:,.1f} MB<extra></extra>",
        )  # fmt: skip
        seen.add(place.where)
    figure.update_yaxes(visible=False, fixedrange=True)
    figure.update_xaxes(title=t("parallel.axis_mb_order"), fixedrange=True)
    figure.update_layout(barmode="stack")
    return dress(figure, 170)


def where_text(where: str, t: Catalog) -> str:
    """A place in words."""
    key = {"cpu": "memory", "disk": "disk"}.get(where)
    return t(f"parallel.{key}") if key else t("parallel.accelerator", n=where)


def serving_chart(run: ReplicaRun, t: Catalog) -> go.Figure:
    """Tokens a second of all readers against what one of them waits for a token."""
    figure = go.Figure()
    for place, replicas in enumerate(dict.fromkeys(one.replicas for one in run.servings)):
        own = [one for one in run.servings if one.replicas == replicas]
        figure.add_scatter(
            x=[one.step.median for one in own],
            y=[one.per_second for one in own],
            mode="lines+markers+text",
            name=t("parallel.copies_line", n=replicas),
            text=[str(one.batch) for one in own],
            textposition="top center" if place == 0 else "bottom center",
            textfont={"size": 14},
            line={"color": COLOURS[place], "dash": DASHES[place % 2], "width": 2},
            marker={"symbol": SYMBOLS[place], "size": 11, "color": COLOURS[place]},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [one.step.high - one.step.median for one in own],
                "arrayminus": [one.step.median - one.step.low for one in own],
                "color": COLOURS[place],
                "thickness": 1,
            },
            customdata=[one.batch for one in own],
            hovertemplate=t("parallel.texts_each", n="%{customdata}")
            + "<br>%{x:.1f} ms · %{y:,.1f} "
            + t("parallel.per_second")
            + "<extra></extra>",
        )
    # One step that was disturbed must not press all others together.
    slowest = max(one.step.median for one in run.servings)
    last = min(max(one.step.high for one in run.servings), 2 * slowest)
    end = max(1.2 * slowest, 1.03 * last)
    figure.update_xaxes(title=t("parallel.axis_latency"), range=[0, end], fixedrange=True)
    figure.update_yaxes(title=t("parallel.axis_throughput"), rangemode="tozero", fixedrange=True)
    return dress(figure, 400)
