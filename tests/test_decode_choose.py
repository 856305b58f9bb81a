"""The draw, the choice, and the table of candidates."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decode import candidates, choose, draw, locate, probabilities, uniform
from core.decode.draw import needle
from core.faults import Fault
from core.settings import Settings
from tests.test_decode_stages import ROWS, SETTINGS

LAST = 1 - 2**-53


def test_the_random_number_of_a_step_is_the_same_everywhere():
    assert uniform(0, 0) == 0.3323347518995903
    assert uniform(0, 1) == 0.6610177751432316
    assert uniform(7, 3) == 0.39548515711190535
    # sha256("0/0") begins with 5513e3eabba6d754: its first 53 bits, as a fraction
    assert uniform(0, 0) == (0x5513E3EABBA6D754 >> 11) / 2**53


def test_random_numbers_are_uniform_and_differ_by_seed_and_step():
    row = np.array([uniform(seed, step) for seed in range(20) for step in range(200)])
    assert len(set(row.tolist())) == row.size
    assert 0 <= row.min() < 0.01
    assert 0.99 < row.max() < 1
    counts, _ = np.histogram(row, bins=10, range=(0, 1))
    assert (abs(counts - 400) < 4 * math.sqrt(400 * 0.9)).all()


def test_the_needle_falls_on_tokens_from_likely_to_unlikely():
    p = [0.2, 0.5, 0.3]
    assert [draw(p, u) for u in (0, 0.49, 0.51, 0.79, 0.81, LAST)] == [1, 1, 2, 2, 0, 0]
    assert draw([0.25] * 4, 0.5) == 2
    assert draw([0, 0, 1], LAST) == 2


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60).filter(any), st.floats(0, LAST))
def test_the_needle_never_falls_on_a_removed_token(weights, u):
    p = np.array(weights) / sum(weights)
    if p.max() > 0:
        assert p[draw(p, u)] > 0


def test_the_needle_stays_on_the_bar_when_sums_round():
    ends = np.cumsum([0.1] * 10)  # 0.9999999999999999
    assert needle(ends, LAST) == 9
    assert needle(np.array([5e-324]), LAST) == 0


def test_twenty_thousand_draws_match_the_probabilities():
    logits = np.random.default_rng(1).normal(0, 2, 50)
    settings = Settings(temperature=1.5, top_k=12, top_p=0.9, seed=4)
    p = probabilities(choose(logits, settings, step=0).stages[-1].logits)
    draws = 20_000
    counts = np.bincount([draw(p, uniform(4, step)) for step in range(draws)], minlength=50)
    assert counts[p == 0].sum() == 0
    assert np.count_nonzero(p) > 3
    assert (abs(counts - draws * p) <= 4 * np.sqrt(draws * p * (1 - p))).all()


def test_greedy_takes_the_lowest_id_among_the_highest():
    choice = choose([1, 5, 5], Settings(strategy="greedy"), step=3)
    assert (choice.id, choice.rule, choice.u, choice.rank) == (1, "greedy", None, 1)
    assert choose([1, 5, 5], Settings(temperature=0), step=3).rule == "greedy"


def test_a_sample_shows_both_probabilities_and_u():
    row = np.log([0.5, 0.3, 0.2])
    choice = choose(row, Settings(top_k=2, seed=0), step=0)
    assert choice.u == uniform(0, 0)
    assert (choice.id, choice.rule, choice.rank) == (0, "sample", 1)
    assert choice.probability_model == pytest.approx(0.5)
    assert choice.probability_filtered == pytest.approx(0.625)
    assert choice.entropy_model == pytest.approx(1.0297, abs=1e-4)
    assert choice.entropy_filtered == pytest.approx(0.6616, abs=1e-4)


def test_a_forced_token_overrules_dice_and_filters():
    row = np.log([0.5, 0.3, 0.2])
    choice = choose(row, Settings(top_k=2, forced=((4, 2),)), step=4)
    assert (choice.id, choice.rule, choice.rank) == (2, "forced", 3)
    assert choice.u == uniform(0, 4)
    assert choice.probability_model == pytest.approx(0.2)
    assert choice.probability_filtered == 0
    assert choose(row, Settings(forced=((4, 2),)), step=3).rule == "sample"
    greedy = choose(row, Settings(strategy="greedy", forced=((4, 2),)), step=4)
    assert (greedy.rule, greedy.u) == ("forced", None)


def test_a_forced_token_must_exist():
    with pytest.raises(Fault, match=r"Token 3 is to be forced at step 0.* from 0 to 2"):
        choose([1, 2, 3], Settings(forced=((0, 3),)), step=0)


@given(ROWS, SETTINGS, st.integers(0, 1000))
def test_choosing_is_pure_and_never_takes_a_removed_token(row, settings, step):
    first = choose(row, settings, step=step)
    again = choose(row, settings, step=step)
    assert first.slim() == again.slim()
    assert choose(row, settings, step=step, with_stages=False) == first.slim()
    last = first.stages[-1]
    # Greedy takes the highest score, which typical-p alone may drop.
    assert last.keeps[first.id] or (settings.is_greedy and settings.typical_p is not None)
    p = probabilities(last.logits)
    assert first.probability_filtered == pytest.approx(p[first.id], abs=1e-12)
    assert first.probability_model == pytest.approx(probabilities(row)[first.id], abs=1e-12)
    if first.u is None:
        assert first.id == np.argmax(row)


def test_the_same_dice_serve_every_strategy():
    row = np.log([0.4, 0.3, 0.2, 0.1])
    us = {choose(row, Settings(top_k=k, temperature=t), step=9).u for k in (1, 3) for t in (0.5, 2)}
    assert us == {uniform(0, 9)}


def test_candidates_hand_worked():
    row = np.log([0.1, 0.4, 0.3, 0.2])
    choice = choose(row, Settings(top_k=3, top_p=0.7, forced=((0, 0),)), step=0)
    first, second, forced, others = candidates(row, choice, 2)
    assert (first.id, first.rank, first.removed_by, first.chosen) == (1, 1, None, False)
    assert first.after == pytest.approx((0.4, 4 / 9, 4 / 7, 4 / 7))
    assert first.bar == pytest.approx((0, 4 / 7))
    assert second.bar == pytest.approx((4 / 7, 1))
    assert (forced.id, forced.rank, forced.chosen, forced.bar) == (0, 4, True, None)
    assert forced.removed_by == "top_k"
    assert forced.probability_model == pytest.approx(0.1)
    assert (others.id, others.count, others.rank, others.logit) == (None, 1, None, None)
    assert others.after == pytest.approx((0.2, 2 / 9, 0, 0))
    assert others.probability_filtered == 0
    assert others.bar is None


def test_a_chosen_token_outside_the_top_has_its_stretch_among_the_others():
    row = np.log([0.4, 0.3, 0.2, 0.1])
    choice = choose(row, Settings(forced=((0, 2),)), step=0)
    rows = candidates(row, choice, 1)
    assert [c.id for c in rows] == [0, 2, None]
    assert rows[1].bar == pytest.approx((0.7, 0.9))
    assert rows[2].bar == pytest.approx((0.4, 1))


@given(ROWS, SETTINGS, st.integers(0, 12))
def test_every_column_of_the_table_sums_to_one(row, settings, n):
    choice = choose(row, settings, step=0)
    rows = candidates(row, choice, n, also=[len(row) - 1])
    assert sum(c.count for c in rows) == len(row)
    assert sum(c.probability_model for c in rows) == pytest.approx(1)
    for column in range(len(settings.filters)):
        assert sum(c.after[column] for c in rows) == pytest.approx(1)
    assert [c.id for c in rows if c.chosen] == [choice.id]
    ranks = [c.rank for c in rows if c.rank is not None]
    assert ranks == sorted(set(ranks))
    for c in rows:
        if c.id is not None:
            low, high = c.bar or (0, 0)
            assert high - low == pytest.approx(c.probability_filtered, abs=1e-9)
            assert (c.removed_by is None) == (
                c.probability_filtered > 0 or c.probability_model == 0
            )
    chosen = next(c for c in rows if c.chosen)
    if choice.u is not None:
        assert chosen.bar is not None
        low, high = chosen.bar
        assert low - 1e-9 <= choice.u < high + 1e-9


def test_a_slim_choice_has_no_table():
    choice = choose([1, 2], Settings(), step=0)
    with pytest.raises(ValueError, match="no stages"):
        candidates([1, 2], choice.slim(), 2)


def test_locate():
    row = np.log([0.2, 0.5, 0.3])
    assert locate(row, 0) == (3, pytest.approx(0.2))
    for token in (-1, 3):
        with pytest.raises(Fault, match=f"Token id {token} does not exist"):
            locate(row, token)
