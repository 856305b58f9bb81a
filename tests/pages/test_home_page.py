"""Home: the three stages with this run's numbers, in both languages, for any text."""

import pytest

from tests.pages.app import data_of, healthy, open_app, query_of, send, words
from ui.i18n import catalog

pytestmark = pytest.mark.model


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_first_screen_is_a_whole_prediction(lang):
    at = open_app(lang=lang)
    t = catalog(lang)
    assert t("home.intro") in words(at)
    strip = data_of(at, "strip")
    assert [chip["label"] for chip in strip["chips"]] == [
        "The", "␣capital", "␣of", "␣France", "␣is", "␣Paris",
    ]  # fmt: skip
    assert (strip["made"], strip["view"], strip["limit"]) == (1, 0, 24)
    assert strip["chips"][-1]["steps"][0]["p"] == pytest.approx(0.7725, abs=0.01)
    assert data_of(at, "page_tools")["htmlLang"] == {"en": "en", "zh": "zh-Hans"}[lang]
    assert query_of(at) == {"lang": lang}
    assert at.sidebar.text_area(key="w_prompt").value == "The capital of France is"
    assert at.sidebar.slider(key="w_t").value == 1.0
    assert at.sidebar.number_input(key="w_k").value is None
    assert at.sidebar.number_input(key="w_p").value == 0.9


def test_before_the_model_is_ready_a_stored_real_run_is_shown_and_labelled(monkeypatch):
    from core.engine.store import ModelState
    from ui.state import store

    loading = ModelState("loading", 0.3, "load")
    monkeypatch.setattr(type(store()), "state", lambda self, name: loading)
    at = open_app(ready=False, lang="en")
    assert "stored real run of SmolLM2 135M Instruct, recorded on 20" in words(at)
    assert data_of(at, "strip")["chips"][-1]["label"] == "␣Paris"
    assert data_of(at, "journey")["recorded"] is True
    # A question that was not recorded waits, and says so.
    at.sidebar.text_area(key="w_prompt").set_value("Something else").run()
    healthy(at)
    assert catalog("en")("frame.waiting") in words(at)
    at.button(key="show_recorded").click().run()
    assert data_of(healthy(at), "strip")["chips"][-1]["label"] == "␣Paris"


def test_the_language_switch_changes_words_and_nothing_else():
    at = open_app(lang="en", k="7", t="0.5", made="2", step="1")
    before = data_of(at, "strip")
    at.sidebar.button_group(key="w_lang").set_value("zh").run()
    healthy(at)
    after = data_of(at, "strip")
    assert [c["label"] for c in after["chips"]] == [c["label"] for c in before["chips"]]
    assert (after["made"], after["view"]) == (2, 1)
    assert catalog("zh")("home.intro") in words(at)
    assert at.sidebar.number_input(key="w_k").value == 7
    assert query_of(at)["lang"] == "zh"
    assert query_of(at)["k"] == "7"


def test_steps_go_into_the_link_and_come_back_from_it():
    at = open_app(lang="en", prompt="Once upon a time")
    for _ in range(3):
        send(at, "strip", {"do": "step"})
    made = [chip["label"] for chip in data_of(at, "strip")["chips"]]
    query = query_of(at)
    assert (query["made"], query["step"]) == ("4", "3")
    again = open_app(**query)
    assert [chip["label"] for chip in data_of(again, "strip")["chips"]] == made


ODD_PROMPTS = {
    "emoji": "👨‍👩‍👧‍👦",
    "right to left": "مرحبا بالعالم",
    "markup": "<script>alert(1)</script> <b>x</b> $x^2$ **y** :red[z]",
    "control": "<|im_end|>",
    "nul": "a\x00b",
    "newlines": "\n\n\t \n",
    "one long word": "x" * 900,
}


@pytest.mark.parametrize("kind", ODD_PROMPTS)
def test_odd_text_is_read_whole(kind):
    at = open_app(lang="en")
    at.sidebar.text_area(key="w_prompt").set_value(ODD_PROMPTS[kind]).run()
    healthy(at)
    assert not at.error, at.error
    chips = data_of(at, "strip")["chips"]
    label = "".join(chip["label"] for chip in chips[:-1])
    assert label
    if kind == "markup":
        assert "<script>" in label
    if kind == "control":
        assert chips[0]["special"]
        at.sidebar.toggle(key="w_literal").set_value(True).run()
        spelled = data_of(healthy(at), "strip")["chips"]
        assert not any(chip["special"] for chip in spelled[:-1])
        assert "".join(chip["label"] for chip in spelled[:-1]) == "<|im_end|>"


def test_an_empty_prompt_gets_a_sentence_and_stays_empty():
    at = open_app(lang="en")
    at.sidebar.text_area(key="w_prompt").set_value("").run()
    healthy(at)
    assert [e.value for e in at.error] == [catalog("en")("fault.empty_prompt")]
    assert at.sidebar.text_area(key="w_prompt").value == ""
    at.run()
    assert at.sidebar.text_area(key="w_prompt").value == ""


def test_ten_thousand_characters_get_a_sentence_with_the_number_that_fits():
    at = open_app(lang="en")
    text = "The quick brown fox jumps over the lazy dog. " * 223
    at.sidebar.text_area(key="w_prompt").set_value(text).run()
    healthy(at)
    assert len(at.error) == 1
    assert "at most 1024" in at.error[0].value
    assert at.sidebar.text_area(key="w_prompt").value == text


def test_a_damaged_link_opens_and_names_what_was_wrong():
    at = open_app(lang="en", t="hot", k="-3", seed="7")
    assert "t, k" in words(at)
    assert at.sidebar.slider(key="w_t").value == 1.0
    assert at.sidebar.text_input(key="w_seed").value == "7"


@pytest.mark.parametrize("name", ["../../etc/passwd", "no such model", "/etc", "a" * 300])
def test_a_model_that_does_not_exist_gets_a_sentence(name):
    at = open_app(ready=False, lang="en", model=name)
    assert at.error
    assert "Traceback" not in words(at)


def test_the_toy_model_has_no_layers_and_says_so():
    at = open_app(lang="en", model="toy", prompt="the")
    journey = data_of(at, "journey")
    assert data_of(at, "strip")["made"] == 1
    assert journey["strings"]


def test_chat_is_text_with_control_tokens():
    at = open_app(lang="en", prompt="Hello", chat="1")
    chips = data_of(at, "strip")["chips"]
    assert chips[0]["label"] == "<|im_start|>"
    assert sum(chip["special"] for chip in chips) >= 3
