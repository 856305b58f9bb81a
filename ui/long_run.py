"""A link to a run of many steps: made in turns, so that “Stop” is heard between two of them.

(A click in a fragment never stops a script that runs.)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import streamlit as st

from core.decode.generate import Stopped
from core.engine.protocol import Engine
from core.faults import Fault
from core.trace import Generation, StepTrace
from ui import state
from ui.i18n import Catalog
from ui.session import Place

MANY: Final = 100
"""Steps from which on a run is made in turns."""
TURN: Final = 0.5
"""Seconds of one."""
PAUSE: Final = 0.05
_REACHED: Final = "long_run"


class Unfinished(Exception):  # noqa: N818  (more is to come, nothing is wrong)
    """A turn is over, with ``done`` steps made."""

    def __init__(self, done: int) -> None:
        super().__init__(done)
        self.done = done


def generation(
    engine: Engine, here: Place, tell: Callable[[StepTrace], None] = lambda _: None
) -> Generation:
    """The run so far. Raises Fault, and Unfinished when a turn is over.

    Steps made before come from the memory; a turn makes at least one more.
    """
    wanted, key = here.view.made, (state.number(engine), here.spec)
    held = st.session_state.get(_REACHED)
    reached = held[1] if held is not None and held[0] == key else 0
    deadline = time.monotonic() + TURN

    def note(step: StepTrace) -> None:
        tell(step)
        done = step.index + 1
        if MANY <= wanted > done > reached and time.monotonic() > deadline:
            raise Stopped

    run = state.generation(engine, here.spec, wanted, on_step=note)
    if run.stop == "user":
        st.session_state[_REACHED] = (key, len(run.steps))
        raise Unfinished(len(run.steps))
    st.session_state.pop(_REACHED, None)
    return run


def watch(t: Catalog, done: int) -> None:
    """How far the run is, and a button that stops it; the page comes when it is made."""
    first = True

    @st.fragment(run_every=PAUSE)
    def turns() -> None:
        nonlocal first, done
        if not first:
            done = _turn()
        first = False
        steps = state.place().view.made
        st.progress(min(done / steps, 1.0), t("frame.computing", step=done, steps=steps))

    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container():
            turns()
        st.button(
            t("frame.computing_stop"),
            key="long_run_stop",
            icon=":material/stop:",
            help=t("frame.computing_stop_help"),
            on_click=stop,
        )


def _turn() -> int:
    """Steps made after one more turn. What has ended or failed is told by the whole page."""
    here = state.place()
    try:
        engine = state.engine_for(here.spec)
        if engine is not None:
            generation(engine, here)
    except Unfinished as unfinished:
        return unfinished.done
    except Fault:
        pass
    st.rerun(scope="app")


def stop() -> None:
    """Be content with the steps that are made."""
    held = st.session_state.get(_REACHED)
    if held is not None:
        done, step = held[1], state.place().view.step
        state.look(made=done, step=min(step, done - 1))
