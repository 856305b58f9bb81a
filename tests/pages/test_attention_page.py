"""The Attention page without a browser: what is sent, what is said, and how much."""

import base64
from dataclasses import replace

import numpy as np
import pytest

from core.engine import cost
from tests.pages.app import data_of, healthy, open_app, words
from ui.i18n import catalog


def weights_of(data: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(data["values"]), dtype="<f4")


@pytest.mark.model
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_grid_head_and_cell_show_the_step_in_view(lang, default_model, smollm2):
    at = open_app("3_Attention", lang=lang, layer="10", head="3", key="2", at="4")
    ids = smollm2.vocabulary.read("The capital of France is").ids
    attention = smollm2.forward(ids).attention
    grid, head, cell = (data_of(at, name) for name in ("heads_grid", "head", "cell"))
    assert (grid["layers"], grid["heads"], grid["known"]) == (30, 9, list(range(30)))
    assert grid["statistics"]["induction"][18][6] > 0.9
    assert weights_of(head)[4 * 5 // 2 + 2] == pytest.approx(attention[10, 3, 4, 2], abs=1e-6)
    assert (head["layer"], head["head"], head["at"], head["key"]) == (10, 3, 4, 2)
    assert cell["captured"] == pytest.approx(attention[10, 3, 4, 2], abs=1e-6)
    assert cell["equal"]
    assert cell["sharing"] == [3, 4, 5]
    assert data_of(at, "ablation")["off"] == []


@pytest.mark.model
def test_generated_tokens_have_their_rows_and_a_link_opens_them(default_model):
    at = open_app("3_Attention", made="4", step="3", layer="2", head="-1", strategy="greedy")
    head = data_of(at, "head")
    assert len(head["tokens"]) == 8
    assert [t["source"] for t in head["tokens"]][-3:] == ["generated"] * 3
    values = weights_of(head)
    rows = [values[n * (n + 1) // 2 : (n + 1) * (n + 2) // 2] for n in range(8)]
    assert [row.sum() for row in rows] == pytest.approx([1] * 8, abs=1e-5)
    assert catalog("en")("attention.cell_mean") in words(at)


@pytest.mark.model
def test_places_that_the_model_lacks_are_brought_within_it(default_model):
    at = open_app("3_Attention", layer="99", head="77", at="500", key="600", off="99:1,3:88")
    head = data_of(at, "head")
    assert (head["layer"], head["head"], head["at"], head["key"]) == (29, 8, 4, -1)
    assert data_of(at, "ablation")["off"] == []


@pytest.mark.model
def test_switched_off_heads_change_the_next_token(default_model):
    at = open_app("3_Attention", off="0:-1,10:3", layer="10", head="3")
    data = data_of(at, "ablation")
    assert data["off"] == [[0, -1], [10, 3]]
    assert data["kl"] > 0.1
    assert data["chosen"]["label"] == "␣Paris"
    assert data["chosen"]["before"] == pytest.approx(0.773, abs=0.01)
    assert data["texts"] is None
    healthy(at.button(key="attention_go").click().run())
    texts = data_of(at, "ablation")["texts"]
    assert texts["before"] == ["␣Paris", ".", "<|im_end|>"]
    assert len(texts["after"]) == 8
    assert texts["same"] == 0
    assert data_of(healthy(at.run()), "ablation")["texts"] == texts


@pytest.mark.model
def test_attribution_is_a_choice_and_stays_in_the_link(default_model, smollm2):
    at = open_app("3_Attention", why="gradient", layer="10", head="3")
    data = data_of(at, "attribution")
    ids = smollm2.vocabulary.read("The capital of France is").ids
    paris = smollm2.vocabulary.search("␣Paris")[0]
    assert data["values"] == pytest.approx(list(smollm2.attribution(ids, paris)), abs=1e-3)
    assert data["target"] == "␣Paris"
    assert sum(data["attention"]) == pytest.approx(1, abs=1e-5)


@pytest.mark.model
def test_a_text_too_long_to_keep_is_read_one_layer_at_a_time(default_model, monkeypatch):
    monkeypatch.setattr(cost, "attention_limit", lambda: 5_000)
    at = open_app("3_Attention", layer="4", head="1", prompt="The largest city of Peru is")
    assert "too large to keep" in words(at)
    assert data_of(at, "heads_grid")["known"] == [4]
    rows = weights_of(data_of(at, "head"))
    assert rows[0] == 1
    place = at.session_state["place"]
    at.session_state["place"] = replace(place, view=replace(place.view, layer=20))
    healthy(at.run())
    assert data_of(at, "heads_grid")["known"] == [4, 20]
    assert data_of(at, "head")["layer"] == 20


def test_the_stored_run_shows_its_maps_and_says_what_waits(monkeypatch):
    from ui import state

    monkeypatch.setattr(state, "engine_for", lambda spec: state.recorded_engine())
    at = open_app("3_Attention", ready=False, layer="10", head="3", key="2", off="1:1")
    assert data_of(at, "heads_grid")["known"] == list(range(30))
    assert data_of(at, "heads_grid")["statistics"]["induction"][0] == [None] * 9
    assert [note.value for note in at.info] == [catalog("en")("attention.later")]
    assert not at.warning


def test_a_table_has_no_attention():
    at = open_app("3_Attention", model="toy", prompt="the", lang="en")
    assert catalog("en")("attention.no_layers") in words(at)


def test_tiny_models_are_shown_with_their_shared_heads():
    at = open_app("3_Attention", model="tiny", prompt="Hi there", layer="1", head="3", key="0")
    head = data_of(at, "head")
    assert (head["layers"], head["heads"], head["sharing"]) == (2, 4, [2, 3])
    assert data_of(at, "cell")["equal"]
