"""What the parts of the Many machines page share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import streamlit as st

from core.lab.machine import Machine
from core.lab.parallel.recorded import recorded
from core.lab.timing import Spread
from ui import lab_parts
from ui.context import Context
from ui.i18n import Catalog
from ui.lab import left
from ui.marks import mark, restless

T = TypeVar("T")


def chart(t: Catalog, figure: Any, key: str) -> None:
    """A chart with its description for those who do not see it."""
    st.plotly_chart(
        figure, key=f"parallel_{key}", config=lab_parts.PLAIN, alt=t(f"parallel.alt_{key}")
    )


def table(t: Catalog, frame: Any, key: str, *, folded: bool = True) -> None:
    """Under a chart folded, otherwise as it is."""
    name = f"parallel_{key}_rows"
    if folded:
        lab_parts.table(t, frame, name)
    else:
        lab_parts.dataframe(frame, name)


def ids_of(context: Context) -> tuple[int, ...]:
    """The prompt as the model reads it."""
    return tuple(token.id for token in context.generation.prompt)


def origin(
    t: Catalog,
    how: str,
    on: Machine | None,
    times: Iterable[Spread | None],
    *,
    stored: bool,
) -> None:
    """Whether the numbers below were measured here and now, or before, and whether the ``times``
    among them were disturbed."""
    mark(t, "recorded" if stored else "measured", how, on=on)
    restless(t, times)


def earlier(
    context: Context, key: str, kind: type[T], show: Callable[[Context, T, bool], None]
) -> Callable[[], None]:
    """Draws what was recorded of this model for the question ``key``, if anything was."""

    def draw() -> None:
        found = recorded(f"{context.spec.model} {key}", kind)
        if found is not None:
            show(context, found, True)

    return draw


def offer(context: Context, before: Callable[[], None], run: Callable[[], None]) -> None:
    """The experiment, or what was recorded of it while the model is on its way."""
    if context.recorded is None:
        run()
        return
    st.info(context.t("fault.model_loading"))
    before()


def phase_text(t: Catalog, name: str, record: Any) -> None:
    """What the processes of the experiment ``name`` are busy with, unless they were stopped."""
    if not (record.done or left(name) is record):
        st.caption(t(f"parallel.phase_{record.phase}"))
