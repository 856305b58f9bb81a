"""The Probabilities page without a browser: what it says, and what typed numbers do."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from ui.i18n import catalog

ROOT = Path(__file__).resolve().parents[2]


def open_page(**query) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in query.items():
        at.query_params[name] = value
    at.switch_page("pages/5_Probabilities.py")
    return healthy(at.run())


def healthy(at: AppTest) -> AppTest:
    assert not at.exception
    return at


def sent(at: AppTest) -> dict:
    found = [b.proto for b in at.get("bidi_component") if b.proto.component_name == "tbt_stages"]
    return json.loads(found[0].json) if found else {}


def carried(at: AppTest) -> list[bytes]:
    every = [b.proto for b in at.get("bidi_component")]
    return [proto.bytes for proto in every if proto.component_name == "tbt_vocabulary"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_shows_the_model_s_step(lang):
    at = open_page(lang=lang, p="0.9")
    t = catalog(lang)
    assert t("probabilities.intro") in [c.value for c in at.caption]
    data = sent(at)
    assert data["lang"] == {"en": "en", "zh": "zh-Hans"}[lang]
    assert data["top"][0][1] == "␣Paris"
    assert data["settings"]["top_p"] == 0.9
    assert data["can_force"]
    scores, labels = carried(at)
    assert len(scores) == 49_152 * 4 + len(data["logits"]) + 1
    assert scores.startswith(data["logits"].encode() + b"\n")
    assert labels.startswith(data["labels"].encode() + b"\n")
    assert sum(map(len, carried(at))) < 1_000_000
    frame = at.dataframe[0].value
    assert frame[t("probabilities.table_model")].iloc[0] == pytest.approx(0.773, abs=0.01)
    assert frame[t("probabilities.table_model")].sum() == pytest.approx(1, abs=1e-9)
    assert frame[t("probabilities.table_rank")].iloc[0] == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_typed_probabilities_come_from_the_link_and_give_exact_numbers(lang):
    at = open_page(lang=lang, own="p:a 0.5, b 0.3, c 0.2", p="0.51")
    t = catalog(lang)
    data = sent(at)
    assert data["top"] == [[0, "a"], [1, "b"], [2, "c"]]
    assert data["check"]["after"] == pytest.approx([0.625, 0.375, 0], abs=1e-12)
    assert data["logits"].startswith("logits64:")
    assert data["labels"] is None
    assert not data["can_force"]
    frame = at.dataframe[0].value
    after = t("probabilities.table_after", name=t("probabilities.top_p_term"))
    assert frame[after].tolist() == pytest.approx([0.625, 0.375, 0], abs=1e-12)
    assert at.text_area(key="own_text").value == "a 0.5, b 0.3, c 0.2"


def test_the_order_of_the_link_is_the_order_of_the_columns():
    at = open_page(own="l:a 3, b 2, c 1, d 0", t="2", p="0.6")
    assert sent(at)["check"]["after"] == pytest.approx([0.6225, 0.3775, 0, 0], abs=1e-4)
    swapped = "top_p,temperature,top_k,min_p"
    at = open_page(own="l:a 3, b 2, c 1, d 0", t="2", p="0.6", order=swapped)
    assert sent(at)["check"]["after"] == [1, 0, 0, 0]
    assert list(at.dataframe[0].value.columns)[5:7] == ["after top-p", "after temperature"]


def test_the_switch_opens_typed_numbers_and_brings_them_back():
    at = open_page(lang="en")
    healthy(at.button_group(key="own_mode").set_value("own").run())
    assert sent(at)["top"][0] == [0, "Paris"]
    assert "p:Paris 0.85" in str(at.query_params["own"])
    at.text_area(key="own_text").set_value("x 0.6, y 0.4").run()
    healthy(at.button_group(key="own_mode").set_value("model").run())
    assert "own" not in at.query_params
    assert sent(at)["top"][0][1] == "␣Paris"
    healthy(at.button_group(key="own_mode").set_value("own").run())
    assert [label for _, label in sent(at)["top"]] == ["x", "y"]


@pytest.mark.parametrize(
    ("lang", "sentence"),
    [("en", "The probabilities add up to 1.1"), ("zh", "这些概率加起来是 1.1")],
)
def test_a_wrong_sum_is_said_kept_and_mended_on_request(lang, sentence):
    at = open_page(lang=lang, own="p:a 0.5, b 0.6")
    assert [e.value for e in at.error if e.value.startswith(sentence)]
    assert sent(at) == {}
    assert at.text_area(key="own_text").value == "a 0.5, b 0.6"
    healthy(at.button(key="own_rescale").click().run())
    assert not at.error
    assert sent(at)["check"]["after"] == pytest.approx([0.5454545, 0.4545455], abs=1e-5)


def test_nothing_typed_gets_a_sentence_and_no_rescaling():
    at = open_page(lang="en", own="p:")
    assert at.error[0].value.startswith("Nothing is typed yet")
    assert "own_rescale" not in [b.key for b in at.button]


PRESETS = {
    "peaked": [0.9140, 0.0860, 0, 0],
    "flat": [0.28, 0.26, 0.24, 0.22],
    "humps": [0.5111, 0.4889, 0, 0],
    "ties": [1, 0, 0, 0],
    "exact": [0.625, 0.375, 0, 0],
    "order": [0.6225, 0.3775, 0, 0],
}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_each_ready_example_shows_what_its_note_says(lang):
    at = open_page(lang=lang, own="p:0.5 0.5", k="1", order="min_p,top_p,top_k,temperature")
    t = catalog(lang)
    for name, after in PRESETS.items():
        healthy(at.button_group(key="own_preset").set_value(name).run())
        assert sent(at)["check"]["after"] == pytest.approx(after, abs=1e-4), name
        assert t(f"probabilities.preset_{name}_note") in [i.value for i in at.info]


def test_the_notes_promise_what_happens_next():
    exact = open_page(own="p:a 0.5, b 0.3, c 0.15, d 0.05", p="0.81")
    assert sent(exact)["check"]["after"][2] > 0
    swapped = "top_p,temperature,top_k,min_p"
    order = open_page(own="l:a 3, b 2, c 1, d 0", t="2", p="0.6", order=swapped)
    assert sent(order)["check"]["after"] == [1, 0, 0, 0]


def test_new_dice_are_the_next_seed():
    at = open_page(lang="en", own="p:a 0.5, b 0.5", seed="4")
    before = sent(at)["u"]
    healthy(at.button(key="own_dice").click().run())
    assert sent(at)["u"] != before
    assert "5" in at.query_params["seed"]


def test_greedy_is_said_by_the_data_and_takes_the_first_of_equals():
    data = sent(open_page(own="p:a 0.2, b 0.4, c 0.4", strategy="greedy"))
    assert data["strategy"] == "greedy"
    assert data["check"]["chosen"] == 1


def test_hostile_labels_are_text():
    at = open_page(own="p:<img src=x onerror=alert(1)> 0.5, =1+1 0.5")
    assert [label for _, label in sent(at)["top"]] == ["<img␣src=x␣onerror=alert(1)>", "=1+1"]
    assert at.dataframe[0].value["token"].tolist() == ["<img␣src=x␣onerror=alert(1)>", "'=1+1"]
