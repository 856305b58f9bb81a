"""The four parts of the Layers page, each drawn for itself: a fault in one leaves the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import streamlit as st

from core.anatomy import Operation, Sizes, Structure, Walk, totals, walk
from core.faults import Fault
from core.neurons import NEAR_ZERO, activity, most_active
from core.recorded import RecordedEngine
from core.residual import Stream
from ui import state
from ui.components.layers import neurons
from ui.components.lens_map import lens_map
from ui.context import Context
from ui.figures import layers_charts as charts
from ui.figures import layers_tables as tables
from ui.figures.layers import Map, map_data
from ui.figures.layers_walk import cost_text, name_text, shape_text, sum_text, totals_table
from ui.figures.words import signed, tiny
from ui.i18n import Catalog
from ui.layers import INSIDE, Reading, attention_scaling, heard
from ui.widgets import NO_VALUE

CLOSE: Final = 1e-4
"""Largest difference, as a share of the largest number, that counts as equal."""
BUSIEST: Final = 10
PLAIN: Final = {"displayModeBar": False}
_MARKS: Final = str.maketrans({char: f"\\{char}" for char in r"\`*_{}[]<>()#+-.!|$~:"})


def safely(t: Catalog, parts: Sequence[Callable[[], None]]) -> None:
    """Draw the parts; for those that can't be drawn say why, the same reason once."""
    said = set[str]()
    for draw in parts:
        try:
            draw()
        except Fault as fault:
            sentence = t.fault(fault)
            if sentence not in said:
                st.info(sentence)
            said.add(sentence)


def _title(context: Context, key: str, **values: Any) -> None:
    st.markdown(f"## {context.t(f'layers.{key}', **values)}")


def _token(reading: Reading) -> str:
    """The label of the position in view, for Markdown: it stays letters."""
    return f"“{reading.tokens[reading.at].label.translate(_MARKS)}”"


def _table(context: Context, frame: Any, key: str) -> None:
    with st.expander(context.t("layers.as_table"), icon=":material/table:", key=f"{key}_table"):
        # A probability of 1e-18 must not fill its column with zeros.
        short = st.column_config.NumberColumn(format="%.6g")
        numbers = frame.select_dtypes("floating").columns
        config = dict.fromkeys(map(str, numbers), short)
        st.dataframe(frame, hide_index=True, placeholder=NO_VALUE, column_config=config, key=key)


def show_map(reading: Reading) -> None:
    """The layer × position map, and the check of its last row."""
    context = reading.context
    _title(context, "map_title")
    start, stop = reading.window
    cell = state.place().view.cell
    drawn = Map(
        tokens=reading.tokens,
        start=start,
        stop=stop,
        at=reading.at,
        layer=reading.layer,
        layers=context.engine.info.layers,
        cell=cell,
        columns=reading.columns,
        values=reading.values(cell),
    )
    data = map_data(drawn, context.vocabulary.label, context.t)
    lens_map(data, heard("lens_map"), key="lens_map")
    if reading.no_lens is not None:
        raise reading.no_lens
    distance = reading.distance()
    if distance is not None:
        key = "last_row" if distance < CLOSE else "last_row_off"
        st.caption(context.t(f"layers.{key}", d=tiny(distance)))


def show_way(reading: Reading) -> None:
    """Probability and rank of the next token by layer."""
    context, column = reading.context, reading.columns.get(reading.at)
    if column is None:
        return
    t, label = context.t, context.vocabulary.label
    following = reading.ids[reading.at + 1]
    _title(context, "way_title")
    st.caption(t("layers.way_text", n=reading.at, token=_token(reading)))
    figure = charts.way(column, following, label, reading.layer, t)
    alt = t("layers.way_alt", tokens=", ".join(map(label, column.followed)))
    st.plotly_chart(figure, key="way", config=PLAIN, alt=alt)
    _table(context, tables.way_table(column, label, t), "way_numbers")


def show_stream(reading: Reading) -> None:
    """Sizes, shares and angle of the stream at the position in view; the sum is checked."""
    context, t = reading.context, reading.context.t
    found = reading.stream()
    _title(context, "stream_title")
    key = "stream_text" if found.parts is not None else "stream_text_short"
    st.caption(t(f"layers.{key}", n=reading.at, token=_token(reading)))
    figure = charts.stream_chart(found, reading.layer, t)
    st.plotly_chart(figure, key="stream", config=PLAIN, alt=t("layers.stream_alt"))
    st.caption(_sum_sentence(found, context))
    _table(context, tables.stream_table(found, t), "stream_numbers")


def _sum_sentence(found: Stream, context: Context) -> str:
    t, parts = context.t, found.parts
    if parts is None:
        stored = isinstance(context.engine, RecordedEngine)
        return t("fault.model_loading") if stored else t("layers.no_parts")
    if parts.error >= CLOSE:
        return t("layers.sum_off", d=tiny(parts.error))
    checked = t("layers.sum_check", layers=found.change.size, d=tiny(parts.error))
    along = t(
        "layers.sum_along",
        # Adding 0 takes the minus from −0.0.
        start=signed(round(found.start_along, 1) + 0.0, 1),
        attention=_plus(parts.attention_along.sum()),
        feed_forward=_plus(parts.feed_forward_along.sum()),
        total=f"{found.size[-1]:,.1f}",
    )
    return t("generate.sentence_join").join((checked, along))


def _plus(value: float) -> str:
    return f"{'−' if value < 0 else '+'} {abs(value):,.1f}"


def show_layer_picker(reading: Reading) -> None:
    """The layer of what follows; the same as a click on the map."""
    context, layers = reading.context, reading.context.engine.info.layers
    if layers < 2:
        return
    st.session_state["w_layer"] = reading.layer + 1
    st.slider(
        context.t("layers.layer_slider"),
        1,
        layers,
        key="w_layer",
        help=context.t("layers.layer_slider_help"),
        on_change=lambda: state.look(layer=st.session_state["w_layer"] - 1),
    )


def show_neurons(reading: Reading) -> None:
    """The busiest neurons of the layer in view, and how sparse all layers are."""
    context, t, info = reading.context, reading.context.t, reading.context.engine.info
    forward, row = reading.captured(reading.at, INSIDE)
    found = most_active(context.engine, forward, row, reading.layer, count=BUSIEST)
    _title(context, "neurons_title", n=reading.layer + 1)
    about = t(
        "layers.neurons_text",
        n=reading.at,
        token=_token(reading),
        count=len(found),
        all=f"{0 if forward.neurons is None else forward.neurons.shape[-1]:,}",
    )
    st.caption(about)
    if any(o.kind == "norm_after" for o in _walk(reading).inside):
        st.caption(t("layers.neurons_scaled"))
    label = context.vocabulary.label
    neurons(tables.neurons_data(found, reading.layer, label, t), key="neurons")
    silent = activity(forward, row)
    if silent is None:
        return
    st.markdown(f"### {t('layers.sparsity_title')}")
    st.caption(t("layers.sparsity_text", share=f"{100 * NEAR_ZERO:.0f} %"))
    figure = charts.sparsity(silent, reading.layer, t)
    alt = t("layers.sparsity_alt", n=info.layers)
    st.plotly_chart(figure, key="sparsity", config=PLAIN, alt=alt)
    _table(context, tables.sparsity_table(silent, t), "sparsity_numbers")


def _sizes(reading: Reading) -> Sizes:
    prompt = len(reading.context.generation.prompt)
    return Sizes(read=prompt, seen=max(reading.total, prompt + 1))


def _walk(reading: Reading, scaling: float | None = None) -> Walk:
    engine, layer = reading.context.engine, reading.layer
    return walk(
        engine.anatomy(),
        engine.info,
        layer,
        _sizes(reading),
        window=engine.window(layer),
        rope=engine.rope(layer),
        scaling=scaling,
    )


def show_walk(reading: Reading) -> None:
    """Each operation of the layer in view, and the sums over the whole model."""
    context, t, engine = reading.context, reading.context.t, reading.context.engine
    info, sizes = engine.info, _sizes(reading)
    scaling = attention_scaling(context, reading.layer)
    made = _walk(reading, scaling)
    _title(context, "walk_title", n=reading.layer + 1)
    _about(reading, made.structure, sizes)
    with _fold(t("layers.walk_before"), made.before, "before", t):
        _lines(made.before, 1, context)
    inside = t("layers.walk_inside", n=reading.layer + 1, of=info.layers)
    with _fold(inside, made.inside, "inside", t):
        _lines(made.inside, len(made.before) + 1, context)
        if scaling is not None:
            st.caption(t("layers.walk_scaling", value=f"{scaling:.4g}"))
    with _fold(t("layers.walk_after"), made.after, "after", t):
        _lines(made.after, len(made.before) + len(made.inside) + 1, context)
    windows = [engine.window(layer) for layer in range(info.layers)]
    whole = totals(engine.anatomy(), info, sizes, windows)
    counts: dict[str, Any] = {
        t(f"layers.total_{name}"): st.column_config.TextColumn(alignment="right")
        for name in ("prefill", "step")
    }
    counts[t("layers.total_parameters")] = st.column_config.NumberColumn(format="localized")
    table = totals_table(whole, made, t)
    st.dataframe(table, hide_index=True, placeholder=NO_VALUE, column_config=counts, key="totals")
    exact = whole.parameters == info.parameters
    key = "total_check" if exact else "total_off"
    st.caption(t(f"layers.{key}", n=f"{whole.parameters:,}", whole=f"{info.parameters:,}"))


def _about(reading: Reading, structure: Structure, sizes: Sizes) -> None:
    context, t, info = reading.context, reading.context.t, reading.context.engine.info
    window = context.engine.window(reading.layer)
    kind = t(f"layers.walk_{structure}", architecture=info.architecture)
    lines = [t("layers.walk_text", architecture=info.architecture), kind]
    if window is not None:
        lines.append(t("layers.walk_window", n=window))
    st.caption(t("generate.sentence_join").join(lines))
    letters = {"D": info.width, "H": info.heads, "G": info.kv_heads, "d": info.head_dim}
    letters |= {"I": info.intermediate, "V": info.vocabulary, "L": info.layers}
    letters |= {"T": sizes.read, "S": sizes.seen}
    said = {name: f"{value:,}" for name, value in letters.items()}
    # A letter and its number stay on one line.
    st.caption(t("layers.walk_letters", **said).replace(" = ", "\u00a0=\u00a0"))
    st.caption(t("layers.walk_flops"))


def _fold(title: str, operations: Sequence[Operation], name: str, t: Catalog) -> Any:
    """One part of the walk, folded under what it adds up to: the whole is long on a phone."""
    return st.expander(f"**{title}** · {sum_text(operations, t)}", key=f"walk_{name}")


def _lines(operations: Sequence[Operation], first: int, context: Context) -> None:
    for number, operation in enumerate(operations, first):
        name, term = name_text(operation, context.engine.info, context.t)
        left, middle, right = st.columns([5, 8, 5], vertical_alignment="center", gap="small")
        left.markdown(f"**{number}. {name}**  \n{term.translate(_MARKS)}")
        if operation.formula:
            middle.latex(operation.formula)
        right.markdown(f"`{shape_text(operation)}`  \n{cost_text(operation, context.t)}")
