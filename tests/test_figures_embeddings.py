"""The Embeddings page's data: exact content, the right way round, nothing merged or made up."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest

from core.ablation import effect
from core.faults import Fault
from core.model_info import Rope
from core.position import rotate
from core.trace import Capture, Edit, Token
from ui.figures.embeddings import (
    Near,
    Rows,
    different,
    entering,
    lookup_data,
    map_data,
    nearest,
    packed,
)
from ui.figures.embeddings_order import order_data
from ui.figures.embeddings_words import EXAMPLE, sum_data, word_of, words_typed
from ui.figures.rotation import (
    Head,
    agrees_without,
    head_of,
    learned_data,
    offered,
    rotation_data,
    telling_pair,
    turned_again,
)
from ui.figures.words import tiny as tiny_text
from ui.i18n import bound, catalog

HOSTILE = "<b>$x$</b>" * 30


def floats(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


def label(id: int) -> str:
    return HOSTILE if id == 7 else f"t{id}"


def tokens(*ids: int) -> list[Token]:
    return [
        Token(
            id=id,
            position=i,
            text="x",
            label=label(id),
            piece="x",
            bytes=b"x",
            special=False,
            source="prompt",
            group=(i, i + 1),
            span=(i, i + 1),
        )
        for i, id in enumerate(ids)
    ]


# --- the look-up and the map


def test_the_row_in_view_is_sent_whole():
    rows = np.array([[1, 2, 3], [-4, 0.5, 0]], dtype=np.float32)
    data = lookup_data(tokens(7, 9), 1, rows, stored=True)
    assert floats(data["row"]).tolist() == [-4, 0.5, 0]
    assert (data["width"], data["lowest"], data["highest"]) == (3, -4, 0.5)
    assert data["length"] == pytest.approx(16.25**0.5)
    assert [t["label"] for t in data["tokens"]] == [HOSTILE, "t9"]
    assert json.loads(json.dumps(data)) == data


def test_how_a_row_enters_the_first_layer():
    row = np.array([1, -2, 0.5], dtype=np.float32)
    place = np.array([0.1, 0.2, 0.3], dtype=np.float32)
    assert entering(row, row, None).kind == "same"
    scaled = entering(row, row * np.float32(25.298221), None)
    assert (scaled.kind, scaled.factor) == ("scaled", pytest.approx(25.298221, rel=1e-6))
    assert entering(row, row + place, place).kind == "added"
    other = entering(row, row + np.float32(1), None)
    assert (other.kind, other.difference) == ("other", 1.0)


def test_nearest_leaves_out_and_stops():
    found = nearest(np.array([5, 6, 7]), np.array([0.9, 0.8, 0.7]), 2, without=(5,))
    assert found == [Near(6, 0.8), Near(7, 0.7)]


def test_a_repeated_token_is_drawn_as_often_as_it_occurs():
    vectors = np.array([[0, 0], [3, 4], [0, 0], [9, 12]], dtype=np.float32)
    data = map_data([7, 9, 7, 8], vectors, None, label)["alone"]
    assert [round(x, 6) for x, _, _ in data["spots"]] == [
        -6.666667,
        -1.666667,
        -6.666667,
        8.333333,
    ]
    assert data["spots"][0] == data["spots"][2]
    assert data["rows"] == 3
    assert data["explained"] == pytest.approx([1, 0, 0], abs=1e-9)
    assert different([7, 9, 7, 8], vectors).ids == (7, 9, 8)


def test_the_map_is_not_transposed():
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(4, 9)).astype(np.float32)
    data = map_data([1, 2, 3, 4], vectors, None, label)["alone"]
    assert np.array(data["spots"]).shape == (4, 3)
    spots = np.array(data["spots"])
    distances = np.linalg.norm(vectors[0] - vectors[1]), np.linalg.norm(spots[0] - spots[1])
    assert distances[0] == pytest.approx(distances[1], rel=1e-5)


def test_near_rows_have_a_map_of_their_own_and_no_token_twice():
    vectors = np.eye(2, dtype=np.float32)
    near = Rows((9, 20, 21), np.array([[0, 1], [2, 2], [5, 0]], dtype=np.float32))
    data = map_data([7, 9], vectors, near, label)
    assert data["among"]["rows"] == 4
    assert [other["id"] for other in data["among"]["others"]] == [20, 21]
    assert len(data["among"]["spots"]) == 2
    assert data["alone"]["rows"] == 2


# --- sums of words


def test_words_become_tokens_or_sentences(tiny):
    vocabulary = tiny.vocabulary
    the = word_of("the", vocabulary)
    assert (vocabulary.label(the.id), the.spaced) == ("␣the", True)
    assert word_of(" #5 ", vocabulary).id == 5
    assert vocabulary.label(word_of("x", vocabulary).id) == "x"
    for typed, code in [
        ("", "word_empty"),
        ("queen", "word_several_tokens"),
        ("#99999", "unknown_token"),
    ]:
        with pytest.raises(Fault) as caught:
            word_of(typed, vocabulary)
        assert caught.value.code == code
    with pytest.raises(Fault) as caught:
        word_of("<|im_end|>", vocabulary)
    assert caught.value.params["n"] > 1


@pytest.mark.model
def test_chinese_words_are_taken_without_a_space(gemma3):
    assert gemma3.vocabulary.label(word_of("中国", gemma3.vocabulary).id) == "中国"
    assert gemma3.vocabulary.label(word_of("king", gemma3.vocabulary).id) == "␣king"


def test_three_lines_are_three_words():
    assert words_typed("") == EXAMPLE
    assert words_typed("a") == ("a", "", "")
    assert words_typed("a\nb\nc\nd") == ("a", "b", "c")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_sum_is_shown_without_and_with_its_inputs(tiny, lang):
    t = catalog(lang)
    words = [word_of(word, tiny.vocabulary) for word in ("#7", "#8", "#9")]
    ids, cosines = [7, 3, 9, 4], [0.9, 0.8, 0.7, -0.1]
    data = sum_data(words, ids, cosines, label, t)
    excluded, included = data["lists"]
    assert [row["id"] for row in excluded["rows"]] == [3, 4]
    assert [(row["id"], row["marked"]) for row in included["rows"]] == [
        (7, True),
        (3, False),
        (9, True),
        (4, False),
    ]
    assert data["verdict"] == t("embeddings.sum_stays", token=HOSTILE, cosine="0.900")
    data = sum_data(words, [3, 7], [0.9, 0.8], label, t)
    assert data["verdict"] == t("embeddings.sum_leaves", token="t3", cosine="0.900")


@pytest.mark.model
def test_the_famous_sum_with_the_default_model(smollm2):
    from core.geometry import analogy

    ids = [word_of(word, smollm2.vocabulary).id for word in EXAMPLE]
    near, cosines = smollm2.neighbours(analogy(*smollm2.embeddings(ids)), 2)
    assert [smollm2.vocabulary.label(int(i)) for i in near] == ["␣queen", "␣king"]
    assert cosines.tolist() == pytest.approx([0.716, 0.692], abs=0.002)


# --- the order undone


def test_both_rankings_stand_side_by_side():
    before, after = np.array([3.0, 2, 1, 0]), np.array([0.0, 1, 2, 3])
    change = effect(before, after, 0)
    mixed = [replace(t, position=i) for i, t in enumerate(tokens(2, 1, 3))]
    t = catalog("en")
    data = order_data(change, tokens(1, 2, 3), mixed, label, t)
    first, second = data["lists"]
    assert [row["id"] for row in first["rows"]] == [0, 1, 2, 3]
    assert [row["id"] for row in second["rows"]] == [3, 2, 1, 0]
    assert [row["rank"] for row in second["rows"]] == [1, 2, 3, 4]
    assert [row["aside"] for row in second["rows"]] == ["was 4", "was 3", "was 2", "was 1"]
    assert [token["moved"] for token in second["tokens"]] == [True, True, False]
    assert not any(token["moved"] for token in first["tokens"])
    p = np.exp(before) / np.exp(before).sum()
    q = p[::-1]
    assert data["headline"] == t("embeddings.order_kl", kl=f"{(p * np.log2(p / q)).sum():.3f}")
    assert bound("rank 1) → 3.2 % (rank 4)") in data["verdict"]
    assert [row["marked"] for row in first["rows"]] == [True, False, False, False]


# --- rotation

ROPE = Rope(frequencies=np.array([1.0, 0.01], dtype=np.float32), dims=4, layout="halves")


def made_head(count: int) -> tuple[Head, np.ndarray, np.ndarray]:
    q, k = np.random.default_rng(5).normal(size=(2, count, 6))
    places = np.arange(count)
    turned = rotate(q, places, ROPE), rotate(k, places, ROPE)
    return Head(1, 3, 1, *(x.astype(np.float32) for x in turned), ROPE), q, k


def test_what_is_sent_is_without_position_and_the_products_are_the_model_s():
    head, q, k = made_head(5)
    data = rotation_data(head, tokens(1, 2, 3, 4, 5), 4, 1, -1)
    assert floats(data["q"]).reshape(5, 6) == pytest.approx(q, abs=1e-6)
    assert floats(data["k"]).reshape(5, 6) == pytest.approx(k, abs=1e-6)
    dots = floats(data["dots"]).reshape(5, 5)
    assert dots[4, 1] == pytest.approx(head.queries[4] @ head.keys[1], abs=1e-5)
    assert abs(dots[4, 1] - dots[1, 4]) > 1e-3
    assert data["dot_rows"] == [0, 1, 2, 3, 4]
    assert (data["query"], data["key"], data["dims"], data["width"]) == (4, 1, 4, 6)
    assert turned_again(head) < 1e-12
    assert json.loads(json.dumps(data)) == data


def test_a_long_text_offers_its_end_and_what_is_in_view():
    assert offered(5, 64, (4, 0)) == [0, 1, 2, 3, 4]
    places = offered(10_000, 256, (9_999, 3))
    assert places[0] == 3
    assert places[1:] == list(range(10_000 - 732, 10_000))
    assert len(places) * 256 * 8 < 1_600_000


def test_the_telling_pair_turns_within_the_text():
    q, k = np.array([1.0, 50, 0, 0]), np.array([1.0, 50, 0, 0])
    assert telling_pair(q, k, ROPE, tokens=5) == 0
    assert telling_pair(q, k, ROPE, tokens=500) == 1
    slow = Rope(frequencies=np.array([1e-4, 1e-5]), dims=4, layout="halves")
    assert telling_pair(q, k, slow, tokens=5) == 1


def test_heads_share_their_keys(tiny):
    ids = tiny.vocabulary.encode("the in the").ids
    forward = tiny.forward(ids, capture=Capture(attention=False, scores=True, layer=1))
    head = head_of(forward, 1, 3, tiny.rope(1))
    assert head.kv_head == 1
    assert np.array_equal(head.queries, forward.queries[0, 3])
    assert np.array_equal(head.keys, forward.keys[0, 1])
    assert head_of(forward, 0, 0, tiny.rope(0)) is None
    assert head_of(tiny.forward(ids), 1, 0, tiny.rope(1)) is None


def test_turning_back_is_checked_against_a_text_read_without_positions(tiny):
    ids = tiny.vocabulary.encode("the in the in the in").ids
    scores = Capture(attention=False, scores=True, layer=0)
    head = head_of(tiny.forward(ids, capture=scores), 0, 1, tiny.rope(0))
    plain = head_of(
        tiny.forward(ids, capture=scores, edit=Edit(positions="none")), 0, 1, tiny.rope(0)
    )
    assert agrees_without(head, plain) < 1e-6
    wrong = replace(head, rope=replace(head.rope, frequencies=head.rope.frequencies * 1.01))
    assert agrees_without(wrong, plain) > 1e-3


def test_learned_positions_are_added():
    from core.engine.local import LocalEngine
    from core.models.tiny import tiny_of

    engine = LocalEngine(tiny_of("gpt2"))
    ids = engine.vocabulary.encode("the in the").ids
    forward = engine.forward(ids)
    table = engine.position_table(range(10))
    data = learned_data(tokens(*ids), 2, engine.embeddings(ids)[2], table, forward.embedding[2])
    assert data["difference"] < 1e-6
    row, place, total = (floats(values) for values in data["values"])
    assert row + place == pytest.approx(total, abs=1e-6)
    assert floats(data["cosines"])[2] == pytest.approx(1)
    how = entering(engine.embeddings(ids)[2], forward.embedding[2], table[2])
    assert how.kind == "added"


def test_small_differences_are_written_as_powers_of_ten():
    assert [tiny_text(x) for x in (0, 5.44e-8, 0.25)] == ["0", "5.4 × 10⁻⁸", "2.5 × 10⁻¹"]


def test_packed_numbers_are_little_endian():
    assert base64.b64decode(packed(np.array([1.0]))) == b"\x00\x00\x80\x3f"
