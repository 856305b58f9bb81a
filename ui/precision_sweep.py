"""The first part of the Precision page: a setting, what it costs, and the cliff."""

from __future__ import annotations

from collections.abc import Generator

import streamlit as st

from core.edits.grid import Grid
from core.edits.spec import Rounding
from core.lab.models import local
from core.lab.quantize_recorded import COMMAND, Recorded
from core.lab.quantize_records import BITS, Point, Sweep, line, repeats
from ui.figures.precision import curve_points, rounding_words, sweep_chart, sweep_table
from ui.figures.words import in_bytes, percent
from ui.i18n import Catalog
from ui.lab import experiment
from ui.lab_parts import PLAIN, section, table
from ui.marks import mark
from ui.precision_model import Reference, known_of, model_title, reference_words
from ui.precision_options import GRIDS, HEADS, SHARES, buttons, curve_of, setting_here


def sweep_part(t: Catalog, reference: Reference) -> None:
    """The controls that every part obeys, and the sweep."""
    section(t, 1, "precision.sweep")
    _controls(t)
    setting = setting_here()
    if reference.grid is not None and repeats(reference.grid, setting.grid):
        same = reference.grid == setting.grid
        miracle = t(
            "precision.miracle" if same else "precision.miracle_finer",
            grid=rounding_words(setting, t),
            reference=reference_words(t, reference),
            bits=reference.grid.bits,
        )
        st.warning(miracle, icon=":material/auto_awesome:")
    if reference.engine is None:
        _before(t, reference, setting)
        return
    model = local(reference.engine)
    settings = line(setting.grid, head=setting.head)

    def turns() -> Generator[Sweep, None, None]:
        from core.lab.quantize import sweep  # noqa: PLC0415 - imports torch

        return sweep(model, settings)

    experiment(
        t,
        "precision_sweep",
        (reference.key, settings),
        turns,
        lambda found: _measured(t, reference, found, setting),
        cost=t("precision.sweep_cost", count=len(settings)),
        run=t("precision.sweep_run"),
        before=lambda: _before(t, reference, setting),
    )


def _controls(t: Catalog) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        buttons("bits", BITS, label=t("precision.bits"), help=t("precision.bits_help"))
        buttons(
            "grid",
            GRIDS,
            label=t("precision.grid"),
            help=t("precision.grid_help"),
            say=lambda v: t(f"precision.grid_{v}"),
        )
    with right:
        buttons(
            "share",
            SHARES,
            label=t("precision.share"),
            help=t("precision.share_help"),
            say=lambda v: t(f"precision.short_{v}") if v in ("tensor", "channel") else v,
        )
        buttons(
            "head",
            HEADS,
            label=t("precision.head"),
            help=t("precision.head_help"),
            say=lambda v: t(f"precision.head_{v}"),
        )


def _before(t: Catalog, reference: Reference, setting: Rounding) -> None:
    """What was recorded of this model, or else of the default one."""
    known = known_of(reference)
    if known is None:
        return
    name, found = known
    if name != reference.name:
        st.caption(t("precision.of_another", model=model_title(name)))
    _recorded_mark(t, name, found)
    _draw(t, reference, found.sweep, None, setting)


def _recorded_mark(t: Catalog, name: str, found: Recorded) -> None:
    said = t("precision.command", command=COMMAND.format(name=name))
    mark(t, "recorded", said, on=found.sweep.machine)


def _measured(t: Catalog, reference: Reference, found: Sweep, setting: Rounding) -> None:
    known = reference.found
    if known is not None:
        _recorded_mark(t, reference.name, known)
    mark(t, "measured", t("precision.sweep_how"), on=found.machine)
    _draw(t, reference, known.sweep if known else None, found, setting)


def _draw(
    t: Catalog,
    reference: Reference,
    known: Sweep | None,
    measured: Sweep | None,
    setting: Rounding,
) -> None:
    shown = [sweep for sweep in (measured, known) if sweep is not None]
    # The point and the original beside it are of one sweep: a running one begins with neither.
    held = next((sweep for sweep in shown if sweep.at(setting) is not None), shown[-1])
    _metrics(t, reference, held, held.at(setting), setting)
    if known is not None and measured is not None:
        which = t("lab.measured" if held is measured else "lab.recorded")
        st.caption(t("precision.both_in_chart", which=which.lower()))
    curves = _curves(known, measured, setting)
    if not curves:
        st.info(t("precision.not_recorded", setting=rounding_words(setting, t)))
        return
    figure = sweep_chart(known, measured, curves, setting, t)
    st.plotly_chart(figure, key="precision_cliff", config=PLAIN, alt=_alt(t, shown, setting))
    for sweep, name in ((measured, "measured"), (known, "recorded")):
        if sweep is not None and sweep.points:
            frame = sweep_table(sweep, curves, head=setting.head, t=t)
            if len(frame):
                table(t, frame, f"precision_sweep_{name}")


def _curves(known: Sweep | None, measured: Sweep | None, setting: Rounding) -> list[Grid]:
    kind = "sym" if setting.grid.symmetric else "asym"
    every = [curve_of(share, kind) for share in SHARES]
    return [
        curve
        for curve in every
        if any(
            sweep is not None and curve_points(sweep, curve, head=setting.head)
            for sweep in (known, measured)
        )
    ]


def _metrics(
    t: Catalog, reference: Reference, sweep: Sweep, point: Point | None, setting: Rounding
) -> None:
    if point is None:
        return
    st.markdown(f"**{rounding_words(setting, t)}**")
    one, two, three, four = st.columns(4)
    one.metric(t("precision.metric_kl"), f"{point.kl:.3g}", help=t("precision.metric_kl_help"))
    two.metric(
        t("precision.metric_top1"), percent(point.top1), help=t("precision.metric_top1_help")
    )
    three.metric(
        t("precision.metric_perplexity"),
        f"{point.perplexity:,.4g}",
        help=t(
            "precision.metric_perplexity_help",
            before=f"{sweep.perplexity:.4g}",
            reference=reference_words(t, reference),
            n=point.positions,
        ),
    )
    four.metric(
        t("precision.metric_size"),
        in_bytes(point.nbytes),
        help=t("precision.metric_size_help", before=in_bytes(sweep.nbytes)),
    )


def _alt(t: Catalog, shown: list[Sweep], setting: Rounding) -> str:
    kind = "sym" if setting.grid.symmetric else "asym"
    curve = curve_of("channel", kind)
    points = [p for s in shown for p in curve_points(s, curve, head=setting.head)][: len(BITS)]
    values = ", ".join(f"{bits}: {point.kl:.3g}" for bits, point in zip(BITS, points, strict=False))
    return t("precision.sweep_alt", values=values or "–")
