"""What the Attention page draws: the right way round, the right numbers, small enough."""

import base64

import numpy as np
import pytest

from core.ablation import effect
from core.engine.local import LocalEngine
from core.heads import layer_map, statistics
from core.models.tiny import tiny_of
from core.trace import Capture, Edit
from core.weight import derive
from ui.attention import wanted
from ui.figures.attention import (
    MOST_VALUES,
    THUMB,
    Digest,
    first_row,
    grid_data,
    head_data,
    pictures,
    sharing,
    sink,
    triangle,
)
from ui.figures.attention_ablation import Texts, attribution_data, edit_of, effect_data
from ui.figures.attention_cell import cell_data
from ui.view import OFF_CAP, View


def floats(text):
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


def lower(total, seed=0):
    """A map whose rows add up to 1 and see nothing later."""
    rows = np.tril(np.random.default_rng(seed).random((total, total)) ** 4)
    return (rows / rows.sum(axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def engine():
    return LocalEngine(tiny_of("llama"))


IDS = tuple(range(40, 52))


def test_small_pictures_have_the_query_as_row():
    weights = np.zeros((1, 4, 4), dtype=np.float32)
    weights[0] = np.eye(4)
    weights[0, 3] = [0.25, 0, 0, 0.75]
    picture = pictures(weights)[0]
    assert picture[3, 0] == round(255 * 0.5)
    assert picture[0, 3] == 0
    assert picture[1, 1] == 255


def test_a_pixel_of_a_long_text_shows_the_largest_of_its_weights():
    total = 70
    weights = lower(total)[None]
    picture = pictures(weights)[0]
    assert picture.shape == (24, 24)
    for row, column in ((5, 2), (23, 0), (7, 7), (2, 5)):
        block = weights[0, 3 * row : 3 * row + 3, 3 * column : 3 * column + 3]
        assert picture[row, column] == round(255 * np.sqrt(block.max()))
    assert max(pictures(lower(n)[None]).shape[1] for n in (1, 32, 33, 64, 65, 1000)) <= THUMB


def test_the_triangle_is_the_map_row_by_row():
    weights = lower(9)
    packed = triangle(weights)
    for query in range(9):
        for key in range(query + 1):
            assert packed[query * (query + 1) // 2 + key] == weights[query, key]
    swapped = triangle(np.ascontiguousarray(weights.T))
    assert not np.allclose(packed, swapped)
    assert (triangle(weights, 6) == packed[6 * 7 // 2 :]).all()


def test_a_very_long_map_is_sent_from_a_later_row_on():
    assert first_row(512) == first_row(1000) == 0
    first = first_row(2000)
    kept = 2000 * 2001 // 2 - first * (first + 1) // 2
    assert kept <= MOST_VALUES < kept + first


def test_head_data_carries_exact_weights_and_says_what_is_shared(engine):
    forward = engine.forward(IDS)
    tokens = engine.vocabulary.tokens(IDS, len(IDS))
    weights = layer_map([forward], 1)[3]
    data = head_data(weights, None, tokens, engine.info, layer=1, head=3, window=None)
    values = floats(data["values"])
    assert values[11 * 12 // 2 + 4] == forward.attention[1, 3, 11, 4]
    assert values.size == 12 * 13 // 2
    assert [t["id"] for t in data["tokens"]] == list(IDS)
    assert (data["kv_head"], data["sharing"]) == (1, [2, 3])
    with pytest.raises(ValueError, match="11 tokens for a map of 12"):
        head_data(weights, None, tokens[:11], engine.info, layer=1, head=3, window=None)


def test_query_heads_that_share_a_kv_head(engine):
    assert [sharing(engine.info, head) for head in range(4)] == [(0, 1), (0, 1), (2, 3), (2, 3)]


def test_the_grid_holds_known_layers_and_marks_the_others(engine):
    forward = engine.forward(IDS)
    maps = layer_map([forward], 1)
    digest = Digest(pictures(maps), statistics(maps, IDS))
    scores = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, np.nan]])
    data = grid_data({1: digest}, engine.info, 12, scores)
    assert (data["known"], data["side"], data["pool"]) == ([1], 12, 1)
    raw = np.frombuffer(base64.b64decode(data["pictures"]), dtype="u1").reshape(1, 4, 12, 12)
    assert (raw[0] == digest.pictures).all()
    assert data["statistics"]["induction"] == [None, [0.5, 0.6, 0.7, None]]
    assert data["statistics"]["first"][0] is None
    entropy = digest.statistics.entropy / np.log(2)
    assert data["statistics"]["entropy"][1] == pytest.approx(entropy, abs=1e-4)
    assert sink({1: digest}) == pytest.approx(maps[:, 1:, 0].mean(), abs=1e-6)
    assert sink({}) is None
    assert grid_data({}, engine.info, 12, None)["pictures"] == ""


def test_the_steps_of_one_weight_add_up(engine):
    forward = engine.forward(IDS, capture=Capture(scores=True, layer=0))
    tokens = engine.vocabulary.tokens(IDS, len(IDS))
    data = cell_data(derive(forward, 0, 2, 7, 3), tokens, engine.info, window=None)
    assert np.dot(data["q"], data["k"]) == pytest.approx(data["dot"], abs=1e-9)
    assert [row[0] for row in data["rows"]] == list(range(9))
    assert data["rows"][8][1] is not None
    assert data["rows"][8][2] is None, "the key behind the query is masked"
    position, _, score, raised, weight, captured = data["rows"][3]
    assert score == pytest.approx(data["dot"] * data["scaling"], abs=1e-9)
    assert raised / data["sum"] == pytest.approx(weight, abs=1e-9)
    assert captured == forward.attention[0, 2, 7, position]
    assert sum(row[4] for row in data["rows"]) == pytest.approx(1, abs=1e-9)
    assert data["equal"]
    assert data["visible"]
    assert data["plain_scaling"]
    later = cell_data(derive(forward, 0, 2, 7, 9), tokens, engine.info, window=None)
    assert (later["weight"], later["visible"], later["future"]) == (0, False, True)


def test_an_edit_holds_only_what_the_model_has(engine):
    off = ((0, -1), (0, 2), (1, 3), (1, 9), (7, 0))
    assert edit_of(off, engine.info) == Edit(heads_off=((1, 3),), layers_off=(0,))


def test_the_effect_names_tokens_and_where_the_texts_part():
    before, after = np.log([0.5, 0.25, 0.25]), np.log([0.25, 0.25, 0.5])
    found = effect(before, after, 0, top=3)
    texts = Texts((1, 2, 0), (1, 0, 0))
    data = effect_data(found, texts, Edit(heads_off=((1, 3),), layers_off=(0,)), "abc".__getitem__)
    assert data["off"] == [[0, -1], [1, 3]]
    assert [row["label"] for row in data["rows"]] == ["a", "b", "c"]
    assert data["chosen"]["label"] == "a"
    assert data["kl"] == pytest.approx(0.25, abs=1e-9)
    assert data["texts"] == {"before": ["b", "c", "a"], "after": ["b", "a", "a"], "same": 1}


def test_attribution_stands_beside_the_attention_of_the_last_row(engine):
    tokens = engine.vocabulary.tokens(IDS[:3], 3)
    row = np.array([0.5, 0.25, 0.25])
    data = attribution_data(np.array([1.0, -2.0, 0.5]), row, tokens, "x", 3.0)
    assert data["values"] == [1, -2, 0.5]
    assert data["attention"] == [0.5, 0.25, 0.25]
    assert data["sum"] == -0.5


def test_a_click_changes_only_what_it_may():
    view = View(off=((1, 2),))
    assert wanted({"do": "look", "layer": 3, "head": -1, "x": 1}, view) == {"layer": 3, "head": -1}
    assert wanted({"do": "off", "layer": 0, "head": -1}, view) == {"off": ((0, -1), (1, 2))}
    assert wanted({"do": "on", "layer": 1, "head": 2}, view) == {"off": ()}
    assert wanted({"do": "all_on"}, view) == {"off": ()}
    full = View(off=tuple((n, 0) for n in range(OFF_CAP)))
    nonsense = [
        None, "look", {}, {"do": "look", "layer": "3"}, {"do": "look", "layer": True},
        {"do": "look", "at": 2**40}, {"do": "off", "layer": -1, "head": 0}, {"do": "off"},
        {"do": ["off"]}, {"do": "look", "key": -2}, {"do": "look", "key": 1.5},
    ]  # fmt: skip
    assert [wanted(event, view) for event in nonsense] == [{}] * len(nonsense)
    assert wanted({"do": "off", "layer": 900, "head": 1}, full) == {}
