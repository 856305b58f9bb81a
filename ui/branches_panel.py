"""The branches of the run on the Generate page: a tree, a list, and a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import streamlit as st

from core.compare_records import Column
from core.decode.columns import spell as spell_column
from core.engine.memory import ByteLRU
from core.faults import Fault, NotReady
from core.trace import Generation
from ui import state
from ui.branches import Branch, fitting, keep, read
from ui.branches_file import opened, written
from ui.components.branches import branches as draw
from ui.context import Context
from ui.figures.branches import Path, branches_data, branches_table, tokens_of
from ui.view import COLUMN_CAP
from ui.widgets import NO_VALUE

WALKED_BYTES: Final = 16_000_000
COMPARE: Final = "pages/8_Compare.py"
BEAMS: Final = "pages/7_Beam_search.py"
_GO: Final = "branches_compare"


@st.cache_resource(show_spinner=False)
def _walked() -> ByteLRU[Any, Path]:
    return ByteLRU(WALKED_BYTES)


def branches_panel(context: Context) -> None:
    """Draw the section. The paths that nobody has walked yet are walked, with their progress."""
    if st.session_state.pop(_GO, False):
        st.switch_page(COMPARE)
    t = context.t
    st.markdown(f"## {t('generate.branches')}", help=t("generate.branches_help"))
    now = Branch.of(context.spec.settings, max(1, len(context.generation.steps)))
    kept = read(state.place().view.branches)
    st.caption(t("generate.branches_text" if kept else "generate.branches_none"))
    paths = _paths(context, kept, now)
    recipes = [now if branch.path == now.path else branch for branch in kept]
    if now not in recipes:
        recipes.insert(0, now)
    label = context.vocabulary.label
    prompt = "".join(label(token.id) for token in context.generation.prompt)
    step = context.view.index if context.view else 0
    draw(branches_data(paths, prompt, step, t), _listener(context, "branches"), key="branches")
    lines = state.place().view.branches
    left_out = len(lines) - len(fitting(lines))
    if left_out:
        st.caption(t("generate.branches_link", n=left_out))
    with st.expander(t("generate.branches_file"), icon=":material/save:"):
        st.dataframe(branches_table(paths, t), hide_index=True, placeholder=NO_VALUE)
        _file(context, written(context.spec, paths, recipes))
    st.page_link(COMPARE, label=t("compare.from_generate"), icon=":material/arrow_forward:")
    st.page_link(BEAMS, label=t("beam_search.from_generate"), icon=":material/arrow_forward:")


def _listener(context: Context, key: str) -> Any:
    carry_out = context.act(key)

    def heard() -> None:
        event = (st.session_state.get(key) or {}).get("action")
        carry_out()
        if isinstance(event, Mapping) and event.get("do") == "compare":
            st.session_state[_GO] = bool(state.place().view.columns)

    return heard


def _paths(context: Context, kept: tuple[Branch, ...], now: Branch) -> list[Path]:
    """The run in view, if it is not kept, and each branch."""
    slot, out = st.empty(), []
    if all(branch.path != now.path for branch in kept):
        out.append(_of_run(context, context.generation, now, None))
    for index, branch in enumerate(kept):
        if branch.path == now.path:
            out.append(_of_run(context, context.generation, branch, index))
            continue
        out.append(_walk(context, branch, index, len(kept), slot))
    slot.empty()
    return out


def _walk(context: Context, branch: Branch, index: int, count: int, slot: Any) -> Path:
    settings = branch.settings(context.spec.settings)
    spec = replace(context.spec, settings=settings)
    made = min(branch.made, settings.max_new)
    key = (state.number(context.engine), spec, made)
    found = _walked().get(key)
    if found is None:
        text = context.t("generate.branches_walking", n=index + 1, count=count)

        def tell(step: Any) -> None:
            slot.progress((index + (step.index + 1) / made) / count, text=text)

        try:
            run = state.generation(context.engine, spec, made, on_step=tell)
        except NotReady:
            return _failed(branch, index, context.t("generate.branch_not_ready"))
        except Fault as fault:
            return _failed(branch, index, context.t.fault(fault))
        found = _of_run(context, run, branch, index)
        _walked().put(key, found, 500 + 300 * len(found.tokens))
    return replace(found, index=index, name=branch.name, current=False)


def _failed(branch: Branch, index: int, sentence: str) -> Path:
    return Path(index, branch.name, current=False, fault=sentence, comparable=False)


def _of_run(context: Context, run: Generation, branch: Branch, index: int | None) -> Path:
    vocabulary = context.vocabulary
    ids = [step.choice.id for step in run.steps]
    column = spell_column(Column(run.spec.settings))
    return Path(
        index,
        branch.name,
        current=run is context.generation,
        tokens=tokens_of(run, vocabulary.label),
        text=vocabulary.text(ids, skip_special=True),
        logprob=run.logprob,
        stop=run.stop,
        rolls=branch.rolls,
        comparable=len(column) <= COLUMN_CAP,
    )


def _file(context: Context, blob: bytes) -> None:
    t = context.t
    st.download_button(
        t("generate.branches_save"),
        blob,
        "branches.json",
        "application/json",
        on_click="ignore",
        icon=":material/download:",
    )

    def chosen() -> None:
        file = st.session_state.get("branches_upload")
        if file is None:
            return
        try:
            lines = state.place().view.branches
            for branch in opened(file.getvalue(), state.place().spec):
                lines = keep(lines, branch)
            state.look(branches=lines)
            st.session_state.pop("branches_fault", None)
        except Fault as fault:
            st.session_state["branches_fault"] = fault

    st.file_uploader(
        t("generate.branches_load"),
        type="json",
        key="branches_upload",
        on_change=chosen,
        max_upload_size=5,
    )
    fault = st.session_state.get("branches_fault")
    if fault is not None:
        st.error(t.fault(fault))
