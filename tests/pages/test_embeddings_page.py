"""The Embeddings page without a browser: what it says in both languages, and what clicks do."""

import base64

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.trace import Edit
from tests.pages.app import data_of, healthy, open_app, query_of, words
from ui.i18n import catalog
from ui.state import store

PAGE = "2_Embeddings"
TEXT = "the in the in the"


def floats(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


def open_page(**query: str) -> AppTest:
    return open_app(PAGE, **{"model": "tiny", "prompt": TEXT, "p": "off", **query})


def rankings(at: AppTest) -> list[dict]:
    import json

    found = [b.proto for b in at.get("bidi_component")]
    return [json.loads(p.json) for p in found if p.component_name == "tbt_ranked"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_section_shows_the_run(lang):
    at = open_page(lang=lang, words="#7\n#8\n#9", at="1")
    t, engine = catalog(lang), store().engine("tiny")
    assert [e.value for e in at.error] == []
    data = data_of(at, "embeddings")
    ids = engine.vocabulary.encode(TEXT).ids
    assert [token["id"] for token in data["tokens"]] == list(ids)
    assert floats(data["row"]).tolist() == engine.embeddings([ids[1]])[0].tolist()
    assert data["entering"] == t("embeddings.enter_same", d="0")
    assert len(data["neighbours"]) == 12
    assert ids[1] not in [near["id"] for near in data["neighbours"]]
    assert len(data["map"]["alone"]["spots"]) == len(ids)
    assert data["map"]["alone"]["rows"] == len(set(ids))
    (sums,) = rankings(at)
    assert [row["marked"] for row in sums["lists"][0]["rows"]] == [False] * 8
    turn = data_of(at, "rotation")
    assert (turn["layer"], turn["head"], turn["query"], turn["key"]) == (0, 0, 1, 0)
    assert [check["good"] for check in turn["checks"]] == [True, True]
    assert t("embeddings.order_cost", n=len(ids), s="0.0").split("0.0")[0] in words(at)
    assert turn["lang"] == data["lang"] == {"en": "en", "zh": "zh-Hans"}[lang]


def test_the_link_holds_the_view_and_nonsense_falls_back():
    turn = data_of(open_page(layer="1", head="3", at="4", key="2", pair="1"), "rotation")
    assert (turn["layer"], turn["head"], turn["kv_head"]) == (1, 3, 1)
    assert (turn["query"], turn["key"], turn["pair"]) == (4, 2, 1)
    turn = data_of(open_page(layer="99", head="99", at="99", key="99", pair="99"), "rotation")
    last = len(turn["tokens"]) - 1
    assert (turn["layer"], turn["head"], turn["query"], turn["key"]) == (0, 0, last, last - 1)
    assert 0 <= turn["pair"] < 4


def test_the_order_is_undone_on_a_click_and_really_recomputed():
    at = open_page(words="#7\n#8\n#9", lang="en")
    assert len(rankings(at)) == 1
    healthy(at.button_group(key="order_choice").set_value("none").run())
    assert query_of(at)["place"] == "none"
    engine = store().engine("tiny")
    ids = engine.vocabulary.encode(TEXT).ids
    logits = engine.forward(ids, edit=Edit(positions="none")).logits.astype(np.float64)
    after = rankings(at)[1]["lists"][1]["rows"]
    assert [row["id"] for row in after] == np.argsort(-logits, kind="stable")[:10].tolist()
    p = np.exp(logits - logits.max())
    assert after[0]["value"] == pytest.approx(p.max() / p.sum(), rel=1e-5)
    healthy(at.button_group(key="order_choice").set_value("shuffled").run())
    read = rankings(at)[1]["lists"][1]["tokens"]
    assert sorted(token["id"] for token in read) == sorted(ids)
    assert any(token["moved"] for token in read)
    assert read[-1]["id"] == ids[-1]
    healthy(at.button_group(key="order_choice").set_value("kept").run())
    assert "place" not in query_of(at)
    assert len(rankings(at)) == 1


def test_words_that_are_several_tokens_get_a_sentence():
    at = open_page(words="queen\n<b>\n", lang="en")
    text = words(at)
    assert "queen” is 5 tokens here" in text
    assert "Type a word, or the id of a token" in text
    assert rankings(at) == []
    healthy(at.text_input(key="sum_first").set_value("#7").run())
    healthy(at.text_input(key="sum_minus").set_value("the").run())
    healthy(at.text_input(key="sum_plus").set_value("#9").run())
    assert query_of(at)["words"] == "#7\nthe\n#9"
    assert rankings(at)[0]["lists"][1]["rows"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_table_has_no_vectors(lang):
    at = open_page(model="toy", prompt="tell me", lang=lang)
    assert [i.value for i in at.info] == [catalog(lang)("embeddings.no_vectors")]


def test_a_later_step_reads_all_tokens_so_far():
    at = open_page(made="3", step="2", strategy="greedy")
    data = data_of(at, "embeddings")
    count = len(store().engine("tiny").vocabulary.encode(TEXT).ids) + 2
    assert len(data["tokens"]) == count
    assert data["at"] == count - 1
    assert data["tokens"][-1]["source"] == "generated"
    turn = data_of(at, "rotation")
    assert floats(turn["q"]).size == count * turn["width"]


def test_a_long_text_is_read_again_only_when_asked():
    at = open_page(prompt="x" * 300, lang="en")
    assert "rotation" not in [b.proto.component_name[4:] for b in at.get("bidi_component")]
    assert "300 tokens on this machine" in words(at)
    healthy(at.button(key="rope_read").click().run())
    turn = data_of(at, "rotation")
    assert len(turn["tokens"]) == 300
    assert turn["dot_rows"] == [299]
    assert floats(turn["dots"]).size == 300
    assert len(turn["checks"]) == 1
    assert len(data_of(at, "embeddings")["map"]["alone"]["spots"]) == 300


def test_a_click_moves_the_view_and_the_browser_is_not_trusted():
    from ui.embeddings import _whole

    good = [-1, 0, 4]
    assert all(_whole(value, 5) for value in good)
    assert not any(_whole(value, 5) for value in (5, -2, 1.0, True, "1", None, [1]))


def test_learned_positions_are_shown_as_added_rows(tmp_path):
    from core.models.tiny import tiny_of

    loaded = tiny_of("gpt2")
    loaded.model.save_pretrained(tmp_path)
    loaded.tokenizer.save(str(tmp_path / "tokenizer.json"))
    at = open_page(model=str(tmp_path), at="2")
    shown = data_of(at, "learned")
    row, place, total = (floats(line["values"]) for line in shown["rows"])
    assert row + place == pytest.approx(total, abs=1e-6)
    assert shown["check"]["good"]
    assert data_of(at, "embeddings")["entering"].startswith("Checked: what enters the first layer")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_stored_run_shows_what_it_holds(monkeypatch, lang):
    from core.recorded import recorded_engine
    from ui import state

    monkeypatch.setattr(state, "engine_for", lambda spec: recorded_engine())
    at = open_app(PAGE, ready=False, lang=lang, place="none")
    t = catalog(lang)
    data = data_of(at, "embeddings")
    forward = recorded_engine().forward([t["id"] for t in data["tokens"]])
    assert floats(data["row"]).tolist() == forward.embedding[-1].tolist()
    assert data["neighbours"] is None
    assert data["without"] == t("embeddings.later")
    assert t("fault.model_loading") not in words(at)
    assert not at.info
    assert not at.error
