"""The planner: any model on any device, in theory, with what was measured beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import streamlit as st

from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.plan import WEIGHT_BYTES, Device, Load, Precision, devices
from core.lab.plan_advice import HERE, advise, measured_here, of_machine, published
from core.lab.plan_table import Planned, as_csv, combinations, planned, row
from core.lab.roofline import Roof
from core.lab.roofline_ops import OPAQUE, PACKED
from core.lab.roofline_run import Known
from core.lab.shape import ModelShape
from core.lab.shape_presets import presets
from ui import state
from ui.figures import limits_plan as figures
from ui.figures.sources import source_words
from ui.figures.words import in_bytes, two_digits, unbroken
from ui.i18n import Catalog, plain
from ui.lab_options import chosen, here
from ui.lab_parts import PLAIN, dataframe, wide
from ui.limits_model import chosen_shape, in_use, pick
from ui.limits_table import RANKS, STAGES, TABLE
from ui.marks import mark
from ui.widgets import show

PRECISIONS: Final[tuple[Precision, ...]] = tuple(WEIGHT_BYTES)
BATCHES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
TILE: Final = 165
"""Pixels: two stand beside each other on a phone."""


def planner(t: Catalog, engine: Engine | None, found: Known) -> None:
    """The controls, and the answer below them."""
    values = here("limits", TABLE)
    among = [*devices(), *([of_machine(found.roof)] if found.here else [])]
    try:
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            name = pick(t, values["model"], engine)
            device = _device(t, among, values["device"])
            _numbers(t, values)
        shape = chosen_shape(t, name, engine)
        if shape is None:
            return
        load = _load(values)
    except Fault as fault:
        st.error(t.fault(fault))
        return
    if device.name == HERE:
        warn_if_disturbed(t, found.roof)
    _answer(t, planned(shape, device, load))
    _others(t, shape, among, load)
    _practice(t, engine, found)


def warn_if_disturbed(t: Catalog, roof: Roof) -> None:
    """The warning of a disturbed measurement, wherever its figures are used."""
    if roof.disturbed:
        said = t("limits.restless", times=f"{roof.unrest:.1f}")
        st.caption(f":material/warning: {said}")


def _load(values: dict[str, Any]) -> Load:
    return Load(
        precision=values["precision"],
        batch=values["batch"],
        prompt=values["prompt"],
        new=values["new"],
        tensor_parallel=values["tp"],
        pipeline_parallel=values["pp"],
    )


# ---------------------------------------------------------------- controls


def _device(t: Catalog, among: Sequence[Device], name: str) -> Device:
    known = {device.name: device for device in among}
    at = name if name in known else TABLE["device"][0]
    key = show("w_limits_device", at)
    st.selectbox(
        t("limits.device"),
        list(known),
        key=key,
        format_func=lambda value: figures.device_words(str(value), t),
        on_change=chosen("limits", TABLE, "device", key),
        width=260,
    )
    return known[at]


def _numbers(t: Catalog, values: dict[str, Any]) -> None:
    _select(t, "precision", PRECISIONS, values["precision"], 110)
    for name, high in (("batch", 4096), ("prompt", 2**20), ("new", 2**20)):
        key = show(f"w_limits_{name}", values[name])
        st.number_input(
            t(f"limits.{name}"),
            1,
            high,
            key=key,
            help=t(f"limits.{name}_help"),
            on_change=chosen("limits", TABLE, name, key),
            width=130,
        )
    for name, usual in (("tp", RANKS), ("pp", STAGES)):
        _select(t, name, sorted({*usual, values[name]}), values[name], 130)


def _select(t: Catalog, name: str, among: Sequence[Any], value: Any, width: int) -> None:
    key = show(f"w_limits_{name}", value)
    st.selectbox(
        t(f"limits.{name}"),
        among,
        key=key,
        help=t(f"limits.{name}_help"),
        on_change=chosen("limits", TABLE, name, key),
        width=width,
    )


# ---------------------------------------------------------------- the answer


def _answer(t: Catalog, found: Planned) -> None:
    made = found.plan
    if made is None:
        assert found.fault is not None
        st.error(t.fault(found.fault))
        return
    mark(t, "computed", t("limits.plan_how"))
    said = figures.verdict(found, advise(found.shape, found.device, found.load), t)
    if made.fits:
        st.success(said, icon=":material/check_circle:")
    else:
        st.warning(said, icon=":material/block:")
    several = found.load.devices > 1
    tiles = [
        ("tile_memory", in_bytes(made.memory)),
        ("tile_first", figures.milliseconds(made.first_token)),
        ("tile_token", figures.milliseconds(made.per_token)),
        ("tile_tokens", two_digits(made.tokens_per_second)),
    ]
    if several:
        tiles.append(("tile_sent", in_bytes(made.communication_bytes)))
    with st.container(horizontal=True, gap="medium"):
        for key, value in tiles:
            st.metric(t(f"limits.{key}"), value, help=t(f"limits.{key}_help"), width=TILE)
    st.markdown(figures.bottleneck(made, found.load, t))
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(f"### {t('limits.memory_title')}")
        rows = [
            planned(found.shape, found.device, replace(found.load, precision=p)) for p in PRECISIONS
        ]
        figure = figures.memory_chart(rows, found.load.precision, found.device.memory, t)
        alt = t("limits.memory_alt")
        st.plotly_chart(figure, key="limits_memory", config=PLAIN, alt=alt)
    with right:
        st.markdown(f"### {t('limits.batch_title')}")
        sizes = sorted({*BATCHES, found.load.batch})
        many = [planned(found.shape, found.device, replace(found.load, batch=n)) for n in sizes]
        figure = figures.batch_chart(many, found.load.batch, t)
        st.plotly_chart(figure, key="limits_batch", config=PLAIN, alt=t("limits.batch_alt"))
        if not all(each.plan and each.plan.fits for each in many):
            st.caption(t("limits.batch_hollow"))


def _others(t: Catalog, shape: ModelShape, among: Sequence[Device], load: Load) -> None:
    st.markdown(f"### {t('limits.devices_title')}")
    mark(t, "published", t("limits.devices_from"))
    mark(t, "computed", t("limits.devices_how"))
    frame = figures.devices_table([planned(shape, each, load) for each in among], t)
    dataframe(frame, "limits_devices", **{t("limits.col_source"): wide()})
    rows = [row(each) for each in combinations(shape, among, load, precisions=PRECISIONS)]
    st.download_button(
        t("limits.csv"),
        # Spreadsheets take a file for Latin-1 without this mark.
        as_csv(rows).encode("utf-8-sig"),
        file_name="limits.csv",
        mime="text/csv",
        icon=":material/download:",
        key="limits_csv",
    )
    preset = presets().get(shape.name)
    if preset is not None:
        source = plain(source_words(preset.source, t))
        st.caption(t("limits.numbers_from", source=source, date=unbroken(preset.date)))


# ---------------------------------------------------------------- measured ÷ theory


def _practice(t: Catalog, engine: Engine | None, found: Known) -> None:
    st.markdown(f"### {t('limits.practice_title')}")
    st.caption(t("limits.practice_text"))
    if engine is not None and found.steps is not None and not _packed(engine):
        try:
            shape = in_use(state.number(engine), engine)
        except Fault as fault:
            st.info(t.fault(fault))
        else:
            rows = list(measured_here(shape, found.roof, found.steps))
            mark(t, "measured" if found.here else "recorded", on=found.steps.machine)
            _beside(t, rows, "limits_here", recorded=not found.here)
    mark(t, "published", t("limits.practice_from"))
    mark(t, "computed", t("limits.practice_how"))
    _beside(t, published(), "limits_published")


def _packed(engine: Engine) -> bool:
    """Whether weights take fewer bytes than the planner would count; the page's third part has
    their real ones."""
    return any(part.kind in PACKED | OPAQUE for part in engine.anatomy())


def _beside(t: Catalog, rows: Sequence[Any], key: str, *, recorded: bool = False) -> None:
    frame = figures.beside_table(rows, t, recorded=recorded)
    ratio = st.column_config.NumberColumn(format="%.2f ×")
    columns = {t("limits.col_theory_ratio"): ratio, t("limits.col_source"): wide()}
    dataframe(frame, key, **columns)
