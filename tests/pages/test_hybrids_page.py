"""Hybrids (LFM2, Qwen3-Next): layers without attention are named, the others are read."""

import base64

import numpy as np
import pytest

from tests.families import saved
from tests.pages.app import data_of, open_app, words
from ui.i18n import LANGUAGES
from ui.state import store

PROMPT = "the cat sat on the mat"
HYBRIDS = {
    "lfm2": ([0, 2], [1], "Layers with attention: 2.", "1, 3 (a short convolution"),
    "qwen3_next": ([0, 1, 2], [3], "Layers with attention: 4.", "1–3 (each token updates"),
}


@pytest.fixture(scope="module")
def hybrids(tmp_path_factory):
    place = tmp_path_factory.mktemp("hybrids")
    return {family: saved(place / family, 1, family) for family in HYBRIDS}


@pytest.mark.parametrize("family", HYBRIDS)
def test_the_layers_without_attention_are_named_and_the_others_read(family, hybrids):
    closed, known, readable, reason = HYBRIDS[family]
    at = open_app("3_Attention", model=hybrids[family], prompt=PROMPT, lang="en", head="1", key="0")
    said = words(at)
    assert readable in said
    assert reason in said
    grid, head, cell = (data_of(at, name) for name in ("heads_grid", "head", "cell"))
    assert (grid["known"], grid["closed"], head["closed"]) == (known, closed, closed)
    assert grid["statistics"]["first"][closed[0]] is None
    assert head["layer"] == known[0]
    engine = store().engine(hybrids[family])
    ids = tuple(token["id"] for token in head["tokens"])
    whole = engine.forward(ids).attention[0, head["head"]]
    sent = np.frombuffer(base64.b64decode(head["values"]), dtype="<f4")
    assert sent == pytest.approx(whole[np.tril_indices(len(ids))], abs=1e-6)
    last = np.frombuffer(base64.b64decode(head["last"]), dtype="<f4").reshape(-1, len(ids))
    assert np.isnan(last[closed]).all()
    assert last[known].sum() == pytest.approx(1, abs=1e-5)
    assert cell["equal"]


def test_a_link_to_a_layer_without_attention_shows_the_nearest(hybrids):
    at = open_app("3_Attention", model=hybrids["lfm2"], prompt=PROMPT, lang="en", layer="2")
    assert "Layer 3 was asked for; the nearest layer with attention is layer 2" in words(at)
    assert data_of(at, "head")["layer"] == 1


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("family", HYBRIDS)
def test_the_other_pages_read_what_there_is(family, hybrids, lang):
    closed = HYBRIDS[family][0]
    query = {"model": hybrids[family], "prompt": PROMPT, "lang": lang}
    turning = data_of(open_app("2_Embeddings", **query), "rotation")
    assert turning["closed"] == closed
    assert turning["layer"] not in closed
    home = open_app(**query)
    journey = data_of(home, "journey")
    assert journey["layer"] not in closed
    shares = np.frombuffer(base64.b64decode(journey["attention"]), dtype="<f4")
    shares = shares.reshape(journey["layers"], len(journey["lanes"]), -1)
    assert np.isnan(shares[closed]).all()
    others = [n for n in range(journey["layers"]) if n not in closed]
    assert shares[others].sum(-1) == pytest.approx(1, abs=1e-5)
    layers = open_app("4_Layers", **query, layer="0")
    assert not layers.error
    assert not layers.warning
