"""A beam search that takes its time: its tree grows, it is shared, and it is stopped."""

import threading
import time

import pytest
from streamlit.testing.v1 import AppTest

from core.decode import beam_search
from core.settings import BeamSettings
from tests.pages.app import data_of, healthy, open_app, query_of, words
from ui import beam, state
from ui.i18n import catalog

PAGE = "7_Beam_search"
LANGS = ["en", "zh"]


class Gate:
    """Lets searches take as many steps as it is told."""

    def __init__(self, monkeypatch) -> None:
        self.free, self.reads = threading.Semaphore(0), []
        self.open = False
        real = beam.reader_of

        def gated(source, settings):
            reader = real(source, settings)

            def read(prefixes):
                while not self.open and not self.free.acquire(timeout=0.02):
                    pass
                self.reads.append((settings.width, len(prefixes[0])))
                return reader(prefixes)

            return read

        monkeypatch.setattr(beam, "reader_of", gated)

    def let(self, steps: int) -> None:
        """So many steps more, and wait until they are made."""
        wanted = len(self.reads) + steps
        for _ in range(steps):
            self.free.release()
        until(lambda: len(self.reads) >= wanted)
        time.sleep(0.1)


@pytest.fixture
def gate(monkeypatch):
    monkeypatch.setattr(beam, "MOMENT", 0.05)
    monkeypatch.setattr(beam, "LAST", 0.2)
    found = Gate(monkeypatch)
    yield found
    found.open = True


def until(condition) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def open_tiny(prompt: str, **query: str) -> AppTest:
    given = {"model": "tiny", "max": "6", "beams": "2", "lang": "en"}
    return open_app(PAGE, prompt=prompt, **{**given, **query})


def shown(at: AppTest) -> dict | None:
    found = [b for b in at.get("bidi_component") if b.proto.component_name == "tbt_beam"]
    return data_of(at, "beam") if found else None


def expected(prompt: str, **settings) -> list[float]:
    engine = state.store().engine("tiny")
    ids = engine.vocabulary.read(prompt).ids
    return [h.logprob for h in beam_search(engine, ids, BeamSettings(**settings)).hypotheses]


def sums(data: dict) -> list[float]:
    return [row["sum"] for row in data["ranking"]]


@pytest.mark.parametrize("lang", LANGS)
def test_the_tree_grows_and_is_there_at_the_end(gate, lang):
    prompt, t = f"the thing grows {lang}", catalog(lang)
    at = open_tiny(prompt, lang=lang)
    assert shown(at) is None
    assert at.button(key="beam_stop_button").label == t("beam_search.stop_button")
    for steps in (1, 3):
        gate.let(1 if steps == 1 else 2)
        healthy(at.run())
        data = shown(at)
        assert (len(data["steps"]), data["stop"], data["greedy"]) == (steps, None, None)
    gate.open = True
    until(lambda: not healthy(at.run()).get("progress") and shown(at)["greedy"])
    data = shown(at)
    assert len(data["steps"]) == 6
    assert sums(data) == pytest.approx(expected(prompt, width=2, max_new=6))
    assert t("beam_search.cost") in words(at)
    assert gate.reads == [(2, n) for n in range(6)] + [(1, n) for n in range(6)]


def test_stop_keeps_what_is_there_and_go_on_goes_on(gate):
    at = open_tiny("the thing is stopped")
    gate.let(2)
    healthy(at.run())
    healthy(at.button(key="beam_stop_button").click().run())
    data = shown(at)
    steps = len(data["steps"])
    assert steps == 2
    assert data["stop"] == "user"
    assert {row["end"] for row in data["ranking"]} == {"user"}
    assert f"stopped the search after {steps} steps" in words(at)
    # The step that was being taken ends; then the model rests.
    gate.open = True
    time.sleep(0.3)
    read = len(gate.reads)
    assert read == 3
    # Other rules judge what is there.
    healthy(at.slider(key="beam_alpha").set_value(1.0).run())
    assert len(shown(at)["steps"]) == steps
    assert len(gate.reads) == read
    healthy(at.slider(key="beam_alpha").set_value(0.0).run())
    healthy(at.button(key="beam_go_on").click().run())
    until(lambda: len(healthy(at.run()).get("progress")) == 0)
    assert len(shown(at)["steps"]) == 6
    assert sums(shown(at)) == pytest.approx(expected("the thing is stopped", width=2, max_new=6))
    # No step was taken twice.
    assert gate.reads[:6] == [(2, n) for n in range(6)]


def test_readers_of_one_question_share_its_search(gate):
    one, other = open_tiny("the shared thing"), open_tiny("the shared thing", alpha="0.5")
    gate.let(2)
    for at in (one, other):
        assert len(shown(healthy(at.run()))["steps"]) == 2
    # Who stops leaves; the other one goes on.
    healthy(one.button(key="beam_stop_button").click().run())
    assert shown(one)["stop"] == "user"
    gate.let(2)
    assert len(shown(healthy(other.run()))["steps"]) == 4
    assert len(shown(healthy(one.run()))["steps"]) == 2
    gate.open = True
    until(lambda: len(healthy(other.run()).get("progress")) == 0)
    assert shown(other)["stop"] != "user"
    assert [read for read in gate.reads if read[0] == 2] == [(2, n) for n in range(6)]
    assert sums(shown(healthy(one.run()))) == pytest.approx(
        expected("the shared thing", width=2, max_new=6)
    )


def test_a_changed_question_ends_the_search_before(gate):
    at = open_tiny("the changed thing")
    gate.let(1)
    healthy(at.slider(key="beam_width").set_value(3).run())
    gate.open = True
    until(lambda: len(healthy(at.run()).get("progress")) == 0)
    widths = [width for width, _ in gate.reads]
    assert widths.count(2) <= 3
    assert widths.count(3) == 6


def test_greedy_beside_it_can_be_stopped_too(gate):
    at = open_tiny("the thing beside")
    gate.let(6)
    healthy(at.run())
    assert len(shown(at)["steps"]) == 6
    gate.let(1)
    healthy(at.run())
    assert catalog("en")("beam_search.computing_greedy", step=1, steps=6) in [
        p.proto.text for p in at.get("progress")
    ]
    gate.free.release()
    healthy(at.button(key="beam_stop_button").click().run())
    assert not at.get("progress")
    assert shown(at)["stop"] != "user"
    assert shown(at)["greedy"] is None
    assert catalog("en")("beam_search.cost") in words(at)


def test_what_fails_says_so_and_is_tried_again(gate, monkeypatch):
    from core.faults import Fault

    gate.open = True
    real = beam.reader_of

    def broken(source, settings):
        raise Fault("no_memory_to_load", device="cpu", name="tiny")

    monkeypatch.setattr(beam, "reader_of", broken)
    at = open_tiny("the thing that fails")
    until(lambda: len(healthy(at.run()).error) == 1)
    monkeypatch.setattr(beam, "reader_of", real)
    assert len(healthy(at.run()).error) == 1
    healthy(at.button(key="beam_again").click().run())
    until(lambda: len(healthy(at.run()).get("progress")) == 0)
    assert not at.error
    assert len(shown(at)["steps"]) == 6


def test_a_tree_too_large_to_grow_comes_at_the_end(gate, monkeypatch):
    monkeypatch.setattr("ui.beam_page.LIVE", 5)
    at = open_tiny("the large thing")
    gate.let(3)
    healthy(at.run())
    assert shown(at) is None
    assert catalog("en")("beam_search.large") in words(at)
    gate.open = True
    until(lambda: len(healthy(at.run()).get("progress")) == 0)
    assert len(shown(at)["steps"]) == 6


def test_a_node_of_a_growing_tree_is_in_the_link(gate):
    at = open_tiny("the growing thing", node="1:1")
    gate.let(1)
    assert shown(healthy(at.run()))["node"] is None
    gate.let(1)
    assert shown(healthy(at.run()))["node"] == [1, 1]
    assert query_of(at)["node"] == "1:1"
