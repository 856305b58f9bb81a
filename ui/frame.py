"""What every page shares: menu, sidebar, the text with its player, the lesson, the error border.

A page names itself and gives its body; the body runs in one fragment, so that a click in it
redraws the body alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import streamlit as st

from core.engine.protocol import Engine
from core.faults import Fault, NotReady
from core.models.catalog import title_of
from core.recorded import RecordedEngine
from core.trace import Generation, StepTrace
from ui import lab, link, long_run, state
from ui.components.page_tools import page_tools
from ui.components.strip import strip
from ui.context import Context
from ui.controls import prompt_here, sidebar
from ui.i18n import Catalog, catalog, plain
from ui.model_card import waiting
from ui.offline import no_lookups
from ui.session import Place
from ui.view import TEXT_CAP

no_lookups()
ROOT: Final = Path(__file__).resolve().parent.parent
PATIENCE: Final = 0.5
"""Seconds after which a computation shows its progress."""
LESSONS: Final = ROOT / "lessons"
LOOKS: Final = ROOT / "ui" / "components" / "css" / "page.css"
LOGOS: Final = {"en": ROOT / "ui" / "logo.svg", "zh": ROOT / "ui" / "logo_zh.svg"}
SIDEBAR: Final = 280
"""Pixels; every pixel less lets the page fit a smaller projector."""
_log = logging.getLogger(__name__)


Body = Callable[[Context], None]
Meanwhile = Callable[[Catalog], None]


def page(name: str, body: Body, *, meanwhile: Meanwhile | None = None) -> None:
    """Draw the page ``name``: an area of the catalogue, and a lesson.

    ``meanwhile`` draws what needs no run, where there is none (the model is loading, or the
    prompt cannot be read).
    """
    state.read_link()
    state.store().gone.collect()
    t = catalog(state.place().view.lang)
    st.set_page_config(
        page_title=f"{t(f'{name}.title')} · {t('frame.product')}",
        page_icon="🔡",
        layout="wide",
        initial_sidebar_state=SIDEBAR,
    )
    st.html(LOOKS)
    st.session_state.pop("whole_page", None)
    st.logo(str(LOGOS[t.lang]), size="large")
    with st.sidebar:
        sidebar(t)
    _story(name, body, meanwhile)


@st.fragment
def _story(name: str, body: Body, meanwhile: Meanwhile | None) -> None:
    if st.session_state.pop("whole_page", False):
        st.rerun(scope="app")
    t = catalog(state.place().view.lang)
    _heading(t, name)
    try:
        _told(t, body, meanwhile)
    except NotReady:
        waiting(t, state.place().spec.model)
    except Fault as fault:
        _sentence(t, fault)
    except Exception:
        _log.exception("page %s", name)
        st.error(t("frame.broken"))
    lab.leave_what_is_not_drawn()
    _lesson(t, name)
    state.write_link()


def _told(t: Catalog, body: Body, meanwhile: Meanwhile | None) -> None:
    try:
        context = _context(t)
    except long_run.Unfinished as unfinished:
        long_run.watch(t, unfinished.done)
        return
    except Fault as fault:
        if meanwhile is None:
            raise
        if isinstance(fault, NotReady):
            waiting(t, state.place().spec.model)
        else:
            _sentence(t, fault)
        meanwhile(t)
        return
    strip(context, key="strip")
    if context.recorded:
        st.caption(context.recorded)
    body(context)


def _sentence(t: Catalog, fault: Fault) -> None:
    st.error(t.fault(fault))
    if state.place().spec.settings.forced:
        st.button(t("frame.drop_forced"), on_click=state.ask, kwargs={"forced": ()})


def _heading(t: Catalog, name: str) -> None:
    here = state.place()
    with st.container(gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", key="heading"):
            st.markdown(f"# {t(f'{name}.title')}")
            prompt_here(t)
            page_tools(t, link.encode(here.spec, here.view))
        st.caption(t(f"{name}.intro"))
    if link.too_long(here.spec, here.view):
        st.caption(t("frame.link_capped", cap=TEXT_CAP))
    notes = st.session_state.get("notes")
    if notes:
        st.info(t("frame.link_notes", names=", ".join(notes)))


def _context(t: Catalog) -> Context:
    here = state.place()
    engine = state.engine_for(here.spec)
    if engine is None:
        raise NotReady("model_loading")
    run = _run(t, engine, here)
    st.session_state["stop"] = run.stop
    if run.stop is None and st.session_state.get("paused"):
        run = replace(run, stop="user")
    made = max(len(run.steps), 1)
    if made < here.view.made:
        state.look(made=made, step=min(here.view.step, made - 1))
    step = state.place().view.step
    view = state.in_full(run.steps[step], here.spec.settings, engine) if run.steps else None
    return Context(t, here.spec, engine, run, view, _where_from(t, engine))


def _run(t: Catalog, engine: Engine, here: Place) -> Generation:
    """The run so far; what takes long (a link to many steps) shows how far it is."""
    slot, began = st.empty(), time.monotonic()

    def tell(step: StepTrace) -> None:
        if time.monotonic() - began > PATIENCE:
            done = step.index + 1
            text = t("frame.computing", step=done, steps=here.view.made)
            slot.progress(done / here.view.made, text=text)

    try:
        return long_run.generation(engine, here, tell)
    finally:
        slot.empty()


def _where_from(t: Catalog, engine: Engine) -> str | None:
    if not isinstance(engine, RecordedEngine):
        return None
    name = engine.info.name
    absent = state.store().state(name).status == "absent"
    key = "frame.recorded_absent" if absent else "frame.recorded"
    return t(key, model=plain(title_of(name)), date=engine.about["date"])


def _lesson(t: Catalog, name: str) -> None:
    path = LESSONS / t.lang / f"{name}.md"
    if path.is_file():
        with st.expander(t("frame.lesson"), icon=":material/school:"):
            st.markdown(path.read_text(encoding="utf-8"))
