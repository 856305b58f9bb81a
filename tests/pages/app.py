"""Opening the app without a browser."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from core.edits.spec import join
from core.faults import Fault
from core.models.catalog import resolve
from ui import lab
from ui.i18n import catalog
from ui.state import store

APP = Path(__file__).resolve().parents[2] / "app.py"
NUMBERS = ("metric", "plotly_chart", "arrow_data_frame", "bidi_component")
"""Elements that show numbers."""
KINDS = ("measured", "computed", "published", "recorded")
"""Where a result can come from."""


def open_app(page: str | None = None, *, ready: bool = True, **query: str) -> AppTest:
    """Open Home, or a page by its file name, at a link; with its model in memory if ``ready``."""
    if ready:
        name = query.get("model", "smollm2-135m")
        with contextlib.suppress(Fault):
            name = resolve(join(name, query.get("edit", ""))).name
        store().request(name)
        assert store().wait(name, timeout=120).status == "ready"
    at = AppTest.from_file(str(APP), default_timeout=120)
    for name, value in query.items():
        at.query_params[name] = value
    if page:
        at.switch_page(f"pages/{page}.py")
    return healthy(at.run())


def healthy(at: AppTest) -> AppTest:
    """The same, if nothing raised."""
    assert not at.exception, at.exception
    return at


def data_of(at: AppTest, component: str) -> dict:
    """What the component ``component`` was sent."""
    found = [b.proto for b in at.get("bidi_component")]
    named = [proto for proto in found if proto.component_name == f"tbt_{component}"]
    assert named, f"{component} is not on the page"
    return json.loads(named[0].json)


def words(at: AppTest) -> str:
    """All sentences of the page that Streamlit itself draws."""
    kinds = (at.caption, at.markdown, at.info, at.error, at.warning)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def send(at: AppTest, key: str, event: dict) -> AppTest:
    """What a click in the component mounted under ``key`` does."""
    from ui import session
    from ui.session import Place

    place: Place = at.session_state["place"]
    stop = at.session_state.get("stop", None)
    at.session_state["place"] = session.act(place, event, stop)
    return healthy(at.run())


def query_of(at: AppTest) -> dict[str, str]:
    """The address bar."""
    found = dict(at.query_params)
    return {name: v[0] if isinstance(v, list) else v for name, v in found.items()}


def ran(at: AppTest, name: str, seconds: int = 180) -> AppTest:
    """Press the button of an experiment, and return the page with its answer."""
    healthy(at.button(key=f"lab_run_{name}").click().run())
    return finished(at, name, seconds)


def finished(at: AppTest, name: str, seconds: int = 180) -> AppTest:
    """The page when an experiment that was asked for has ended."""
    job = lab.jobs().job(at.session_state[f"lab_wanted_{name}"])
    for _ in range(seconds):
        # A job that nobody looks at pauses.
        if job is None or not job.watch("test").running:
            assert not unmarked(healthy(at.run()))
            return at
        job.wait(1)
    raise AssertionError(f"{name} does not end")


def unmarked(at: AppTest) -> list[tuple[str, str]]:
    """(section, kind) of what shows numbers under a numbered heading, or in an experiment, before
    anything says where they come from."""
    # Marks are told by their first words, which are the same for every model and note.
    marks = tuple(f"**{catalog(lang)(f'lab.{kind}')}**" for lang in ("en", "zh") for kind in KINDS)
    section, marked, found = "", True, []
    for element in _in_order(at.main):
        if element.type in ("markdown", "caption"):
            said = str(element.value)
            if element.type == "markdown" and said.startswith("## "):
                section, marked = said, False
            elif element.type == "caption" and any(mark in said for mark in marks):
                marked = True
        elif "lab_box_" in str(getattr(element, "proto", "")) and hasattr(element, "children"):
            marked = False
        elif element.type in NUMBERS and not marked:
            found.append((section, element.type))
    return found


def _in_order(block: Any) -> Iterator[Any]:
    for child in block.children.values():
        yield child
        if hasattr(child, "children"):
            yield from _in_order(child)


def chart(at: AppTest, key: str) -> dict:
    """The Plotly figure drawn under ``key``."""
    found = [c.proto for c in at.get("plotly_chart") if f"-{key}" in c.proto.id]
    assert found, key
    return json.loads(found[0].spec)


def metrics(at: AppTest) -> dict[str, str]:
    """The large numbers of the page, by their labels."""
    return {metric.label: metric.value for metric in at.metric}
