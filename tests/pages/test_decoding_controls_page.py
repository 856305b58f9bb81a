"""The sidebar's decoding settings without a browser: what a link shows, what is refused."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from core.settings import MAX_SEED
from tests.pages.app import open_app, query_of
from ui.i18n import catalog

ALL = {
    "typical": "0.9", "repeat": "1.3", "presence": "0.5", "frequency": "-0.25", "ngram": "3",
    "ban": "foo\n bar", "pattern": ".*",
}  # fmt: skip


def open_page(ready=True, **query) -> AppTest:
    return healthy(open_app("5_Probabilities", ready=ready, **query))


def healthy(at: AppTest) -> AppTest:
    assert not at.exception
    return at


def fold(at: AppTest, lang: str):
    name = catalog(lang)("frame.more")
    return next(e.proto for e in at.sidebar.expander if e.label.startswith(name))


def stages(at: AppTest) -> dict:
    found = [b.proto for b in at.get("bidi_component") if b.proto.component_name == "tbt_stages"]
    return json.loads(found[0].json) if found else {}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_without_further_filters_their_fold_is_closed_and_says_nothing(lang):
    at = open_page(lang=lang)
    assert fold(at, lang).label == catalog(lang)("frame.more")
    assert not fold(at, lang).expanded
    assert at.sidebar.number_input(key="w_typical").value is None
    assert at.sidebar.number_input(key="w_typical").placeholder == catalog(lang)("frame.off")
    assert at.sidebar.button(key="more_reset").disabled


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_the_link_sets_is_shown_counted_and_at_work(lang):
    at = open_page(lang=lang, **ALL)
    t = catalog(lang)
    assert not at.error
    assert fold(at, lang).label == t("frame.more_on", n=7)
    assert fold(at, lang).expanded
    numbers = {
        "w_typical": 0.9, "w_repeat": 1.3, "w_presence": 0.5, "w_frequency": -0.25, "w_ngram": 3,
    }  # fmt: skip
    for key, value in numbers.items():
        field = at.sidebar.number_input(key=key)
        assert field.value == value
        assert field.help
    assert at.sidebar.text_area(key="w_banned").value == "foo\n bar"
    assert at.sidebar.text_input(key="w_pattern").value == ".*"
    found = stages(at)["settings"]
    assert found["repetition_penalty"] == 1.3
    assert (found["banned"], found["pattern"]) == (["foo", " bar"], ".*")
    assert found["order"] == ["temperature", "top_k", "top_p", "min_p", "typical_p"]
    columns = list(at.dataframe[0].value.columns)
    for name in ("repetition_penalty", "banned", "pattern", "typical_p"):
        wanted = t("probabilities.table_after", name=t(f"probabilities.{name}_term"))
        assert wanted in columns


def test_all_of_them_are_switched_off_with_one_button():
    at = open_page(lang="en", t="0.5", **ALL)
    healthy(at.sidebar.button(key="more_reset").click().run())
    assert fold(at, "en").label == "More filters"
    assert set(at.query_params) == {"lang", "t"}
    assert at.sidebar.text_area(key="w_banned").value == ""
    assert at.sidebar.text_input(key="w_pattern").value == ""
    assert at.sidebar.number_input(key="w_repeat").value is None


def test_a_number_goes_into_the_link_and_onto_the_page():
    at = open_page(lang="en")
    healthy(at.sidebar.number_input(key="w_ngram").set_value(2).run())
    assert query_of(at)["ngram"] == "2"
    assert fold(at, "en").label == "More filters · 1 on"
    assert stages(at)["settings"]["no_repeat_ngram"] == 2
    healthy(at.sidebar.number_input(key="w_typical").set_value(0.0).run())
    assert "typical" not in at.query_params


def test_banned_texts_are_one_a_line_without_what_is_blank():
    at = open_page(lang="en")
    healthy(at.sidebar.text_area(key="w_banned").set_value(" Paris \n\n\tRome\n").run())
    assert query_of(at)["ban"] == "Paris\nRome"
    assert stages(at)["settings"]["banned"] == ["Paris", "Rome"]
    # The favourite is forbidden, and the table says by whom.
    frame = at.dataframe[0].value
    assert frame["token"][0] == "␣Paris"
    assert frame["removed by"][0] == "banned texts"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_text_that_no_link_can_carry_is_refused_and_stays_for_mending(lang):
    at = open_page(lang=lang, ban="foo")
    typed = "x" * 61
    healthy(at.sidebar.text_area(key="w_banned").set_value(typed).run())
    sentence = catalog(lang)("fault.banned_too_long", words=20, characters=60)
    assert sentence in [e.value for e in at.sidebar.error]
    assert query_of(at)["ban"] == "foo"
    assert at.sidebar.text_area(key="w_banned").value == typed
    assert stages(at)["settings"]["banned"] == ["foo"]
    healthy(at.sidebar.text_area(key="w_banned").set_value("bar").run())
    assert not at.error
    assert query_of(at)["ban"] == "bar"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_pattern_that_is_none_is_refused_and_stays_for_mending(lang):
    at = open_page(lang=lang)
    healthy(at.sidebar.text_input(key="w_pattern").set_value("(a").run())
    assert len(at.sidebar.error) == 1
    assert "unclosed group" in at.sidebar.error[0].value
    assert "pattern" not in at.query_params
    assert at.sidebar.text_input(key="w_pattern").value == "(a"
    healthy(at.sidebar.text_input(key="w_pattern").set_value(" ?[A-Z]+").run())
    assert not at.error
    assert query_of(at)["pattern"] == " ?[A-Z]+"


def test_an_example_of_a_pattern_is_taken_with_a_click():
    at = open_page(lang="en")
    healthy(at.sidebar.button(key="pattern_0").click().run())
    assert query_of(at)["pattern"] == " ?(yes|no)"
    assert at.sidebar.text_input(key="w_pattern").value == " ?(yes|no)"
    labels = [label for id, label in stages(at)["top"] if id == stages(at)["check"]["chosen"]]
    assert labels[0].strip("␣") in {"y", "ye", "yes", "n", "no", ""}


# ---------------------------------------------------------------- the seed


@pytest.mark.parametrize("seed", [0, 2**53 + 1, MAX_SEED])
def test_a_seed_of_any_size_is_shown_to_its_last_digit(seed):
    at = open_page(lang="en", seed=str(seed))
    assert at.sidebar.text_input(key="w_seed").value == str(seed)


def test_a_typed_seed_is_taken_as_it_is():
    at = open_page(lang="en")
    healthy(at.sidebar.text_input(key="w_seed").set_value("9,007,199,254,740,993").run())
    assert query_of(at)["seed"] == "9007199254740993"
    assert at.sidebar.text_input(key="w_seed").value == "9007199254740993"
    healthy(at.sidebar.text_input(key="w_seed").set_value("").run())
    assert "seed" not in at.query_params


@pytest.mark.parametrize("typed", ["abc", "1.5", "-1", str(MAX_SEED + 1), "1e3"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_is_no_seed_gets_a_sentence_and_changes_nothing(lang, typed):
    at = open_page(lang=lang, seed="7")
    healthy(at.sidebar.text_input(key="w_seed").set_value(typed).run())
    assert len(at.sidebar.error) == 1
    assert query_of(at)["seed"] == "7"
    assert at.sidebar.text_input(key="w_seed").value == typed


# ---------------------------------------------------------------- without a model


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_typed_numbers_need_no_model(lang):
    at = open_page(
        ready=False, lang=lang, model="nobody/nothing", own="p:a 0.5, b 0.3, c 0.2", p="0.51"
    )
    assert stages(at)["check"]["after"] == pytest.approx([0.625, 0.375, 0], abs=1e-12)
    healthy(at.button_group(key="own_mode").set_value("model").run())
    assert stages(at) == {}
    healthy(at.button_group(key="own_mode").set_value("own").run())
    assert stages(at)["top"][0] == [0, "a"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_typed_numbers_have_no_text_and_the_page_says_what_rests(lang):
    at = open_page(lang=lang, own="p:a 0.5, b 0.5", repeat="2", ban="a")
    t = catalog(lang)
    names = f"{t('probabilities.repetition_penalty_term')} · {t('probabilities.banned_term')}"
    assert t("probabilities.own_no_text", names=names) in [c.value for c in at.caption]
    assert stages(at)["check"]["after"] == [0.5, 0.5]
    assert stages(at)["settings"]["repetition_penalty"] is None


def test_an_empty_prompt_leaves_typed_numbers_alone():
    at = open_page(lang="en", prompt="", own="p:a 0.5, b 0.5")
    assert [e.value for e in at.error if e.value.startswith("The prompt is empty")]
    assert stages(at)["check"]["after"] == [0.5, 0.5]


def test_every_choice_is_said_in_every_run():
    """A browser that sees only the last of two quick runs would show, and later send, the first
    entry of a list for the reader's choice: a model of the link was lost that way."""
    at = healthy(open_app("9_KV_cache", model="tiny", lang="en", prompt="the thing").run())
    kinds = ("selectbox", "slider", "select_slider", "number_input", "toggle", "button_group")
    found = {widget.key: widget.proto.set_value for kind in kinds for widget in at.get(kind)}
    assert {"w_model", "w_t", "w_lang", "kv_layer"} <= found.keys()
    assert [key for key, said in found.items() if not said] == []
