"""The second part of the Training page: a draft proposes, the model checks."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any, Final

import streamlit as st

from core.edits.spec import MARK, split
from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.models import local
from core.lab.speculative_records import Speculation, draft_name
from core.lab.training_stored import COMMAND, Words, stored
from core.models.catalog import CATALOGUE, resolve, title_of
from core.settings import Settings
from ui import state
from ui.context import Context
from ui.edit_words import edit_words
from ui.i18n import Catalog, plain
from ui.lab import experiment
from ui.lab_parts import section
from ui.marks import mark, restless
from ui.speculative_show import show_speculation
from ui.training_options import MOST_GAMMA, NEW, RULES, buttons, chosen, here, slider
from ui.widgets import show

DRAFTS: Final = (
    "#int8",
    "#int4:64",
    "#neurons:0.3",
    "#bits:4:group:64",
    "#layers:11.12.13.21.22.23",
)
"""Copies of the model that are offered as drafts."""
BUSY: Final = ("fetching", "loading")
PATIENCE: Final = 0.4
"""Seconds between two looks at a draft that is being loaded."""


def speculative_part(t: Catalog, context: Context | None, engine: Engine | None) -> None:
    """The reader's prompt, continued with a draft and without one."""
    section(t, 2, "training.draft")
    if context is None or engine is None:
        recorded(t)
        return
    values = here()
    name = _draft(t, engine, values["draft"])
    left, middle, right = st.columns([3, 2, 3], gap="medium")
    with left:
        slider(
            "gamma",
            range(1, MOST_GAMMA + 1),
            label=t("training.gamma"),
            help=t("training.gamma_help"),
        )
    with middle:
        buttons("new", NEW, label=t("training.new"), help=t("training.new_help"))
    with right:
        buttons(
            "rule",
            RULES,
            label=t("training.rule"),
            help=t("training.rule_help"),
            say=lambda rule: t(f"training.rule_{rule}"),
        )
    _run(t, context, engine, name, values)


def _draft(t: Catalog, engine: Engine, value: str) -> str:
    """The draft's name. Raises Fault for what is no model, or one of another tokenizer."""
    offered = [*DRAFTS, *([] if value in DRAFTS else [value])]
    key = "training_draft"
    st.selectbox(
        t("training.draft"),
        offered,
        key=show(key, value),
        format_func=lambda draft: _words(t, draft),
        help=t("training.draft_help"),
        accept_new_options=True,
        on_change=chosen("draft", key),
    )
    name = draft_name(state.place().spec.model, _typed(value))
    base, own = split(name)[0], split(state.place().spec.model)[0]
    if base != own and {base, own} <= CATALOGUE.keys():
        # The packaged models' tokenizers differ, which need not be found out by loading one.
        raise Fault("speculative_tokenizers", model=own, draft=name)
    return resolve(name, local=not state.IN_CLASS).name


def _typed(value: str) -> str:
    """An edit may be typed without its mark: ``neurons:0.2``."""
    named = MARK in value or value in CATALOGUE or "/" in value
    return value if named else MARK + value


def _words(t: Catalog, draft: str) -> str:
    """A draft in the reader's words; what is no edit stays as it was typed."""
    typed = _typed(draft)
    if not typed.startswith(MARK):
        return draft
    try:
        said = edit_words(t, typed.removeprefix(MARK))
    except Fault:
        return draft
    return t("training.draft_copy", edit=said) if said else draft


def _settings(context: Context, values: dict[str, Any]) -> Settings:
    new = values["new"]
    if values["rule"] == "greedy":
        return Settings(strategy="greedy", max_new=new)
    return replace(context.spec.settings, max_new=new, forced=(), rolls=())


def _run(t: Catalog, context: Context, engine: Engine, name: str, values: dict[str, Any]) -> None:
    settings, gamma = _settings(context, values), values["gamma"]
    prompt = tuple(token.id for token in context.generation.prompt)
    model, models, words = local(engine), state.store(), Words.of(context.vocabulary)
    waiting = Speculation.begun(engine.info, name, prompt, gamma, settings)

    def turns() -> Generator[Speculation, None, None]:
        from core.lab.speculative_run import speculated  # noqa: PLC0415 - imports torch

        models.request(name, retry=True)
        while models.state(name).status in BUSY:
            yield waiting
            models.wait(name, PATIENCE)
        with models.using(name) as draft:
            yield from speculated(model, local(draft), prompt, settings, gamma)

    experiment(
        t,
        "training_draft",
        (state.number(engine), name, prompt, settings, gamma),
        turns,
        lambda found: _measured(t, found, words),
        cost=t("training.draft_cost", new=values["new"]),
        run=t("training.draft_run"),
        before=lambda: recorded(t),
    )


def _measured(t: Catalog, found: Speculation, words: Words) -> None:
    if not found.rounds:
        st.caption(t("training.draft_waiting"))
        return
    mark(t, "measured", t("training.draft_how"), on=found.machine)
    restless(t, (found.plain_ms, found.draft_ms, found.check_ms))
    show_speculation(t, found, words)


def recorded(t: Catalog) -> None:
    """What was measured of the default model when the program was made."""
    known = stored()
    if known is None:
        return
    found = known.speculation
    note = t(
        "training.draft_recorded",
        model=plain(title_of(found.model)),
        draft=edit_words(t, split(found.draft)[1]),
        prompt=plain(known.words.text(found.prompt)),
        command=COMMAND,
    )
    mark(t, "recorded", note, on=found.machine)
    show_speculation(t, found, known.words)
