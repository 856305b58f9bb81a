"""What the parts of the Pruning page share: the original, an experiment's result, the buttons."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from core.compare_records import Column
from core.decode.columns import spell as spell_column
from core.edits.spec import ModelEdit, join, spell, split
from core.engine.store import BUSY
from core.faults import Fault
from core.lab.models import local
from core.lab.prune_records import Effect
from core.lab.prune_stored import Stored, command, stored
from core.models.catalog import DEFAULT, title_of
from core.settings import RunSpec, Settings
from ui import state
from ui.edit_words import edit_words
from ui.figures.pruning_words import Told, effect_table, told
from ui.i18n import Catalog, plain
from ui.lab import experiment
from ui.lab_parts import table
from ui.marks import mark, restless
from ui.pruning_options import edit_in_use

if TYPE_CHECKING:
    from core.engine.local import LocalEngine

COMPARE: Final = "pages/8_Compare.py"
_GO: Final = "pruning_compare"


@dataclass(frozen=True)
class Bench:
    """What the experiments of this page are done to: the original of the model in use."""

    t: Catalog
    name: str
    engine: LocalEngine | None
    """``None`` while it loads, and for models without weights."""
    waiting: bool
    ids: tuple[int, ...]
    """The prompt; empty where it cannot be read."""

    @property
    def key(self) -> int:
        return state.number(self.engine) if self.engine is not None else -1

    @property
    def recorded(self) -> tuple[str, Stored] | None:
        """(whose, the results that came with the program): this model's, or the default's."""
        for name in (self.name, DEFAULT):
            found = stored(name)
            if found is not None:
                return name, found
        return None


def bench_of(t: Catalog) -> Bench:
    """The original of the model in use, as far as it is there."""
    spec = state.place().spec
    name = split(spec.model)[0]
    engine, waiting = None, False
    ids: tuple[int, ...] = ()
    try:
        found = state.engine_for(RunSpec(model=name))
        waiting = state.store().state(name).status in BUSY
        engine = local(found) if found is not None else None
    except Fault:
        pass
    if engine is not None:
        try:
            ids = engine.vocabulary.read(spec.prompt, chat=spec.chat, literal=spec.literal).ids
        except Fault:
            ids = ()
    return Bench(t, name, engine, waiting, ids)


def coming(bench: Bench) -> None:
    """The original is on its way; the page goes on by itself when it is there."""

    @st.fragment(run_every=1.0)
    def watch() -> None:
        if state.store().state(bench.name).status not in BUSY:
            st.rerun(scope="app")

    st.info(bench.t("pruning.coming", model=plain(title_of(bench.name))))
    watch()


def recorded_mark(bench: Bench, machine: Any, note: str = "") -> None:
    """Whose recorded result stands below, when and where it was taken, and how to repeat it."""
    found = bench.recorded
    if found is None:
        return
    whose = bench.t(
        "pruning.recorded_of", model=plain(title_of(found[0])), command=command(found[0])
    )
    mark(bench.t, "recorded", f"{whose} · {note}" if note else whose, on=machine)


# ---------------------------------------------------------------- one edit in full


def effect_of(bench: Bench, name: str, edit: ModelEdit, cost: str) -> None:
    """Do an edit to a private copy and show what becomes of it; ``name`` is the part's."""
    t, engine = bench.t, bench.engine
    if engine is None:
        return
    words = edit_words(t, edit)
    if not edit:
        st.caption(t("pruning.nothing"))
        return
    ids = bench.ids[-(engine.info.context // 2) :] or (0,)

    def turns() -> Generator[Effect, None, None]:
        from core.lab.prune import effect  # noqa: PLC0415 - imports torch

        return effect(engine, edit, ids)

    experiment(
        t,
        f"prune_{name}",
        (bench.key, spell(edit), ids),
        turns,
        lambda found: _show(bench, found, name),
        cost=t("pruning.will", edit=words, cost=cost),
        run=t("pruning.run"),
        holds=lambda found: found.judged is not None,
    )
    _buttons(bench, name, edit)


def _show(bench: Bench, found: Effect, name: str) -> None:
    t, engine = bench.t, bench.engine
    assert engine is not None
    if found.judged is None:
        return
    mark(t, "measured", t("pruning.effect_how", n=found.judged.positions), on=found.machine)
    if found.times is not None:
        restless(t, (found.times.original, found.times.edited))
    said = told(found, t)
    _metrics(t, found, said)
    st.caption(t("pruning.size_how"))
    if not found.before:
        return
    text = engine.vocabulary.text
    for column, key, ids in zip(
        st.columns(2, gap="medium"), ("before", "after"), (found.before, found.after), strict=True
    ):
        with column, st.container(border=True, gap="xsmall"):
            st.caption(t(f"pruning.text_{key}"))
            st.markdown(plain(text(ids, skip_special=True).strip() or "—"))
    table(t, effect_table(found, t), f"prune_{name}_numbers")


def _metrics(t: Catalog, found: Effect, said: Told) -> None:
    one, two, three, four = st.columns(4)
    one.metric(
        t("pruning.perplexity"), said.perplexity, said.perplexity_change,
        delta_color="off", delta_arrow="off", help=t("pruning.perplexity_help"),
    )  # fmt: skip
    two.metric(
        t("pruning.kl"), said.kl, t("pruning.top1", share=said.top1),
        delta_color="off", delta_arrow="off", help=t("pruning.kl_help"),
    )  # fmt: skip
    three.metric(
        t("pruning.memory"), said.memory, said.memory_change,
        delta_color="off", delta_arrow="off", help=t("pruning.memory_help"),
    )  # fmt: skip
    if found.times is not None:
        four.metric(
            t("pruning.step"), said.ratio, said.step,
            delta_color="off", delta_arrow="off",
            help=t("pruning.step_help", n=found.times.original.repeats),
        )  # fmt: skip
    elif found.edit and found.done:
        four.metric(
            t("pruning.step"), t("pruning.step_unchanged"), t("pruning.step_same"),
            delta_color="off", delta_arrow="off", help=t("pruning.step_same_help"),
        )  # fmt: skip


def _buttons(bench: Bench, name: str, edit: ModelEdit) -> None:
    """Take the edited model to every other page, or beside the original on Compare."""
    t = bench.t
    if st.session_state.pop(_GO, False):
        st.switch_page(COMPARE)
    with st.container(horizontal=True, gap="small"):
        here = edit == edit_in_use()
        st.button(
            t("pruning.use"),
            key=f"prune_{name}_use",
            icon=":material/visibility:",
            disabled=here,
            help=t("pruning.used" if here else "pruning.use_help"),
            on_click=_use,
            args=(bench.name, edit),
        )
        st.button(
            t("pruning.compare"),
            key=f"prune_{name}_compare",
            icon=":material/compare:",
            help=t("pruning.compare_help"),
            on_click=_compare,
            args=(bench.name, edit),
        )


def _use(name: str, edit: ModelEdit) -> None:
    try:
        state.ask(model=join(name, edit))
        st.session_state["whole_page"] = True
    except Fault as fault:
        st.session_state["refused"] = fault


def _compare(name: str, edit: ModelEdit) -> None:
    greedy = Settings(strategy="greedy")
    columns = [spell_column(Column(greedy, model)) for model in (name, join(name, edit))]
    state.look(columns=tuple(columns), samples=1, reference=0, sample=0)
    st.session_state[_GO] = True
