"""Round-to-nearest: hand-worked rows, and laws that hold for every matrix."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.edits.grid import SPANS, Grid, on_grid, round_to
from core.faults import Fault

LAWS = json.loads((Path(__file__).parent / "laws" / "decoding.json").read_text())["quantization"]

grids = st.builds(
    Grid,
    bits=st.integers(2, 8),
    span=st.sampled_from(SPANS),
    group=st.sampled_from([1, 3, 4, 32, 128]),
    symmetric=st.booleans(),
)
weights = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 4), st.integers(1, 9)),
    elements=st.floats(-1e3, 1e3, width=32),
)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law["law"])
def test_the_rows_worked_by_hand(law):
    row = np.array([law["weights"]])
    found = round_to(row, Grid(bits=law["bits"], span="tensor"))
    assert found.codes[0].tolist() == law["codes"]
    assert found.scale[0, 0] == pytest.approx(law["scale"], abs=1e-6)
    assert np.abs(found.values - row).max() == pytest.approx(law["max_error"], abs=1e-4)


def test_an_asymmetric_grid_runs_from_the_smallest_to_the_largest():
    found = round_to(np.array([[-1.0, 0.0, 2.0]]), Grid(bits=2, span="channel", symmetric=False))
    assert (found.scale[0, 0], found.offset[0, 0]) == (1.0, -1.0)
    assert found.codes.tolist() == [[0, 1, 3]]
    assert found.values.tolist() == [[-1.0, 0.0, 2.0]]


def test_halves_go_to_the_even_code():
    found = round_to(np.array([[0.5, 1.5, 2.5, -0.5, -1.5, 7.0]]), Grid(bits=4, span="channel"))
    assert found.scale[0, 0] == 1.0
    assert found.codes.tolist() == [[0, 2, 2, 0, -2, 7]]


def test_each_span_has_its_own_scale():
    table = np.array([[1.0, 2.0, 30.0, 40.0], [0.1, 0.2, 0.3, 7.0]])
    scales = {span: round_to(table, Grid(bits=4, span=span, group=2)).scale * 7 for span in SPANS}
    assert scales["tensor"].tolist() == [[40.0], [40.0]]
    assert scales["channel"].tolist() == [[40.0], [7.0]]
    assert np.allclose(scales["group"], [[2.0, 40.0], [0.2, 7.0]])


def test_an_outlier_spoils_its_own_group_alone():
    row = np.array([[0.1, -0.2, 0.3, -0.4, 0.1, 0.2, 0.3, 100.0]])
    alone = np.abs(round_to(row, Grid(bits=4, span="group", group=4)).values - row)
    shared = np.abs(round_to(row, Grid(bits=4, span="channel")).values - row)
    assert alone[0, :4].max() < 0.03
    assert np.allclose(shared[0, :7], np.abs(row[0, :7]), atol=1e-6)


@given(weights, grids)
def test_the_error_is_at_most_half_a_scale(table, grid):
    found = round_to(table, grid)
    size = min(grid.group, table.shape[1]) if grid.span == "group" else table.shape[1]
    half = np.repeat(found.scale, size, axis=1)[:, : table.shape[1]] / 2
    slack = 1e-6 * (1 + np.abs(table))
    assert (np.abs(found.values - table) <= half + slack).all()


@given(weights, grids)
def test_codes_stay_on_the_grid(table, grid):
    codes = round_to(table, grid).codes
    assert len(np.unique(codes)) <= grid.levels
    assert codes.max() - codes.min() <= grid.levels - 1


@given(weights, grids)
def test_rounding_twice_changes_nothing(table, grid):
    once = round_to(table, grid).values
    assert np.allclose(round_to(once, grid).values, once, rtol=1e-5, atol=1e-5)


@given(grids, st.floats(-10, 10, width=32))
def test_a_row_without_spread_is_kept(grid, value):
    row = np.full((2, 6), 0.0 if grid.symmetric else value, dtype=np.float32)
    assert np.array_equal(round_to(row, grid).values, row)


def test_weights_on_a_grid_are_recognised():
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(8, 64)).astype(np.float32)
    grid = Grid(bits=4, span="group", group=32, symmetric=False)
    rounded = round_to(plain, grid).values
    assert on_grid(rounded, grid)
    assert not on_grid(plain, grid)
    assert not on_grid(rounded, Grid(bits=3, span="group", group=32, symmetric=False))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"bits": 1}, "setting_out_of_range"),
        ({"bits": 9}, "setting_out_of_range"),
        ({"bits": 4.0}, "setting_not_whole"),
        ({"span": "layer"}, "unknown_span"),
        ({"group": 0}, "setting_out_of_range"),
    ],
)
def test_an_impossible_grid_is_refused(changes, code):
    with pytest.raises(Fault) as caught:
        Grid(**changes)
    assert caught.value.code == code


def test_broken_weights_are_refused():
    with pytest.raises(Fault) as caught:
        round_to(np.array([[1.0, np.nan]]), Grid())
    assert caught.value.code == "weights_not_finite"


def test_the_scales_cost_bits():
    assert Grid(bits=4, span="group", group=32).overhead(576) == 0.5
    assert Grid(bits=4, span="group", group=32, symmetric=False).overhead(576) == 1.0
    assert Grid(bits=8, span="channel").overhead(64) == 0.25
    assert Grid(bits=8, span="tensor").overhead(64) == 0.0


def test_a_symmetric_grid_leaves_one_code_unused():
    assert [Grid(bits).levels for bits in (2, 4, 8)] == [3, 15, 255]
    assert [Grid(bits, symmetric=False).levels for bits in (2, 4, 8)] == [4, 16, 256]
