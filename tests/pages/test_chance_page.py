"""Playing with chance without a browser: dice, draws and branches, on the toy's story."""

import json
from dataclasses import replace

import pytest

from core.decode import choose, uniform
from core.decode.draws import chi_square, draws
from core.engine.toy import ToyEngine, default_table
from core.settings import MAX_SEED, Settings
from tests.pages.app import data_of, open_app, query_of, send, words
from ui.branches import read
from ui.i18n import catalog


def open_page(**query: str):
    return open_app("6_Generate", **{"model": "toy", "prompt": "tell me", "p": "off", **query})


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_dice_that_were_thrown_again(lang):
    at = open_page(lang=lang, seed="9007199254740993", rolls="0:2", made="3")
    dice = data_of(open_page(lang=lang, seed="9007199254740993", rolls="0:2"), "candidates")["dice"]
    seed = 9007199254740993
    assert dice == {
        "seed": str(seed),
        "most": str(MAX_SEED),
        "roll": 2,
        "u": uniform(seed, 0, 2),
        "before": [uniform(seed, 0), uniform(seed, 0, 1)],
    }
    at = send(at, "candidates", {"do": "reroll", "step": 0})
    assert query_of(at)["rolls"] == "0:3"
    assert data_of(at, "candidates")["dice"]["u"] == uniform(seed, 0, 3)
    assert data_of(at, "strip")["made"] == 1
    tree = data_of(at, "branches")
    names = [(path["index"], path["name"], path["current"]) for path in tree["paths"]]
    assert names == [(None, "", True), (0, "A", False)]
    assert catalog(lang)("generate.branches_text") in words(at)
    at = send(at, "strip", {"do": "back"})
    assert query_of(at)["rolls"] == "0:2"
    assert "branches" not in query_of(at)
    at = send(at, "candidates", {"do": "seed", "seed": str(MAX_SEED)})
    assert query_of(at)["seed"] == str(MAX_SEED)
    assert data_of(at, "candidates")["dice"]["seed"] == str(MAX_SEED)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_thousand_draws_and_their_test(lang):
    at = open_page(lang=lang, seed="4", draws="1000:1")
    t = catalog(lang)
    specs = [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]
    spec = next(s for s in specs if s["data"][0].get("name") == t("generate.drawn"))
    labels = spec["layout"]["yaxis"]["ticktext"]
    assert labels == ["sun", "moon", "tonight"]
    engine = ToyEngine(default_table())
    ids = engine.vocabulary.read("tell me").ids
    logits = engine.forward(ids, prompt_length=len(ids)).logits
    made = draws(choose(logits, Settings(), step=0), seed=4, step=0, count=1000, first=1001)
    found = chi_square(made.counts, made.probabilities)
    metrics = {m.label: m.value for m in at.metric}
    assert metrics["χ²"] == f"{found.statistic:.2f}"
    assert metrics[t("generate.chi_freedom")] == "2"
    assert metrics[t("generate.chi_p")] == f"{found.p:.3f}"
    frames = [f.value for f in at.dataframe]
    table = next(f for f in frames if t("generate.drawn") in f)
    assert table[t("generate.drawn")].tolist() == made.counts.tolist()
    again = at.button(key="draws_throw").click().run()
    assert query_of(again)["draws"] == "1000:2"
    gone = again.button(key="draws_clear").click().run()
    assert "draws" not in query_of(gone)


def test_the_button_throws_a_thousand_and_the_count_can_be_chosen():
    at = open_page(lang="en")
    at = at.button(key="draws_throw").click().run()
    assert query_of(at)["draws"] == "1000:0"
    at = at.segmented_control(key="draws_count").set_value(10_000).run()
    assert query_of(at)["draws"] == "10000:0"
    greedy = open_page(lang="en", strategy="greedy", draws="1000:0")
    assert any("every one of 1,000 draws would be “sun”" in text.value for text in greedy.text)
    assert not [m for m in greedy.metric if m.label == "χ²"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_branches_of_a_link(lang):
    lines = "3;0;0:1;;moon <b>\n2;0;;0:1;B\n4;0;0:999999;;none such"
    at = open_page(lang=lang, strategy="sample", made="2", force="0:1", branches=lines)
    tree = data_of(at, "branches")
    paths = {path["name"]: path for path in tree["paths"]}
    assert list(paths) == ["moon <b>", "B", "none such"]
    assert paths["moon <b>"]["current"] is True
    assert paths["moon <b>"]["text"].startswith("moon")
    assert paths["none such"]["fault"] == catalog(lang)(
        "fault.forced_unknown", id=999999, step=0, last=7
    )
    assert [lane["index"] for lane in tree["lanes"]] == [0, 1, 2]
    at = send(at, "branches", {"do": "open", "branch": 1, "step": 1})
    assert query_of(at)["rolls"] == "0:1"
    assert data_of(at, "branches")["paths"][1]["current"] is True
    at = send(at, "branches", {"do": "drop", "branch": 2})
    at = send(at, "branches", {"do": "rename", "branch": 1, "name": "二"})
    assert [b.name for b in read(query_of(at)["branches"].split("\n"))] == ["moon <b>", "二"]
    at = send(at, "branches", {"do": "drop_all"})
    assert catalog(lang)("generate.branches_none") in words(at)


def test_what_a_link_cannot_carry_is_said():
    at = open_page(lang="en", made="2")
    place = at.session_state["place"]
    long = "+".join(f"{step}:1000" for step in range(60))
    view = replace(place.view, branches=(f"2;0;{long};;long",))
    at.session_state["place"] = replace(place, view=view)
    at.run()
    assert "The link has no room for 1 of the branches" in words(at)
    assert "branches" not in query_of(at)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_dice_and_draws_on_probabilities(lang):
    t = catalog(lang)
    query = {"model": "toy", "prompt": "tell me", "p": "off", "lang": lang, "draws": "100:0"}
    at = open_app("5_Probabilities", **query, made="2")
    assert t("generate.needle", u=f"{uniform(0, 0):.3f}") in words(at)
    assert data_of(at, "stages")["u"] == uniform(0, 0)
    assert {m.label for m in at.metric} >= {"χ²"}
    at = at.button(key="reroll").click().run()
    assert query_of(at)["rolls"] == "0:1"
    assert data_of(at, "stages")["u"] == uniform(0, 0, 1)
    assert t(
        "generate.rolls_one", before=f"{uniform(0, 0):.3f}", u=f"{uniform(0, 0, 1):.3f}"
    ) in words(at)
    typed = open_app("5_Probabilities", ready=False, **query, own="p:x 0.5, y 0.5", rolls="0:3")
    assert data_of(typed, "stages")["u"] == uniform(0, 0, 3)
    assert {m.label for m in typed.metric} >= {"χ²"}
