"""Rotary positions: exact turns, the law of the distance, and the models' own q and k."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model_info import Rope
from core.position import members, relative, rotate, shuffled, unrotate, wavelengths
from core.trace import Capture, Edit

QUARTER = np.pi / 2


def rope(frequencies, dims=None, layout="halves", scaling=1.0) -> Rope:
    speeds = np.array(frequencies, dtype=np.float32)
    return Rope(frequencies=speeds, dims=dims or 2 * speeds.size, layout=layout, scaling=scaling)


def test_which_numbers_make_a_pair():
    assert members(rope([1, 1, 1])).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert members(rope([1, 1, 1], layout="pairs")).tolist() == [[0, 1], [2, 3], [4, 5]]


def test_a_quarter_turn():
    vector = np.array([1.0, 2.0, 10.0, 20.0, 7.0])
    turned = rotate(vector, 1, rope([QUARTER, 0]))
    assert turned.tolist() == pytest.approx([-10, 2, 1, 20, 7], abs=1e-6)
    turned = rotate(vector, 1, rope([QUARTER, 0], layout="pairs"))
    assert turned.tolist() == pytest.approx([-2, 1, 10, 20, 7], abs=1e-6)
    assert rotate(vector, 0, rope([QUARTER, 0])).tolist() == vector.tolist()


def test_wavelengths_are_whole_turns():
    found = wavelengths(rope([2 * np.pi, QUARTER, 0]))
    assert found.tolist() == pytest.approx([1, 4, np.inf], rel=1e-6)


def test_a_row_is_turned_by_its_own_position():
    rows = np.tile([1.0, 0.0], (2, 3, 1))
    turned = rotate(rows, [0, 1, 2], rope([QUARTER]))
    assert turned.shape == (2, 3, 2)
    assert turned[1].tolist() == [pytest.approx(v, abs=1e-6) for v in ([1, 0], [0, 1], [-1, 0])]


@given(
    seed=st.integers(0, 10_000),
    places=st.tuples(*[st.integers(0, 4000)] * 3),
    layout=st.sampled_from(["halves", "pairs"]),
    scaling=st.sampled_from([1.0, 1.3]),
)
def test_the_dot_product_depends_on_the_distance_alone(seed, places, layout, scaling):
    m, n, shift = places
    q, k = np.random.default_rng(seed).normal(size=(2, 10))
    law = rope(10000.0 ** -(np.arange(4) / 4), layout=layout, scaling=scaling)
    here = rotate(q, m, law) @ rotate(k, n, law)
    there = rotate(q, m + shift, law) @ rotate(k, n + shift, law)
    assert there == pytest.approx(here, abs=1e-9)
    found = relative(q, k, law, [m - n])
    assert found.whole[0] == pytest.approx(here, abs=1e-9)
    first, second = members(law).T
    turned = rotate(q, m, law) * rotate(k, n, law)
    assert found.pairs[0].tolist() == pytest.approx(turned[first] + turned[second], abs=1e-9)
    assert unrotate(rotate(q, m, law), m, law).tolist() == pytest.approx(q.tolist(), abs=1e-12)


def test_a_shuffle_keeps_what_it_promises():
    ids = (1, 10, 11, 12, 13, 2, 14)
    found = shuffled(ids, {1, 2}, seed=7)
    assert found == shuffled(ids, {1, 2}, seed=7)
    assert found != ids
    assert (found[0], found[5], found[6]) == (1, 2, 14)
    assert sorted(found) == sorted(ids)
    assert len({shuffled(ids, {1, 2}, seed=s) for s in range(40)}) > 5


@pytest.mark.parametrize("ids", [(), (5,), (5, 6), (5, 5, 5, 6), (1, 5, 1, 6)])
def test_there_may_be_no_other_order(ids):
    assert shuffled(ids, {1}, seed=0) is None


# --- the models' own numbers


def check_model(engine, layer, ids):
    """In a layer into which nothing is mixed yet, q and k without position are what turns."""
    turn = engine.rope(layer)
    kept = engine.forward(ids, capture=Capture(scores=True, layer=layer))
    none = engine.forward(
        ids, capture=Capture(scores=True, layer=layer), edit=Edit(positions="none")
    )
    places = np.arange(len(ids))
    for used, plain in ((kept.queries, none.queries), (kept.keys, none.keys)):
        size = max(1.0, float(np.abs(used).max()))
        assert np.abs(rotate(plain[0], places, turn) - used[0]).max() < 1e-5 * size
        assert np.abs(unrotate(used[0], places, turn) - plain[0]).max() < 1e-5 * size
        back = rotate(unrotate(used[0], places, turn), places, turn)
        assert np.abs(back - used[0]).max() < 1e-6 * size


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3", "gemma3", "mistral", "phi"])
def test_the_first_layer_s_q_and_k_are_turned_like_this(name):
    from core.engine.local import LocalEngine
    from core.models.tiny import tiny_of

    engine = LocalEngine(tiny_of(name))
    check_model(engine, 0, engine.vocabulary.encode("one two one two one").ids)


@pytest.mark.model
def test_the_default_model_s_q_and_k_are_turned_like_this(smollm2):
    check_model(smollm2, 0, smollm2.vocabulary.encode("The king and the queen of the land").ids)
