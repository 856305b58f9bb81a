"""An experiment on a page: asked for, watched, stopped, shown; and the words of an edit."""

import gc
import time
import weakref

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.edits.spec import STORAGES
from core.faults import Fault
from core.lab.machine import machine
from tests.pages.app import data_of, open_app, query_of, words
from ui import lab
from ui.edit_words import edit_words, model_words
from ui.i18n import bound, catalog
from ui.lab_parts import number_columns
from ui.marks import machine_words
from ui.state import store


def script():
    import threading
    import time
    from dataclasses import dataclass

    import streamlit as st

    from core.faults import Fault
    from ui.i18n import catalog
    from ui.lab import experiment, leave_what_is_not_drawn

    @dataclass(frozen=True)
    class Found:
        value: int
        progress: float
        done: bool

    wait = st.session_state.get("wait", 0.0)
    fails = st.session_state.get("fails", False)

    def show(found):
        if fault := st.session_state.get("broken"):
            raise fault
        st.markdown(f"found {found.value}")

    def turns():
        for step in range(1, 6):
            time.sleep(wait)
            if fails:
                raise Fault("lab_needs_weights")
            yield Found(step, step / 5, step == 5)

    assert threading.current_thread()
    if st.session_state.get("elsewhere"):
        leave_what_is_not_drawn()
        return
    experiment(
        catalog("en"),
        "count",
        ("question", st.session_state["test"], fails),
        turns,
        show,
        cost="a second",
        before=lambda: st.markdown("recorded 3"),
    )
    leave_what_is_not_drawn()


def opened(test, **state):
    at = AppTest.from_function(script, default_timeout=20)
    at.session_state["test"] = test
    for name, value in state.items():
        at.session_state[name] = value
    return at.run()


def said(at):
    assert not at.exception, at.exception
    return words(at)


def wait_for(text, at):
    for _ in range(60):
        if text in said(at):
            break
        time.sleep(0.1)
        at.run()


def test_numbers_in_words_stand_at_the_right():
    frame = pd.DataFrame(
        {
            "share": ["50.0 %", "", None],
            "change": ["+0.12", "−1.5", "…"],
            "size": ["1,024 MB", "538 MB", "12 B"],
            "what": ["40 heads", "3", "x"],
            "empty": ["", None, ""],
            "count": [1, 2, 3],
        }
    )
    found = number_columns(frame)
    right = [name for name, column in found.items() if column.get("alignment") == "right"]
    assert right == ["share", "change", "size"]
    assert "count" in found


def test_nothing_runs_before_it_is_asked_for():
    at = opened("quiet")
    assert "recorded 3" in said(at)
    assert "a second" in said(at)
    at.button(key="lab_run_count").click().run()
    wait_for("found 5", at)
    assert "found 5" in said(at)
    assert "recorded" not in said(at)
    # Another reader of the same question finds the answer.
    assert "found 5" in said(opened("quiet"))
    assert "recorded 3" in said(opened("another question"))


def test_stopping_keeps_what_there_is():
    at = opened("slow", wait=0.6)
    at.button(key="lab_run_count").click().run()
    at.button(key="lab_stop_count").click().run()
    at.run()
    text = said(at)
    assert catalog("en")("lab.stopped") in text
    assert "found 5" not in text
    at.button(key="lab_again_count").click().run()
    wait_for("found 5", at)
    assert "found 5" in said(at)


def test_what_an_experiment_leaves_behind_is_fetched():
    class Knot:
        """A model: its parts refer to each other."""

    left = []

    def turns():
        knot = Knot()
        knot.itself = knot
        left.append(weakref.ref(knot))
        yield from (1, 2)

    gc.disable()
    try:
        assert list(lab._to_the_end(turns)) == [1, 2]
        stopped = lab._to_the_end(turns)
        next(stopped)
        stopped.close()
        assert [ref() for ref in left] == [None, None]
    finally:
        gc.enable()


def test_it_pauses_soon_after_its_page_was_left_and_goes_on_when_one_is_back(monkeypatch):
    monkeypatch.setattr("ui.jobs.AWAY", 0.1)
    at = opened("left", wait=0.3)
    at.button(key="lab_run_count").click().run()
    at.session_state["elsewhere"] = True
    at.run()
    time.sleep(2.0)  # more than all five turns would take
    assert lab.jobs().known(("count", ("question", "left", False))) is None
    at.session_state["elsewhere"] = False
    at.run()
    wait_for("found 5", at)
    assert "found 5" in said(at)


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [(ValueError("no slider"), "frame.broken"), (Fault("empty_prompt"), "fault.empty_prompt")],
)
def test_what_fails_while_it_is_drawn_is_a_sentence(broken, sentence):
    """It draws itself again and again, where the page does not catch it."""
    at = opened(sentence, broken=broken)
    at.button(key="lab_run_count").click().run()
    for _ in range(50):
        if at.error:
            break
        time.sleep(0.05)
        at.run()
    assert catalog("en")(sentence) in said(at)
    assert "no slider" not in said(at)


def test_a_fault_is_a_sentence_and_a_button():
    at = opened("bad", fails=True)
    at.button(key="lab_run_count").click().run()
    at.run()
    assert catalog("en")("fault.lab_needs_weights") in said(at)
    assert at.button(key="lab_again_count")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_edit_is_told_in_words(lang):
    t = catalog(lang)
    everything = "layers:1+groups:1+heads:0.1+neurons:0.2+zeros:0.5:wanda+bits:4:group:64:asym:head"
    told = edit_words(t, everything)
    assert told.count(" · ") == 5
    assert all(bound(number) in told for number in ("20 %", "50 %", "64", "4"))
    assert edit_words(t, "zeros:2of4:random") != edit_words(t, "zeros:0.5:random")
    assert len({edit_words(t, storage) for storage in STORAGES}) == len(STORAGES)
    assert edit_words(t, "") == ""
    assert str(machine().cores) in machine_words(t, machine())


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_page_can_show_an_edited_model_and_the_way_back(lang):
    at = open_app("4_Layers", model="tiny", edit="bits:3", lang=lang, prompt="the thing")
    t = catalog(lang)
    assert t("lab.edit", edit=edit_words(t, "bits:3")) in words(at)
    assert query_of(at)["edit"] == "bits:3:channel"
    at.button(key="edit_off").click().run()
    assert not at.exception
    assert "edit" not in query_of(at)
    assert query_of(at)["model"] == "tiny"


def test_an_edit_may_be_spelled_in_another_way():
    """In the name of the model, in a link or typed into the sidebar, and not in its full form."""
    t, name = catalog("en"), "tiny#bits:3:channel"
    at = open_app("4_Layers", model="tiny#bits:3", lang="en", prompt="the thing")
    assert at.session_state["place"].spec.model == name
    info = store().engine(name).info
    assert any(info.dtype in caption.value for caption in at.sidebar.caption)
    at.button(key="edit_off").click().run()
    at.selectbox(key="w_model").set_value("own").run()
    at.text_input(key="w_own").set_value("tiny#bits:3").run()
    at.button(key="load_own").click().run()
    assert not at.exception
    assert at.session_state["place"].spec.model == name
    assert t("lab.edit", edit=edit_words(t, "bits:3")) in words(at)


def test_an_edit_of_the_link_that_cannot_be_read_is_named():
    at = open_app("4_Layers", model="tiny", edit="bots:3", lang="en", prompt="the thing")
    assert "edit" in words(at)
    assert "edit" not in query_of(at)


def test_the_original_and_an_edited_copy_are_compared_side_by_side():
    columns = "greedy\ngreedy,model=tiny#bits:2"
    for name in ("tiny", "tiny#bits:2"):
        store().request(name)
        assert store().wait(name, 60).status == "ready"
    at = open_app("8_Compare", model="tiny", prompt="the thing", columns=columns, lang="en")
    rows = data_of(at, "columns")["rows"]
    assert [row["model"] for row in rows] == [None, model_words(catalog("en"), "tiny#bits:2")]
    assert "2 bits" in rows[1]["model"]
    texts = [[cell["label"] for cell in row["cells"]] for row in rows]
    assert texts[0] != texts[1]
