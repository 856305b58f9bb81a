"""The filters: hand-worked lines, and laws that hold for every distribution."""

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decode import apply_stages, bits, choose, entropy, log_softmax, probabilities
from core.decode.measure import descending, rank
from core.faults import Fault
from core.settings import STAGE_NAMES, Settings
from tests.decoding import TABLE, law_logits, law_settings

ROWS = st.lists(
    st.one_of(st.floats(-60, 60), st.integers(-2, 2).map(float), st.just(-math.inf)),
    min_size=1,
    max_size=40,
).filter(lambda row: max(row) > -math.inf)
THINNING = ("top_k", "top_p", "min_p", "typical_p")
SETTINGS = st.builds(
    Settings,
    temperature=st.one_of(st.just(0), st.just(1), st.floats(1e-3, 100)),
    top_k=st.none() | st.integers(1, 50),
    top_p=st.none() | st.floats(1e-3, 1),
    min_p=st.none() | st.floats(0, 1),
    typical_p=st.none() | st.floats(1e-3, 1),
    order=st.permutations(STAGE_NAMES).map(tuple),
    seed=st.integers(0, 2**63 - 1),
)


def after(logits, **settings):
    return probabilities(apply_stages(logits, Settings(**settings))[-1].logits)


@pytest.mark.parametrize("law", TABLE["filters"], ids=lambda law: law["law"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_filter_laws(law, dtype):
    stages = apply_stages(law_logits(law).astype(dtype), law_settings(law))
    assert np.flatnonzero(stages[-1].keeps).tolist() == law["keeps"]
    assert probabilities(stages[-1].logits) == pytest.approx(law["after"], abs=1e-4)


@pytest.mark.parametrize("law", TABLE["entropy"], ids=lambda law: str(law["probs"]))
def test_entropy_laws(law):
    nats = entropy(law["probs"])
    assert nats == pytest.approx(law["nats"], abs=1e-4)
    assert bits(nats) == pytest.approx(law["bits"], abs=1e-4)
    assert choose(law_logits(law), Settings(), step=0).entropy_model == pytest.approx(nats)


def test_all_stages_appear_in_order_and_those_that_are_off_share_the_array():
    settings = Settings(top_k=2, order=("min_p", "top_k", "temperature", "top_p"))
    stages = apply_stages([3, 2, 1], settings)
    assert [s.name for s in stages] == ["min_p", "top_k", "temperature", "top_p"]
    assert [s.parameter for s in stages] == [None, 2, 1.0, None]
    assert [s.survivors for s in stages] == [3, 2, 2, 2]
    assert stages[1].logits is not stages[0].logits
    assert stages[1].logits is stages[2].logits is stages[3].logits
    assert stages[0].logits.tolist() == [3, 2, 1]
    assert stages[1].logits.tolist() == [3, 2, -math.inf]


def test_mass_is_the_share_kept_of_what_entered_the_stage():
    stages = apply_stages(np.log([0.4, 0.3, 0.2, 0.1]), Settings(top_k=3, top_p=0.7))
    assert [s.mass for s in stages] == pytest.approx([1, 0.9, 7 / 9, 1])


def test_temperature_divides_the_logits():
    assert apply_stages([3.0, 2.0, 1.0], Settings(temperature=2))[0].logits.tolist() == [
        1.5,
        1,
        0.5,
    ]


def test_temperature_zero_keeps_the_lowest_id_among_the_highest():
    stage = apply_stages([1, 5, 5], Settings(temperature=0))[0]
    assert stage.keeps.tolist() == [False, True, False]
    assert (stage.survivors, stage.parameter) == (1, 0)
    assert stage.mass == pytest.approx(1 / (2 + math.exp(-4)))


@pytest.mark.parametrize("temperature", [1e-3, 1e-30, 1e-300, 5e-324])
def test_tiny_temperatures_do_not_overflow(temperature):
    with np.errstate(all="raise", under="ignore"):
        assert after([900, 1000, 1000, -1e30], temperature=temperature).tolist() == [0, 0.5, 0.5, 0]


def test_huge_logits_do_not_overflow():
    with np.errstate(all="raise", under="ignore"):
        assert after([1e308, -1e308]).tolist() == [1, 0]
        assert log_softmax([1e300, 1e300]) == pytest.approx([-math.log(2)] * 2)


def test_top_k_keeps_exactly_k_and_ties_go_to_the_lower_id():
    assert after([2, 2, 2, 2], top_k=2).tolist() == [0.5, 0.5, 0, 0]
    assert after([2, 2, 2, 2], top_k=99).tolist() == [0.25] * 4
    assert after([1, 2, 2, 3], top_k=2)[2] == 0


def test_top_p_one_keeps_everything():
    assert np.count_nonzero(after([0, -40], top_p=1.0)) == 2
    assert np.count_nonzero(after([0, -40], top_p=0.9999999)) == 1


def test_top_p_forgives_one_millionth_and_no_more():
    row = np.log([0.5, 0.3, 0.2])
    assert np.count_nonzero(after(row, top_p=0.8 + 0.9e-6)) == 2
    assert np.count_nonzero(after(row, top_p=0.8 + 1.1e-6)) == 3


def test_top_p_reads_what_the_stages_before_it_left():
    row = np.log([0.4, 0.3, 0.2, 0.1])
    assert np.count_nonzero(after(row, top_k=2, top_p=0.57)) == 1
    assert np.count_nonzero(after(row, top_p=0.57)) == 2


def test_min_p_is_relative_to_the_highest_and_keeps_the_boundary():
    row = np.log([0.5, 0.25, 0.15, 0.1])
    assert after(row, min_p=0.5) == pytest.approx([2 / 3, 1 / 3, 0, 0])
    assert np.count_nonzero(after([1, 1, 0], min_p=1)) == 2
    assert np.count_nonzero(after([0, -50], min_p=0)) == 2


def test_impossible_tokens_are_never_survivors():
    stages = apply_stages([-math.inf, 1, 0], Settings(temperature=100, top_k=3))
    assert [s.survivors for s in stages] == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("logits", "code"),
    [
        ([1, math.nan], "logits_not_finite"),
        ([1, math.inf], "logits_not_finite"),
        ([-math.inf, -math.inf], "logits_all_impossible"),
        ([], "logits_not_a_row"),
        ([[1, 2]], "logits_not_a_row"),
        (["a"], "logits_not_numbers"),
        ([[1], [1, 2]], "logits_not_numbers"),
    ],
)
def test_what_is_no_distribution_is_refused_in_words(logits, code):
    for function in (log_softmax, probabilities, lambda x: apply_stages(x, Settings())):
        with pytest.raises(Fault) as caught:
            function(logits)
        assert caught.value.code == code


def test_the_fault_names_the_token():
    with pytest.raises(Fault, match="score of token 2 is not a finite number"):
        probabilities([1.0, -math.inf, math.nan, math.inf])


@given(ROWS)
def test_the_quick_order_is_the_stable_order(row):
    for dtype in (np.float32, np.float64):
        logits = np.array(row, dtype)
        order = descending(logits)
        assert order.tolist() == np.argsort(-logits, kind="stable").tolist()
        assert [rank(logits, int(token)) for token in order] == list(range(1, len(row) + 1))


def test_negative_zero_is_zero():
    assert descending(np.array([0.0, -0.0, 0.0, -0.0], np.float32)).tolist() == [0, 1, 2, 3]


@given(ROWS, SETTINGS)
def test_every_stage_leaves_a_distribution_that_is_never_empty(row, settings):
    stages = apply_stages(row, settings)
    assert tuple(s.name for s in stages) == settings.filters
    before = probabilities(row)
    for stage in stages:
        p = probabilities(stage.logits)
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert stage.survivors == np.count_nonzero(p) == np.count_nonzero(stage.keeps) >= 1
        assert stage.mass == pytest.approx(before[stage.keeps].sum(), abs=1e-9)
        before = p


@given(ROWS, SETTINGS)
def test_the_order_shown_is_the_order_executed(row, settings):
    one_by_one = row
    for stage in apply_stages(row, settings):
        name = stage.name
        alone = Settings(
            temperature=settings.temperature if name == "temperature" else 1,
            **{n: getattr(settings, n) for n in THINNING if n == name},
        )
        one_by_one = apply_stages(one_by_one, alone)[-1].logits
        # Renormalising between the stages rounds, so a token exactly on a line may cross it.
        if np.array_equal(one_by_one > -np.inf, stage.keeps):
            p, q = probabilities(one_by_one), probabilities(stage.logits)
            assert q == pytest.approx(p, abs=1e-9)
        else:
            assert name in ("temperature", "top_p", "min_p", "typical_p")
            # Tokens at one distance from the entropy cross its line together.
            many = name == "typical_p"
            assert many or abs(np.count_nonzero(one_by_one > -np.inf) - stage.survivors) <= 1
            return


@given(ROWS, st.integers(1, 60))
def test_top_k_counts_exactly(row, k):
    possible = np.count_nonzero(probabilities(row))
    assert apply_stages(row, Settings(top_k=k))[-1].survivors == min(k, possible)


@given(ROWS, st.floats(1e-3, 0.999))
def test_top_p_is_the_smallest_set(row, p):
    stage = apply_stages(row, Settings(top_p=p))[2]
    kept = np.sort(probabilities(row)[stage.keeps])
    assert kept.sum() >= p - 1.001e-6
    assert kept[1:].sum() < p - 0.999e-6 or kept.size == 1
    assert kept[0] >= probabilities(row)[~stage.keeps].max(initial=0)


@given(ROWS, st.floats(1e-3, 0.999))
def test_typical_p_is_the_smallest_set_around_the_entropy(row, p):
    before = probabilities(row)
    stage = apply_stages(row, Settings(typical_p=p))[-1]
    assert stage.name == "typical_p"
    with np.errstate(divide="ignore"):
        distance = abs(-np.log(before) - entropy(before))
    kept = stage.keeps
    reach = distance[kept].max()
    assert distance[(before > 0) & ~kept].min(initial=math.inf) >= reach
    assert before[kept].sum() >= p - 1.001e-6
    nearer = distance < reach - 1e-8
    assert before[nearer].sum() < p - 0.999e-6
    # Equal scores stand or fall together.
    assert not set(np.array(row)[kept]) & set(np.array(row)[(before > 0) & ~kept])


@given(ROWS, st.floats(1e-3, 1))
def test_what_typical_p_leaves_are_neighbours_in_the_order(row, p):
    logits = np.array(row)
    kept = apply_stages(logits, Settings(typical_p=p))[-1].keeps[descending(logits)]
    where = np.flatnonzero(kept)
    assert where.tolist() == list(range(where[0], where[-1] + 1))


def test_typical_p_one_is_off_and_all_of_a_flat_distribution_stays():
    assert np.count_nonzero(after([0, -1, -40], typical_p=1)) == 3
    assert np.count_nonzero(after([0, -1, -40], typical_p=0.9999)) < 3
    assert after([1, 1, 1, 1], typical_p=0.01).tolist() == [0.25] * 4


def test_typical_p_is_listed_only_where_it_is_on_and_can_be_moved():
    off = apply_stages([2, 1, 0], Settings())
    assert [stage.name for stage in off] == ["temperature", "top_k", "top_p", "min_p"]
    moved = Settings(typical_p=0.5, order=("typical_p", "top_k"))
    on = apply_stages([2, 1, 0], moved)
    assert [s.name for s in on] == ["typical_p", "top_k", "temperature", "top_p", "min_p"]
    assert on[0].parameter == 0.5


def test_greedy_takes_the_favourite_that_typical_p_dropped():
    row = np.log([0.4, 0.15, 0.15, 0.15, 0.15])
    choice = choose(row, Settings(strategy="greedy", typical_p=0.1), step=0)
    assert (choice.id, choice.rank, choice.probability_filtered) == (0, 1, 0)
    assert choice.entropy_filtered == pytest.approx(math.log(4))
    drawn = choose(row, Settings(typical_p=0.1), step=0)
    assert drawn.id in (1, 2, 3, 4)
    assert drawn.probability_filtered == pytest.approx(0.25)


@given(ROWS, st.floats(1e-2, 100))
def test_temperature_never_changes_the_favourite(row, temperature):
    logits = apply_stages(row, Settings(temperature=temperature))[0].logits
    assert np.argmax(logits) == np.argmax(row)


@given(ROWS, SETTINGS)
def test_inputs_stay_as_they_were(row, settings):
    for dtype in (np.float32, np.float64):
        logits = np.array(row, dtype)
        copy = logits.copy()
        stages = apply_stages(logits, settings)
        assert logits.flags.writeable
        assert np.array_equal(logits, copy)
        assert not any(stage.logits.flags.writeable for stage in stages)


@pytest.mark.parametrize(("size", "limit"), [(49_152, 0.05), (262_144, 0.25)])
def test_a_choice_over_a_whole_vocabulary_is_quick(size, limit):
    logits = np.random.default_rng(0).normal(0, 3, size).astype(np.float32)
    settings = Settings(temperature=0.8, top_k=2000, top_p=0.95, min_p=0.01)
    times = []
    for _ in range(5):
        start = time.thread_time()
        choose(logits, settings, step=0)
        times.append(time.thread_time() - start)
    assert min(times) < limit
