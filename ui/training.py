"""The body of the Training page: a few steps on a copy, and a draft that a model checks."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import streamlit as st

from core.engine.protocol import Engine
from core.faults import Fault
from core.lab.models import local
from core.lab.training_bytes import needed_bytes
from core.lab.training_records import Ask, Training, ask_of, beginning
from core.lab.training_stored import COMMAND, Words, stored
from core.models.catalog import title_of
from ui import lab, state
from ui.context import Context
from ui.figures.words import in_bytes
from ui.i18n import Catalog, plain
from ui.lab import experiment
from ui.lab_parts import section, weights
from ui.marks import mark, restless
from ui.speculative import speculative_part
from ui.training_options import RATES, STEP_COUNTS, buttons, field, here, slider
from ui.training_show import show_training

STEPS: Final = "training_steps"
"""The experiment of the first part."""


def draw(t: Catalog, context: Context | None) -> None:
    """The page; without weights, what was recorded."""
    engine = weights(context)
    if engine is None and context is not None and context.recorded is None:
        st.info(t.fault(Fault("lab_needs_weights")))
    for part in (training_part, speculative_part):
        try:
            part(t, context, engine)
        except Fault as fault:
            st.info(t.fault(fault))


def training_part(t: Catalog, context: Context | None, engine: Engine | None) -> None:
    """A sentence is learned by a copy, step by step."""
    section(t, 1, "training.steps")
    if context is None or engine is None:
        recorded(t)
        return
    ask = _asked(t, engine)
    model, words = local(engine), Words.of(context.vocabulary)

    def turns() -> Generator[Training, None, None]:
        from core.lab.training_run import trained  # noqa: PLC0415 - imports torch

        return trained(model, ask)

    experiment(
        t,
        STEPS,
        (state.number(engine), ask),
        turns,
        lambda found: _measured(t, found, words),
        cost=_cost(t, engine, ask),
        run=t("training.steps_run"),
        before=lambda: recorded(t),
        holds=lambda found: found.prompt is not None,
    )


def _asked(t: Catalog, engine: Engine) -> Ask:
    """What the reader wants to be learned. Raises Fault for what is not allowed."""
    values = here()
    sentence = values["text"]
    asked = values["ask"] or beginning(sentence)
    field("text", sentence, label=t("training.sentence"), help=t("training.sentence_help"))
    left, right = st.columns(2, gap="medium")
    with left:
        field("ask", asked, label=t("training.prompt"), help=t("training.prompt_help"))
    with right:
        field("other", values["other"], label=t("training.other"), help=t("training.other_help"))
    one, two, three = st.columns([3, 3, 2], gap="medium")
    with one:
        slider("steps", STEP_COUNTS, label=t("training.steps"), help=t("training.steps_help"))
    with two:
        slider(
            "rate",
            RATES,
            label=t("training.rate"),
            help=t("training.rate_help"),
            say=lambda rate: f"{rate:g}".replace("e-0", "e-"),
        )
    with three:
        buttons(
            "opt",
            ("adamw", "sgd"),
            label=t("training.optimizer"),
            help=t("training.optimizer_help"),
            say=lambda name: t(f"training.opt_{name}"),
        )
    return ask_of(
        engine.vocabulary,
        sentence,
        asked,
        values["other"],
        values["steps"],
        values["rate"],
        values["opt"],
    )


def _cost(t: Catalog, engine: Engine, ask: Ask) -> str:
    """The bytes and the passes, before anything is done."""
    return t(
        "training.steps_cost",
        bytes=in_bytes(needed_bytes(engine.info, ask)),
        steps=ask.steps,
        tokens=len(ask.sentence),
    )


def _measured(t: Catalog, found: Training, words: Words) -> None:
    if not (found.done or lab.left(STEPS) is found):
        st.caption(doing(t, found))
    if found.prompt is not None:
        mark(t, "measured", t("training.steps_how"), on=found.machine)
        restless(t, (found.step_ms, found.inference_ms))
        show_training(t, found, words)


def doing(t: Catalog, found: Training) -> str:
    """What is being done now, and at which step it is."""
    step = min(len(found.steps) + 1, found.ask.steps)
    return t(f"training.phase_{found.phase}", step=step, steps=found.ask.steps)


def recorded(t: Catalog) -> None:
    """What was measured of the default model when the program was made."""
    known = stored()
    if known is None:
        return
    found = known.training
    sentence = plain(known.words.text(found.ask.sentence))
    note = t(
        "training.steps_recorded",
        model=plain(title_of(found.model)),
        text=sentence,
        command=COMMAND,
    )
    mark(t, "recorded", note, on=found.machine)
    show_training(t, found, known.words)
