"""The Beam search page without a browser: classics, penalties, links, tables, and Generate."""

import json
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from core.decode import beam_search
from core.engine.toy_classics import CLASSICS, limit_of
from core.settings import BeamSettings
from tests.pages.app import data_of, healthy, open_app, query_of, words
from ui import beam, beam_page, state
from ui.beam_table import LESSONS, packed
from ui.i18n import catalog
from ui.state import store

PAGE = "7_Beam_search"
LANGS = ["en", "zh"]
OWN = '{"vocab":["a","b"],"end":["b"],"next":{"*":[0.5,0.5]}}'


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    monkeypatch.setattr(beam, "MOMENT", 60)


def open_beam(**query: str) -> AppTest:
    return open_app(PAGE, **{"model": "toy", "prompt": "once", "lang": "en", **query})


def open_classic(name: str, **query: str) -> AppTest:
    start = LESSONS[name].start
    given = {"beams": start["beams"], "rule": start["rule"], "max": limit_of(name)}
    return open_beam(table=name, **{**{k: str(v) for k, v in given.items()}, **query})


def click(at: AppTest, event: dict) -> AppTest:
    """What a click in the tree does, as its callback does it."""
    step, place = event["step"], event["place"]
    here: state.Place = at.session_state["place"]
    if event["do"] == "node":
        at.session_state["place"] = replace(here, view=replace(here.view, node=(step, place)))
    else:
        at.session_state["beam_continue"] = (step, place)
    return healthy(at.run())


def texts(at: AppTest) -> list[str]:
    return [row["text"] for row in data_of(at, "beam")["ranking"]]


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("name", CLASSICS)
def test_each_classic_shows_its_lesson(name, lang):
    at = open_beam(lang=lang)
    healthy(at.pills(key="beam_source").set_value(name).run())
    t, lesson = catalog(lang), LESSONS[name]
    assert t("beam_search.lesson_title") in words(at)
    assert query_of(at)["table"] == name
    assert query_of(at)["max"] == str(limit_of(name))
    won = []
    for value in lesson.values:
        healthy(at.button(key=f"lesson_{lesson.field}_{value}").click().run())
        won.append(texts(at)[0])
    assert len(set(won)) == 2
    assert all(text in words(at) for text in won)
    assert not at.error
    # Back to the model, with the output limit from before.
    healthy(at.pills(key="beam_source").set_value("model").run())
    assert "table" not in query_of(at)
    assert "max" not in query_of(at)


def test_the_true_best_is_said_on_tables():
    at = open_classic("wider_is_worse")
    t = catalog("en")
    assert "yes and so" in words(at)
    assert "this beam search missed it" in words(at)
    healthy(at.slider(key="beam_width").set_value(3).run())
    assert t("beam_search.true_best_found", n="125") in words(at)
    assert query_of(at)["beams"] == "3"
    frame = next(f.value for f in at.dataframe if t("beam_search.cost_forwards") in f.value)
    assert list(frame[t("beam_search.cost_forwards")]) == [7, 3, 31]
    assert list(frame[t("beam_search.cost_passes")]) == [3, 3, 3]


def test_the_penalty_judges_again_without_running(monkeypatch):
    at = open_classic("length_penalty")
    assert texts(at)[0] == "rain"
    monkeypatch.setattr("ui.beam._turns", lambda *_: pytest.fail("it ran"))
    healthy(at.slider(key="beam_alpha").set_value(-1.0).run())
    assert texts(at)[0] == "rain"
    assert data_of(at, "beam")["alpha"] == -1
    assert query_of(at)["alpha"] == "-1.0"
    assert "without running the model" in words(at)


def test_a_penalty_that_would_have_gone_on_offers_to_run():
    # (Another prompt is another question: its search is not in the memo yet.)
    at = open_classic("early_stopping", prompt="never asked before")
    assert texts(at)[0] == "we"
    assert data_of(at, "beam")["stop"] == "full"
    healthy(at.segmented_control(key="beam_rule").set_value("best").run())
    assert "better texts than these may exist" in words(at)
    assert data_of(at, "beam")["stop"] is None
    healthy(at.button(key="beam_anew_button").click().run())
    assert texts(at)[0] == "we walk home"
    assert data_of(at, "beam")["stop"] != "user"
    assert "without running" not in words(at)
    healthy(at.segmented_control(key="beam_rule").set_value("full").run())
    assert texts(at)[0] == "we"
    assert "stops after 3 steps instead of" in words(at)


def test_a_link_round_trip():
    query = {
        "beams": "3", "alpha": "0.5", "rule": "full", "nbest": "2", "node": "1:1",
        "table": packed(OWN), "max": "4",
    }  # fmt: skip
    at = open_beam(**query)
    found = query_of(at)
    assert {name: found[name] for name in query} == query
    data = data_of(at, "beam")
    assert data["node"] == [1, 1]
    assert data["wanted"] == 2
    assert data["labels"][:2] == ["a", "b"]
    assert not data["can_continue"]


@pytest.mark.parametrize("lang", LANGS)
def test_a_damaged_link_still_opens(lang):
    at = open_beam(
        lang=lang, beams="0", alpha="nan", rule="never", nbest="-3", node="99:99",
        kind="bogus", groups="x",
    )  # fmt: skip
    data = data_of(at, "beam")
    assert data["node"] is None
    assert data["width"] == 4
    notes = at.info[0].value
    assert all(name in notes for name in ("beams", "alpha", "rule", "nbest", "kind", "groups"))
    wide = open_beam(lang=lang, beams="200")
    assert data_of(wide, "beam")["width"] == 16
    assert "200" in words(wide)


def test_a_node_that_another_search_has_not_is_forgotten():
    at = open_classic("beam_beats_greedy", node="1:3")
    assert data_of(at, "beam")["node"] == [1, 3]
    healthy(at.slider(key="beam_width").set_value(1).run())
    assert data_of(at, "beam")["node"] is None
    assert "node" not in query_of(at)


@pytest.mark.parametrize("lang", LANGS)
def test_a_wrong_table_gets_a_sentence_and_can_be_mended(lang):
    at = open_beam(lang=lang, table='{"vocab": ["a", "b"], "next": {"*": [0.5, 0.4]}}')
    assert len(at.error) == 1
    assert "0.9" in at.error[0].value
    healthy(at.text_area(key="beam_text").set_value("{").run())
    assert catalog(lang)("fault.table_not_json", line=1, column=2) == at.error[0].value
    healthy(at.text_area(key="beam_text").set_value(OWN).run())
    assert not at.error
    assert query_of(at)["table"] == OWN
    assert texts(at)[0] == "b" or data_of(at, "beam")["ranking"][0]["length"] == 1


def test_a_classic_can_be_taken_as_a_beginning():
    at = open_classic("beam_beats_greedy")
    healthy(at.button(key="beam_edit").click().run())
    assert at.pills(key="beam_source").value == "own"
    shown = json.loads(at.text_area(key="beam_text").value)
    assert shown["vocab"] == ["red", "blue", "sky", "rose", "<end>"]
    assert texts(at)[0] == "blue sky"


def test_too_many_texts_are_not_tried():
    at = open_beam(table='{"vocab":["a","b","c"],"next":{"*":[0.5,0.3,0.2]}}', max="24")
    assert "too many to try them all" in words(at)
    assert data_of(at, "beam")["ranking"]


def test_a_beam_wider_than_the_vocabulary_has_no_ghosts():
    at = open_beam(table=OWN, beams="16", max="2")
    data = data_of(at, "beam")
    assert len(data["ranking"]) == 3
    assert [len(step["candidates"]) for step in data["steps"]] == [2, 2]


def test_the_words_of_a_table_are_hostile():
    hostile = json.dumps({"vocab": ["**b**", "<img>", "$x$"], "next": {"*": [0.5, 0.3, 0.2]}})
    at = open_beam(table=packed(hostile), max="1", beams="2")
    assert data_of(at, "beam")["labels"] == ["**b**", "<img>", "$x$"]
    assert not at.error


def test_on_a_model_the_page_is_the_core_s_search():
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", max="4", beams="3", node="1:0")
    data = data_of(at, "beam")
    engine = store().engine("tiny")
    prompt = engine.vocabulary.read("the thing").ids
    made = beam_search(engine, prompt, BeamSettings(width=3, max_new=4))
    assert [row["sum"] for row in data["ranking"]] == pytest.approx(
        [h.logprob for h in made.hypotheses]
    )
    tokens = made.tokens_at((1, 0))
    logits = engine.forward((*prompt, *tokens), prompt_length=len(prompt)).logits
    best = int(logits.argmax())
    row = data["next"]["rows"][0]
    assert data["ids"][row["label"]] == best
    assert data["can_continue"]


def test_continue_from_here_opens_generate_with_the_forced_tokens():
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", max="4", beams="3")
    place = next(
        i
        for i, c in enumerate(data_of(at, "beam")["steps"][2]["candidates"])
        if c["fate"] == "lost"
    )
    click(at, {"do": "continue", "step": 2, "place": place})
    engine = store().engine("tiny")
    prompt = engine.vocabulary.read("the thing").ids
    made = beam_search(engine, prompt, BeamSettings(width=3, max_new=4))
    tokens = made.tokens_at((2, place))
    here: state.Place = at.session_state["place"]
    assert here.spec.settings.forced == tuple(enumerate(tokens))
    assert (here.view.made, here.view.step) == (3, 2)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"do": "node"},
        {"do": "node", "step": "0", "place": 0},
        {"do": "node", "step": True, "place": 0},
        {"do": "node", "step": 2**40, "place": 0},
        {"do": "continue", "step": 0.5, "place": None},
        {"do": "other", "step": 0, "place": 0},
    ],
)
def test_nonsense_from_the_browser_changes_nothing(event, monkeypatch):
    monkeypatch.setattr(state, "look", lambda **_: pytest.fail("it looked"))
    beam_page.heard(event)


def test_a_long_search_asks_first():
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", max="200", beams="4")
    assert "up to 797 rows" in words(at)
    assert not [b for b in at.get("bidi_component") if b.proto.component_name == "tbt_beam"]


@pytest.mark.parametrize("lang", LANGS)
def test_while_the_model_loads_the_tables_work(lang, monkeypatch):
    monkeypatch.setattr(state, "engine_for", lambda spec: state.recorded_engine())
    at = open_app(PAGE, lang=lang, ready=False, max="6")
    assert catalog(lang)("beam_search.model_not_ready") in words(at)
    healthy(at.pills(key="beam_source").set_value("beam_beats_greedy").run())
    assert texts(at)[0] == "blue sky"
    monkeypatch.setattr(state, "engine_for", lambda spec: None)
    monkeypatch.setattr("ui.frame.waiting", lambda *_: None)
    without = open_app(PAGE, lang=lang, ready=False, table="early_stopping", beams="2", max="5")
    assert texts(without)[0] == "we walk home"


@pytest.mark.parametrize("kind", ["sampled", "diverse"])
def test_other_kinds_have_their_own_settings_in_the_link(kind):
    at = open_classic("wider_is_worse", beams="4")
    healthy(at.segmented_control(key="beam_kind").set_value(kind).run())
    assert query_of(at)["kind"] == kind
    assert data_of(at, "beam")["kind"] == kind
    if kind == "sampled":
        before = texts(at)
        healthy(at.number_input(key="beam_seed").set_value(3).run())
        assert query_of(at)["seed"] == "3"
        assert texts(at) != before
    else:
        healthy(at.number_input(key="beam_diversity").set_value(2.0).run())
        assert query_of(at)["diversity"] == "2.0"
        healthy(at.number_input(key="beam_groups").set_value(3).run())
        assert "3" in at.error[0].value
        assert "4" in at.error[0].value
        healthy(at.number_input(key="beam_groups").set_value(4).run())
        assert not at.error
