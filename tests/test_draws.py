"""A thousand draws: their law, their dice, and Pearson's test worked by hand."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decode import choose, draw, uniform
from core.decode.draws import LEAST_EXPECTED, MAX_DRAWS, bar, chi_square, draws, uniforms
from core.decode.gamma import chi_square_tail, upper_gamma
from core.faults import Fault
from core.settings import Settings


def chosen(p, **settings):
    with np.errstate(divide="ignore"):
        return choose(np.log(np.asarray(p, dtype=float)), Settings(**settings), step=0)


def test_the_dice_of_the_draws_are_those_of_the_re_rolls():
    assert uniforms(7, 2, 1, 4).tolist() == [uniform(7, 2, roll) for roll in (1, 2, 3, 4)]
    choice = chosen([0.5, 0.3, 0.15, 0.05], top_p=0.9)
    made = draws(choice, seed=7, step=2, count=50, first=11)
    filtered = np.array([0.5, 0.3, 0.15, 0]) / 0.95
    each = [draw(filtered, uniform(7, 2, roll)) for roll in range(11, 61)]
    assert made.ids.tolist() == [0, 1, 2]
    assert made.counts.tolist() == [each.count(token) for token in (0, 1, 2)]
    assert made.expected == pytest.approx(50 * filtered[:3])


def test_a_draw_is_the_choice_of_a_re_rolled_step():
    logits = np.random.default_rng(3).normal(size=300)
    plain = Settings(seed=5, top_p=0.8, temperature=1.3)
    made = draws(choose(logits, plain, step=4), seed=5, step=4, count=40)
    each = [
        choose(logits, Settings(seed=5, top_p=0.8, temperature=1.3, rolls=((4, r),)), step=4).id
        for r in range(1, 41)
    ]
    table = dict(zip(made.ids.tolist(), made.counts.tolist(), strict=True))
    assert {token: n for token, n in table.items() if n} == {t: each.count(t) for t in set(each)}


def test_a_million_draws_hit_no_removed_token_and_keep_within_four_sigma():
    p = np.array([0.4, 0.0, 0.25, 0.2, 0.1, 0.05])
    made = draws(chosen(p, top_k=4, min_p=0.1), seed=1, step=0, count=10**6)
    assert made.ids.tolist() == [0, 2, 3, 4]
    assert made.counts.sum() == made.count == 10**6
    assert made.probabilities == pytest.approx(p[[0, 2, 3, 4]] / 0.95)
    assert (np.abs(made.counts - made.expected) < 4 * made.spread).all()
    assert 0.001 < chi_square(made.counts, made.probabilities).p < 0.999


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30).filter(any), st.integers(0, 2**63 - 1))
def test_every_draw_lands_on_a_survivor(p, seed):
    choice = chosen(np.array(p) / sum(p), top_p=0.7)
    made = draws(choice, seed=seed, step=3, count=30)
    assert made.counts.sum() == 30
    assert (choice.stages[-1].logits[made.ids] > -np.inf).all()
    assert (np.diff(made.probabilities) <= 0).all()
    assert made.probabilities.sum() == pytest.approx(1)


def test_the_bar_of_one_survivor():
    ids, p = bar(chosen([0.6, 0.4], top_k=1))
    assert (ids.tolist(), p.tolist()) == ([0], [1.0])
    made = draws(chosen([0.6, 0.4], top_k=1), seed=0, step=0, count=100)
    assert made.counts.tolist() == [100]
    found = chi_square(made.counts, made.probabilities)
    assert (found.statistic, found.freedom, found.p) == (0.0, 0, None)


@pytest.mark.parametrize("count", [0, -1, MAX_DRAWS + 1])
def test_too_many_draws_are_refused(count):
    with pytest.raises(Fault) as caught:
        draws(chosen([1.0]), seed=0, step=0, count=count)
    assert caught.value.code == "setting_out_of_range"


def test_pearson_by_hand():
    # A die thrown 60 times: expected 10 each; (1 + 4 + 0 + 1 + 9 + 1 = 16) / 10.
    found = chi_square([11, 8, 10, 9, 13, 9], [1 / 6] * 6)
    assert found.statistic == pytest.approx(1.6)
    assert (found.cells, found.freedom, found.pooled) == (6, 5, 0)
    assert found.p == pytest.approx(0.9012493, abs=1e-6)


def test_rare_tokens_share_a_cell():
    # 100 draws: 60 | 30 | 4 + 3 + 3 = 10 pooled. (4 / 60 + 16 / 30 + 36 / 10)
    found = chi_square([62, 34, 2, 1, 1], [0.6, 0.3, 0.04, 0.03, 0.03])
    assert (found.cells, found.pooled) == (3, 3)
    assert found.statistic == pytest.approx(4 / 60 + 16 / 30 + 36 / 10)
    assert found.p == pytest.approx(math.exp(-found.statistic / 2))


def test_a_pool_that_expects_too_little_takes_the_rarest_cell_along():
    # 100 draws: 70 | (27 + 3): the pool of 3 alone would expect fewer than 5.
    found = chi_square([66, 30, 4], [0.7, 0.27, 0.03])
    assert (found.cells, found.pooled) == (2, 2)
    assert found.statistic == pytest.approx(16 / 70 + 16 / 30)
    few = chi_square([2, 1], [0.5, 0.5])
    assert (few.cells, few.p) == (1, None)


@given(st.lists(st.integers(0, 400), min_size=1, max_size=40).filter(any), st.data())
def test_no_cell_expects_too_little_and_nothing_is_lost(counts, data):
    shares = data.draw(st.lists(st.floats(1e-9, 1), min_size=len(counts), max_size=len(counts)))
    p = np.array(shares) / sum(shares)
    found = chi_square(counts, p)
    assert found.statistic >= 0
    alone = int((p * sum(counts) >= LEAST_EXPECTED).sum())
    assert found.cells in (max(1, alone), alone + 1)
    assert found.p is None or 0 <= found.p <= 1


def test_an_impossible_token_is_beyond_chance():
    found = chi_square([90, 5, 5], [0.6, 0.4, 0.0])
    assert found.statistic == math.inf
    assert found.p == 0


@pytest.mark.parametrize(
    ("statistic", "freedom", "p"),
    [
        (3.841458820694124, 1, 0.05),
        (6.634896601021213, 1, 0.01),
        (5.991464547107979, 2, 0.05),
        (18.307038053275146, 10, 0.05),
        (124.34211340400407, 100, 0.05),
        (0.0, 3, 1.0),
        (math.inf, 3, 0.0),
    ],
)
def test_the_tail_of_the_printed_tables(statistic, freedom, p):
    assert chi_square_tail(statistic, freedom) == pytest.approx(p, rel=1e-10)


@pytest.mark.parametrize("a", [0.5, 1, 2.5, 10, 99.5, 1000, 2500])
@pytest.mark.parametrize("times", [0.2, 0.8, 0.97, 1, 1.03, 1.3, 3])
def test_the_incomplete_gamma_function_is_that_of_mpmath(a, times):
    exact = float(mpmath.gammainc(a, a * times, mpmath.inf, regularized=True))
    assert upper_gamma(a, a * times) == pytest.approx(exact, rel=1e-9, abs=1e-12)


def test_the_statistic_of_true_dice_is_spread_as_it_should_be():
    """Of 400 tests, about one in ten has p below 0.1 (within four sigma: 40 ± 24)."""
    choice = chosen([0.4, 0.3, 0.2, 0.1])
    small = 0
    for step in range(400):
        made = draws(choice, seed=11, step=step, count=100)
        small += (chi_square(made.counts, made.probabilities).p or 1) < 0.1
    assert abs(small - 40) < 24


def test_five_expected_draws_are_enough_for_a_cell():
    found = chi_square([4, 6, 90], [0.05, 0.05, 0.9])
    assert (found.cells, found.pooled) == (3, 0)
    assert found.statistic == pytest.approx(1 / 5 + 1 / 5)
