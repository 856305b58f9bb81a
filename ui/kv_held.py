"""The second and third part of the KV cache page: what is kept, and how much memory it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import streamlit as st

from core.engine.memory import ByteLRU
from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.kv_cost import kept_bytes
from core.lab.kv_others import PUBLISHED_BYTES, other_caches
from core.lab.kv_records import Held, LayerHeld, Rows
from core.lab.models import local
from core.lab.shape import ModelShape
from core.models.catalog import title_of
from ui import state
from ui.context import Context
from ui.figures.kv_rows import MOST_ROWS, Shown, rows_chart, rows_table
from ui.figures.kv_sizes import Own, growth_chart, layers_table, others_chart, others_table
from ui.figures.words import in_bytes
from ui.i18n import Catalog, plain
from ui.kv_options import LENGTHS, chosen, here
from ui.kv_parts import choice
from ui.lab_parts import PLAIN, dataframe, section, table, wide
from ui.marks import mark
from ui.widgets import picked, show

PARTS: Final = ("keys", "values")
MEMO_BYTES: Final = 24_000_000


@dataclass(frozen=True)
class Text:
    """What the step in view has read."""

    ids: tuple[int, ...]
    prompt: int
    new: int
    """Positions that the step itself computed."""


def _text(context: Context) -> Text | None:
    view = context.view
    if view is None:
        return None
    prompt = len(context.generation.prompt)
    ids = view.forward.ids
    return Text(ids, prompt, prompt if view.index == 0 else 1)


@st.cache_resource(show_spinner=False)
def _memo() -> ByteLRU[Any, Any]:
    """What was read off caches, for all readers: a page drawn again must not wait for a model
    that an experiment has borrowed."""
    return ByteLRU(MEMO_BYTES)


def _held(context: Context, text: Text) -> Held:
    from core.lab.kv_held import held  # noqa: PLC0415 - imports torch

    key = (state.number(context.engine), text.ids, text.prompt)
    found: Held | None = _memo().get(key)
    if found is None:
        found = held(local(context.engine), text.ids, text.prompt)
        _memo().put(key, found, 200 * len(found.layers) + 8 * len(text.ids))
    return found


def _rows(engine: Engine, text: Text, layer: int, head: int) -> Rows:
    from core.lab.kv_held import rows  # noqa: PLC0415 - imports torch

    key = (state.number(engine), text.ids, text.prompt, layer, head)
    found: Rows | None = _memo().get(key)
    if found is None:
        found = rows(local(engine), text.ids, layer, head, text.prompt)
        _memo().put(key, found, found.keys.nbytes + found.values.nbytes + 8 * len(text.ids))
    return found


def _shape(engine: Engine) -> tuple[ModelShape, int]:
    """Raises Fault for a model whose work cannot be counted."""
    from core.lab.kv_passes import shape_in  # noqa: PLC0415 - imports torch

    key = ("shape", state.number(engine))
    found: tuple[ModelShape, int] | None = _memo().get(key)
    if found is None:
        found = shape_in(local(engine))
        _memo().put(key, found, 1000)
    return found


# ---------------------------------------------------------------- the growing table


def rows_part(t: Catalog, context: Context | None, engine: Engine | None) -> None:
    """Keys and values of one layer and KV head, a row for each token."""
    if context is None or engine is None:
        return
    text = _text(context)
    if text is None:
        return
    section(t, 2, "kv_cache.rows")
    found = _held(context, text)
    layer = _pickers(t, engine, found)
    if layer is None:
        return
    head = min(here()["head"], layer.kv_heads - 1)
    kept = _rows(engine, text, layer.layer, head)
    tokens = context.vocabulary.tokens(text.ids, text.prompt)
    shown = Shown(kept, min(text.new, len(kept.keys)), [token.label for token in tokens])
    mark(t, "computed", t("kv_cache.rows_how"))
    _said(t, shown, layer, text)
    for column, part in zip(st.columns(2, gap="medium"), PARTS, strict=True):
        with column:
            st.markdown(f"**{t(f'kv_cache.{part}')}**")
            st.plotly_chart(
                rows_chart(shown, part, t),
                key=f"kv_{part}",
                config=PLAIN,
                alt=t("kv_cache.rows_alt", part=t(f"kv_cache.{part}"), rows=len(kept.keys)),
            )
            table(t, rows_table(shown, part, t), f"kv_{part}")


def _said(t: Catalog, shown: Shown, layer: LayerHeld, text: Text) -> None:
    """What this step did to the table."""
    key = "rows_prefill" if text.new > 1 else "rows_decode"
    label = plain(shown.labels[-1])
    lines = [t(f"kv_cache.{key}", n=text.new, token=label, rows=len(shown.rows.keys))]
    if shown.rows.first:
        window = layer.window
        lines.append(t("kv_cache.rows_dropped", last=shown.rows.first - 1, window=window))
    if shown.first > shown.rows.first:
        lines.append(t("kv_cache.rows_cut", n=MOST_ROWS))
    st.markdown(t("generate.sentence_join").join(lines))


def _pickers(t: Catalog, engine: Engine, found: Held) -> LayerHeld | None:
    """The layer (shared with the other pages) and the KV head."""
    layers = {layer.layer: layer for layer in found.layers}
    asked = state.place().view.layer
    at = asked if asked in layers else min(layers)
    left, right = st.columns(2, gap="medium")
    with left:
        if len(layers) > 1:
            st.select_slider(
                t("kv_cache.layer"),
                list(layers),
                key=show("kv_layer", at),
                format_func=lambda i: _layer_name(layers.get(i), i, t),
                on_change=lambda: state.look(layer=picked("kv_layer", layers, at)),
            )
    layer = layers[at]
    with right:
        if layer.kv_heads > 1:
            heads = list(range(layer.kv_heads))
            head = min(here()["head"], layer.kv_heads - 1)
            shared = engine.info.heads // layer.kv_heads
            st.select_slider(
                t("kv_cache.head"),
                heads,
                key=show("kv_head", head),
                format_func=lambda i: str(i + 1) if isinstance(i, int) else str(i),
                help=t("kv_cache.head_help", n=shared),
                on_change=chosen("head", "kv_head"),
            )
    return layer


def _layer_name(layer: LayerHeld | None, index: Any, t: Catalog) -> str:
    if layer is None:
        return str(index)
    number = str(layer.layer + 1)
    return number if layer.window is None else t("kv_cache.layer_sliding", n=number)


# ---------------------------------------------------------------- sizes


def sizes_part(t: Catalog, context: Context | None, engine: Engine | None) -> None:
    """Of this model from its tensors, of others by formula."""
    section(t, 3, "kv_cache.sizes")
    own = None
    text = _text(context) if context is not None else None
    if context is not None and engine is not None and text is not None:
        own = _own(t, context, engine, text)
    st.markdown(f"### {t('kv_cache.others_title')}")
    length = here()["length"]
    choice(
        "length",
        LENGTHS,
        label=t("kv_cache.length"),
        help=t("kv_cache.length_help"),
        say="{:,}".format,
    )
    mark(t, "published", t("kv_cache.others_from"))
    mark(t, "computed", t("kv_cache.others_how"))
    others = other_caches(length)
    if own is not None:
        st.caption(_beside(t, own, length))
    st.plotly_chart(
        others_chart(others, own, t),
        key="kv_others_chart",
        config=PLAIN,
        alt=t("kv_cache.others_alt", n=f"{length:,}"),
    )
    wider = {t("kv_cache.col_source"): wide()}
    table(t, others_table(others, own, t), "kv_others", **wider)


def _beside(t: Catalog, own: Own, length: int) -> str:
    """How many bytes a number of this model has, where those of the others have two."""
    if own.value_bytes == PUBLISHED_BYTES:
        return t("kv_cache.others_same")
    size = in_bytes(kept_bytes(own.shape, length, PUBLISHED_BYTES))
    return t("kv_cache.others_own", bytes=own.value_bytes, size=size)


def _own(t: Catalog, context: Context, engine: Engine, text: Text) -> Own | None:
    found = _held(context, text)
    mark(t, "computed", t("kv_cache.sizes_how", n=found.length))
    one, two, three = st.columns(3)
    one.metric(t("kv_cache.so_far", n=found.length), in_bytes(found.nbytes))
    two.metric(t("kv_cache.per_token"), f"{found.token_bytes:,} B")
    three.metric(t("kv_cache.next_token"), f"{found.next_bytes:,} B")
    layer = found.layers[0]
    st.markdown(
        t(
            "kv_cache.formula",
            layers=len(found.layers),
            heads=layer.kv_heads,
            width=layer.head_dim,
            bytes=found.value_bytes,
            total=f"{found.token_bytes:,}",
            exact=f"{found.nbytes:,}",
        )
    )
    full = [each for each in found.layers if each.full]
    if full:
        st.markdown(
            t("kv_cache.full_windows", n=len(full), of=len(found.layers), window=full[0].window)
        )
    try:
        shape, value = _shape(engine)
    except Fault as fault:
        st.info(t.fault(fault))
        return None
    own = Own(title_of(engine.info.name), shape, value, engine.info.context, found)
    st.plotly_chart(
        growth_chart(own, t), key="kv_growth", config=PLAIN, alt=t("kv_cache.growth_alt")
    )
    with st.expander(t("kv_cache.layers_table"), icon=":material/table:", key="kv_layers_table"):
        dataframe(layers_table(found, t), "kv_layers")
    return own
