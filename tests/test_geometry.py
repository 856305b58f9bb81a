"""Cosines, principal components and sums of words, against answers made by hand or by numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.geometry import analogy, cosine, principal


def test_cosines_of_known_angles():
    rows = np.array([[2, 0], [0, 3], [-5, 0], [1, 1], [0, 0]], dtype=np.float32)
    found = cosine(rows, np.array([4.0, 0.0]))
    assert found.tolist() == pytest.approx([1, 0, -1, 2**-0.5, 0], abs=1e-15)
    assert cosine(rows, np.zeros(2)).tolist() == [0, 0, 0, 0, 0]


def test_a_sum_of_words_takes_the_vectors_as_they_are():
    king, man, woman = np.array([3.0, 1]), np.array([1.0, 1]), np.array([1.0, 4])
    assert analogy(king, man, woman).tolist() == [3, 4]


def test_points_on_a_line_have_one_component():
    rows = np.outer([0, 1, 2, 5], [3.0, 4.0, 0.0]) + np.full(3, 7)
    found = principal(rows, 3)
    assert found.explained.tolist() == pytest.approx([1, 0, 0], abs=1e-15)
    assert found.coordinates[:, 0].tolist() == pytest.approx([-10, -5, 0, 15])
    assert found.coordinates[:, 1:].tolist() == [[0, 0]] * 4


def test_a_cross_in_the_plane_has_its_two_arms():
    rows = np.array([[4.0, 0, 0], [-4, 0, 0], [0, 0, 3], [0, 0, -3]])
    found = principal(rows, 2)
    assert found.explained.tolist() == pytest.approx([16 / 25, 9 / 25])
    assert np.abs(found.coordinates).tolist() == [
        pytest.approx(row, abs=1e-12) for row in ([4, 0], [4, 0], [0, 3], [0, 3])
    ]


@pytest.mark.parametrize("rows", [np.full((1, 5), 0.3), np.full((6, 5), 0.1, dtype=np.float32)])
def test_rows_that_do_not_differ_have_no_picture(rows):
    found = principal(rows, 3)
    assert found.coordinates.shape == (len(rows), 3)
    assert not found.coordinates.any()
    assert not found.explained.any()


@given(st.integers(0, 10_000), st.integers(2, 30), st.integers(1, 30))
def test_components_are_those_of_the_covariance(seed, count, width):
    rows = np.random.default_rng(seed).normal(size=(count, width)) @ np.diag(
        np.arange(1, width + 1)
    )
    found = principal(rows, 3)
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(rows.T, bias=True)))
    expected = np.zeros(3)
    known = min(3, width)
    expected[:known] = (values[::-1] / values.sum())[:known]
    assert found.explained.tolist() == pytest.approx(expected.tolist(), abs=1e-9)
    projected = (rows - rows.mean(0)) @ vectors[:, ::-1][:, :1]
    assert np.abs(found.coordinates[:, 0]).tolist() == pytest.approx(
        np.abs(projected[:, 0]).tolist(), abs=1e-5 * np.abs(projected).max()
    )
    tips = np.abs(found.coordinates).argmax(axis=0)
    assert (found.coordinates[tips, range(3)] >= 0).all()


def test_the_same_rows_give_the_same_picture():
    rows = np.random.default_rng(1).normal(size=(40, 8)).astype(np.float32)
    first, second = principal(rows, 3), principal(rows.copy(), 3)
    assert np.array_equal(first.coordinates, second.coordinates)
