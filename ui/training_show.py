"""What a training found, from what is read first to what is looked up."""

from __future__ import annotations

import streamlit as st

from core.lab.training_records import Frozen, Kept, Prediction, Training
from core.lab.training_stored import Words
from ui.figures import training as figures
from ui.figures import training_tables as tables
from ui.figures.words import in_bytes, percent
from ui.i18n import Catalog, plain
from ui.lab_parts import PLAIN, dataframe, table
from ui.marks import mark


def show_training(t: Catalog, found: Training, words: Words) -> None:
    """Predictions, losses, bytes and times, what else changed, how it ended."""
    _headline(t, found)
    left, right = st.columns(2, gap="medium")
    for place, name, prediction in (
        (left, "prompt", found.prompt),
        (right, "other", found.other),
    ):
        if prediction is not None:
            with place:
                _prediction(t, name, prediction, words)
    if found.steps:
        _losses(t, found, words)
    _bytes_and_times(t, found)
    if found.forgotten:
        _changed(t, found)
    if found.frozen is not None:
        _frozen(t, found.frozen)


def quoted(text: str) -> str:
    """What was written, on one line, as Markdown."""
    return plain(" ".join(text.replace("\n", " ↵ ").split()))


def _headline(t: Catalog, found: Training) -> None:
    one, two, three, four = st.columns(4)
    losses = found.losses
    if losses:
        one.metric(
            t("training.metric_loss"),
            f"{losses[0]:.2f} → {losses[-1]:.2f}",
            help=t("training.metric_loss_help"),
        )
    step, inference, kept = found.step_ms, found.inference_ms, found.kept
    if step is not None and inference is not None:
        two.metric(
            t("training.metric_time"),
            f"× {step.median / inference.median:.1f}",
            help=t("training.metric_time_help"),
        )
    if kept is not None and kept.states is not None:
        three.metric(
            t("training.metric_bytes"),
            f"× {kept.training / kept.inference:.1f}",
            help=t("training.metric_bytes_help"),
        )
    if found.frozen is not None:
        key = "untouched" if found.frozen.untouched else "touched"
        four.metric(
            t("training.metric_served"), t(f"training.{key}"), help=t("training.metric_served_help")
        )


def _prediction(t: Catalog, name: str, found: Prediction, words: Words) -> None:
    prompt = quoted(words.text(found.prompt))
    st.markdown(f"### {t(f'training.{name}_title', text=prompt)}")
    figure = figures.predictions_chart(found, words, t)
    st.plotly_chart(
        figure, key=f"training_{name}_chart", config=PLAIN, alt=t("training.prediction_alt")
    )
    lines = [t("training.wrote_before", text=quoted(words.text(found.before.written)))]
    if found.after is not None:
        lines.append(t("training.wrote_after", text=quoted(words.text(found.after.written))))
    st.markdown("  \n".join(lines))
    if found.kl is not None:
        st.caption(t("training.prediction_kl", kl=f"{found.kl:.3g}"))
    table(t, tables.predictions_table(found, words, t), f"training_{name}")


def _losses(t: Catalog, found: Training, words: Words) -> None:
    st.markdown(f"### {t('training.loss_title')}")
    token = found.ask.sentence[1 + figures.learned(found)]
    column = found.token_p[:, figures.learned(found)]
    st.caption(
        t(
            "training.loss_text",
            token=plain(words.label(token)),
            first=percent(column[0]),
            last=percent(column[-1]),
        )
    )
    figure = figures.loss_chart(found, words, t)
    st.plotly_chart(figure, key="training_loss_chart", config=PLAIN, alt=t("training.loss_alt"))
    table(t, tables.loss_table(found, words, t), "training_loss")


def _bytes_and_times(t: Catalog, found: Training) -> None:
    kept = found.kept
    left, right = st.columns(2, gap="medium")
    with left:
        if kept is not None:
            _memory(t, kept)
    with right:
        if found.step_ms is not None:
            st.markdown(f"### {t('training.time_title')}")
            st.caption(t("training.time_text", repeats=found.step_ms.repeats))
            figure = figures.time_chart(found, t)
            st.plotly_chart(
                figure, key="training_time_chart", config=PLAIN, alt=t("training.time_alt")
            )
            table(t, tables.time_table(found, t), "training_time")


def _memory(t: Catalog, kept: Kept) -> None:
    st.markdown(f"### {t('training.memory_title')}")
    st.caption(
        t(
            "training.memory_text",
            cache=in_bytes(kept.cache),
            activations=in_bytes(kept.activations),
            ratio=f"{kept.activations / max(1, kept.cache):,.0f}",
        )
    )
    figure = figures.memory_chart(kept, t)
    st.plotly_chart(figure, key="training_memory_chart", config=PLAIN, alt=t("training.memory_alt"))
    with st.expander(t("lab.as_table"), icon=":material/table:", key="training_memory_table"):
        dataframe(tables.memory_table(kept, t), "training_memory")
        st.caption(t("training.places_text"))
        dataframe(tables.places_table(kept, t), "training_places")


def _changed(t: Catalog, found: Training) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(f"### {t('training.forgotten_title')}")
        st.caption(t("training.forgotten_text"))
        dataframe(tables.forgotten_table(found, t), "training_forgotten")
    with right:
        if found.moved:
            st.markdown(f"### {t('training.moved_title')}")
            mark(t, "computed", t("training.moved_text"))
            figure = figures.moved_chart(found, t)
            st.plotly_chart(
                figure, key="training_moved_chart", config=PLAIN, alt=t("training.moved_alt")
            )
            with st.expander(t("lab.as_table"), icon=":material/table:", key="training_moved_t"):
                dataframe(tables.moved_table(found, t), "training_moved")
                st.caption(t("training.tensors_text"))
                dataframe(tables.tensors_table(found, t), "training_tensors")


def _frozen(t: Catalog, found: Frozen) -> None:
    st.markdown(f"### {t('training.frozen_title')}")
    mark(t, "computed", t("training.frozen_how"))
    key = "frozen_text" if found.untouched and found.gone else "frozen_wrong"
    st.markdown(
        t(
            f"training.{key}",
            trained=found.trained,
            before=found.sum_before[:16],
            after=found.sum_after[:16],
        )
    )
