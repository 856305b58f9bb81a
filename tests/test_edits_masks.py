"""Masks: small matrices worked by hand, and laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.edits.masks import METHODS, scores_of, share_mask, two_of_four, zero_share
from core.faults import Fault

WEIGHTS = np.array([[1.0, -5.0, 2.0, 3.0], [-40.0, 10.0, 20.0, -30.0]])
tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.integers(1, 12)),
    elements=st.floats(-100, 100),
)


def test_the_smallest_of_all_go():
    keep = share_mask(scores_of(WEIGHTS, "magnitude"), 0.5, by_row=False)
    assert keep.tolist() == [[False, False, False, False], [True, True, True, True]]


def test_the_smallest_of_each_row_go():
    keep = share_mask(scores_of(WEIGHTS, "magnitude_row"), 0.5, by_row=True)
    assert keep.tolist() == [[False, True, False, True], [True, False, False, True]]


def test_wanda_asks_what_a_weight_meets():
    scores = scores_of(WEIGHTS, "wanda", norms=np.array([100.0, 1.0, 1.0, 1.0]))
    keep = share_mask(scores, 0.75, by_row=True)
    assert keep.tolist() == [[True, False, False, False], [True, False, False, False]]


def test_two_of_four_keeps_the_two_largest_neighbours():
    row = np.array([[1.0, 4.0, 3.0, 2.0, 9.0, 8.0]])
    assert two_of_four(row).tolist() == [[False, True, True, False, True, True]]


def test_ties_keep_the_later_places_of_a_share_and_the_first_two_of_four():
    flat = np.ones((1, 4))
    assert share_mask(flat, 0.5, by_row=True).tolist() == [[False, False, True, True]]
    assert two_of_four(flat).tolist() == [[True, True, False, False]]


@given(tables, st.floats(0, 1), st.booleans())
def test_as_many_go_as_were_asked_and_none_larger_than_one_that_stays(table, zeros, by_row):
    scores = np.abs(table)
    keep = share_mask(scores, zeros, by_row=by_row)
    rows = zip(scores, keep, strict=True) if by_row else [(scores.ravel(), keep.ravel())]
    for values, kept in rows:
        assert (~kept).sum() == int(zeros * values.size + 1e-9)
        if kept.any() and not kept.all():
            assert values[~kept].max() <= values[kept].min()


@given(tables)
def test_two_of_four_leaves_at_most_two(table):
    keep = two_of_four(np.abs(table))
    for start in range(0, table.shape[1], 4):
        part = keep[:, start : start + 4]
        assert (part.sum(axis=1) == min(2, part.shape[1])).all()


@given(tables)
def test_the_ends_of_the_slider(table):
    scores = np.abs(table)
    assert share_mask(scores, 0.0, by_row=True).all()
    assert not share_mask(scores, 1.0, by_row=False).any()


def test_chance_is_repeated_by_its_seed():
    one, two, other = (scores_of(WEIGHTS, "random", seed=s) for s in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_thirty_per_cent_of_ten_are_three():
    assert zero_share(share_mask(np.arange(10.0)[None], 0.3, by_row=True)) == pytest.approx(0.3)


@pytest.mark.parametrize("zeros", [-0.1, 1.1, float("nan")])
def test_an_impossible_share_is_refused(zeros):
    with pytest.raises(Fault) as caught:
        share_mask(np.ones((2, 2)), zeros, by_row=True)
    assert caught.value.code == "setting_out_of_range"


def test_wanda_needs_a_calibration_text():
    for norms in (None, np.ones(3)):
        with pytest.raises(Fault) as caught:
            scores_of(WEIGHTS, "wanda", norms=norms)
        assert caught.value.code == "wanda_without_norms"


def test_an_unknown_method_is_refused():
    with pytest.raises(Fault) as caught:
        scores_of(WEIGHTS, "magic")  # type: ignore[arg-type]
    assert all(name in str(caught.value.params["allowed"]) for name in METHODS)
