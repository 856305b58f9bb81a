"""The Tokens page without a browser: what its parts are sent, and what a click does."""

import pytest

from tests.pages.app import data_of, healthy, open_app, query_of, words
from ui import state
from ui.i18n import catalog, plain

PAGE = "1_Tokens"


def open_page(**query):
    return open_app(PAGE, **{"model": "tiny", "prompt": "in the 法", **query})


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_prompt_as_tokens_with_a_card_and_merges(lang):
    at = open_page(lang=lang, at="1")
    assert not at.error
    data = data_of(at, "tokens")
    labels = [part["label"] for chip in data["chips"] for part in chip["parts"]]
    assert labels[:5] == ["in", "␣the", "␣", "‹E6 B3›", "‹95›"]
    assert (data["selected"], data["prompt"], data["count"]) == (1, 5, 6)
    assert data["stats"][0]["characters"] == 8
    merges = data_of(at, "merges")
    assert (merges["chosen"]["label"], len(merges["chosen"]["merges"])) == ("␣the", 3)
    assert merges["lang"] == {"en": "en", "zh": "zh-Hans"}[lang]
    rows = data_of(at, "readings")["rows"]
    assert (rows[0]["name"], rows[0]["count"]) == ("Tiny random Llama", 5)
    t = catalog(lang)
    assert t("tokens.merges_intro") in words(at)
    frames = [frame.value for frame in at.dataframe]
    assert list(frames[0][t("tokens.position")]) == [0, 1, 2, 3, 4, 5]
    assert list(frames[1][t("tokens.language")])[1] == t("tokens.lang_zh")


def test_without_a_choice_the_longest_word_is_shown():
    at = open_page(prompt="in there", lang="en")
    assert data_of(at, "merges")["chosen"]["label"] == "␣there"
    assert data_of(at, "tokens")["selected"] == data_of(at, "merges")["chosen"]["at"] == 1


def test_a_generated_token_was_never_merged():
    at = open_page(prompt="in", at="1", made="2", lang="en")
    data = data_of(at, "tokens")
    assert data["chips"][0]["parts"][0]["generated"] is False
    assert data["stats"][1]["of"] == "generated"
    assert data_of(at, "merges")["chosen"] == {"why": catalog("en")("tokens.why_generated")}


def test_a_position_beyond_the_text_is_the_last():
    at = open_page(prompt="in", at="900", lang="en")
    assert data_of(at, "tokens")["selected"] == 1


def test_a_choice_goes_into_the_link(monkeypatch):
    from ui.components.tokens import choose

    at = open_page(lang="en")
    monkeypatch.setattr("ui.components.tokens.st.session_state", {"tokens": {"action": {"at": 2}}})
    put = []
    monkeypatch.setattr(state, "look", lambda **changes: put.append(changes))
    choose("tokens")()
    assert put == [{"at": 2}]
    for wrong in (None, 7, {}, {"at": "2"}, {"at": -1}, {"at": True}, {"at": 10**9}):
        monkeypatch.setattr("ui.components.tokens.st.session_state", {"tokens": {"action": wrong}})
        choose("tokens")()
    assert len(put) == 1
    assert query_of(healthy(at.run()))["model"] == "tiny"


def test_the_toy_says_that_it_merges_nothing():
    at = open_page(model="toy", prompt="tell me", lang="en")
    assert [chip["label"] for chip in data_of(at, "tokens")["chips"]][:2] == ["tell", "me"]
    assert catalog("en")("fault.toy_no_merges") in words(at)
    assert data_of(at, "readings")["rows"][0]["count"] == 2
    priced = [text.value.split(":")[0] for text in at.text]
    assert priced
    assert "Toy" not in priced


def test_control_strings_as_control_or_as_text():
    added = open_page(prompt="a<|im_end|>", at="1", lang="en")
    assert data_of(added, "merges")["chosen"]["why"] == catalog("en")("tokens.why_added")
    plain = open_page(prompt="a<|im_end|>", at="1", literal="1", lang="en")
    assert data_of(plain, "merges")["chosen"]["why"] is None


def test_another_tokenizer_that_has_to_be_fetched():
    t = catalog("en")
    at = open_page(other="org/name", lang="en")
    assert [row["name"] for row in data_of(at, "readings")["rows"]].count("org/name") == 0
    assert t("tokens.other_missing", name="org/name") in words(at)
    healthy(at.button("fetch_tokenizer").click().run())
    assert t("fault.hub_unreachable", name="org/name").split(",")[0] in words(at)
    assert query_of(at)["other"] == "org/name"


def test_a_name_that_is_no_model():
    at = open_page(other="<b>nonsense", lang="en")
    assert plain("'<b>nonsense'") in words(at)
    row = data_of(at, "readings")["rows"][1]
    assert row["why"].startswith("There is no model '<b>nonsense'; choose one of")


def test_a_class_opens_no_folders(monkeypatch, tmp_path):
    monkeypatch.setattr(state, "IN_CLASS", True)
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    at = open_page(other=str(tmp_path), lang="en")
    assert "does not open files of its own computer" in words(at)
    assert "does not open files" in data_of(at, "readings")["rows"][1]["why"]


def test_a_class_is_not_offered_what_it_may_not_do(monkeypatch):
    monkeypatch.setattr(state, "IN_CLASS", True)
    assert "w_other" not in [field.key for field in open_page(lang="en").text_input]
    assert open_page(other="org/name", lang="en").error


@pytest.mark.model
def test_a_folder_with_a_tokenizer(default_model, tmp_path):
    from core.models.cache import model_folder

    at = open_page(other=str(model_folder(default_model)), lang="en")
    row = data_of(at, "readings")["rows"][1]
    assert (row["why"], row["entries"]) == (None, 49_152)


@pytest.mark.model
def test_the_default_model_and_the_stored_run(default_model):
    at = open_app(PAGE, ready=False, lang="en")
    data = data_of(at, "tokens")
    assert data["chips"][1]["parts"][0]["piece"] == "Ġcapital"
    merges = data_of(at, "merges")
    assert (merges["rules"], merges["chosen"]["label"]) == (48_900, "␣capital")
    assert merges["chosen"]["merges"][0]["rank"] == 13
    rows = {row["name"]: row["count"] for row in data_of(at, "readings")["rows"]}
    assert rows["SmolLM2 135M Instruct"] == 5
    assert "Tiny random Llama" not in rows  # it would dwarf the bars of real tokenizers
