"""The second part of the Precision page: what one setting does to the text and to the layers."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import takewhile
from typing import Final

import streamlit as st

from core.compare_records import Column
from core.decode.columns import spell as spell_column
from core.edits.spec import Rounding
from core.lab.models import local
from core.lab.quantize_records import Effect
from core.settings import Settings
from ui import state
from ui.context import Context
from ui.edit_words import model_words
from ui.figures.precision import rounding_words
from ui.figures.precision_effect import layers_chart, layers_table, next_chart, next_table
from ui.figures.words import in_bytes, percent
from ui.i18n import Catalog, plain
from ui.lab import experiment
from ui.lab_parts import PLAIN, section, table
from ui.marks import mark
from ui.precision_model import Reference, reference_words
from ui.precision_options import setting_here

COMPARE: Final = "pages/8_Compare.py"
_GO: Final = "precision_compare"

JOINER: Final = "\u2060"
"""Between stars and text: Markdown takes ``a**!b**`` for letters, since a mark of punctuation
stands behind the stars. It is not seen and has no width."""


def effect_part(t: Catalog, context: Context | None, reference: Reference) -> None:
    """What the chosen rounding does to this prompt, and the ways to look at it elsewhere."""
    if st.session_state.pop(_GO, False):
        st.switch_page(COMPARE)
    section(t, 2, "precision.effect")
    setting = setting_here()
    if reference.engine is None or context is None:
        st.caption(t("precision.needs_model"))
        return
    prompt = tuple(token.id for token in context.generation.prompt)
    model = local(reference.engine)

    def turns() -> Generator[Effect, None, None]:
        from core.lab.quantize import effect  # noqa: PLC0415 - imports torch

        return effect(model, setting, prompt)

    experiment(
        t,
        "precision_effect",
        (reference.key, setting, prompt),
        turns,
        lambda found: _show(t, context, reference, found, setting),
        cost=t("precision.effect_cost"),
        run=t("precision.effect_run", setting=rounding_words(setting, t)),
    )
    doors(t, reference, reference.with_(setting), "effect")


def _use(model: str) -> None:
    """The sidebar says which model is in use, and stands outside the page's fragment."""
    state.ask(model=model)
    st.session_state["whole_page"] = True


def doors(t: Catalog, reference: Reference, edited: str, name: str) -> None:
    """The ways to look at the edited model on other pages."""
    here = state.place().spec.model
    with st.container(horizontal=True, gap="small"):
        if here == edited:
            st.button(
                t("precision.back"),
                key=f"precision_back_{name}",
                icon=":material/undo:",
                on_click=_use,
                args=(reference.name,),
            )
        else:
            st.button(
                t("precision.everywhere"),
                key=f"precision_everywhere_{name}",
                icon=":material/visibility:",
                help=t("precision.everywhere_help", model=plain(model_words(t, edited))),
                on_click=_use,
                args=(edited,),
            )
        st.button(
            t("precision.compare"),
            key=f"precision_compare_{name}",
            icon=":material/compare:",
            help=t("precision.compare_help"),
            on_click=_compare,
            args=(reference.name, edited),
        )


def _compare(before: str, after: str) -> None:
    """Two columns of Compare: the same strategy, both models."""
    greedy = Settings(strategy="greedy")
    columns = tuple(spell_column(Column(greedy, model=name)) for name in (before, after))
    state.look(columns=columns, reference=0)
    st.session_state[_GO] = True


def _show(
    t: Catalog, context: Context, reference: Reference, found: Effect, setting: Rounding
) -> None:
    mark(t, "measured", t("precision.effect_how"), on=found.machine)
    words = reference_words(t, reference)
    if found.point is not None and found.perplexity is not None:
        st.markdown(
            t(
                "precision.effect_sentence",
                setting=rounding_words(setting, t),
                kl=f"{found.point.kl:.3g}",
                top1=percent(found.point.top1),
                n=f"{found.point.positions:,}",
                before=f"{found.perplexity:,.4g}",
                after=f"{found.point.perplexity:,.4g}",
                size=in_bytes(found.nbytes),
                codes=in_bytes(found.point.nbytes),
                reference=words,
            )
        )
    label = context.vocabulary.label
    if found.candidates:
        st.markdown(f"### {t('precision.next_title')}")
        figure = next_chart(found.candidates, label, t, words)
        st.plotly_chart(figure, key="precision_next", config=PLAIN, alt=t("precision.next_alt"))
        table(t, next_table(found.candidates, label, t), "precision_next")
    if found.before:
        _texts(t, context, found, words)
    if found.layers:
        st.markdown(f"### {t('precision.layers_title')}")
        st.caption(t("precision.layers_text"))
        figure = layers_chart(found.layers, t)
        alt = t("precision.layers_alt", n=len(found.layers))
        st.plotly_chart(figure, key="precision_layers", config=PLAIN, alt=alt)
        table(t, layers_table(found.layers, t), "precision_layers")


def _texts(t: Catalog, context: Context, found: Effect, words: str) -> None:
    """Both texts side by side; from the first token that differs on they are bold."""
    st.markdown(f"### {t('precision.texts_title')}")
    left, right = st.columns(2, gap="medium")
    same = _shared(found.before, found.after)
    # Until both are written, one is only ahead of the other.
    shorter = min(len(found.before), len(found.after)) + found.done
    for column, head, ids in (
        (left, words, found.before),
        (right, t("precision.texts_after"), found.after),
    ):
        with column, st.container(border=True):
            st.caption(head)
            text = context.vocabulary.text(ids)
            # A character of which the shared tokens hold only a part belongs to the rest.
            shared = _shared(context.vocabulary.text(ids[:same]), text)
            st.markdown(_marked(text, shared if same < shorter else len(text)))
    if found.done:
        key = "texts_same" if found.before == found.after else "texts_differ"
        st.caption(t(f"precision.{key}", n=len(found.before)))


def _shared(before: Sequence[object], after: Sequence[object]) -> int:
    """How many tokens, or characters, both begin with."""
    pairs = zip(before, after, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _marked(text: str, same: int) -> str:
    first, rest = (_line(part) for part in (text[:same], text[same:]))
    bold = f"**{JOINER}{rest.strip()}{JOINER}**" if rest.strip() else ""
    gap = " " if rest[:1].isspace() or first[-1:].isspace() else ""
    return f"{first.rstrip()}{gap}{bold}" or "–"


def _line(text: str) -> str:
    return plain(text).replace("\r", "").replace("\n", " ↵ ")
