"""Sampled and diverse beam searches: what they reduce to, and what they draw, exactly."""

import math
from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from core.beam_records import Loss
from core.decode import exhaustive, search
from core.decode.beam_replay import replay
from core.decode.choose import choose
from core.decode.draw import uniform
from core.settings import BeamSettings, Settings
from tests.beams import random_provider

MANY = hypothesis_settings(max_examples=40)
SAMPLED = BeamSettings(kind="sampled")


@st.composite
def cases(draw, kind):
    """(provider, settings, end ids)."""
    vocabulary = draw(st.integers(2, 4))
    ends = draw(st.sets(st.integers(0, vocabulary - 1), max_size=2))
    groups = draw(st.integers(1, 3)) if kind == "diverse" else 2
    made = BeamSettings(
        width=draw(st.integers(1, 4)) * (groups if kind == "diverse" else 1),
        length_penalty=draw(st.sampled_from((-0.5, 0.0, 1.0))),
        stop=draw(st.sampled_from(("full", "best"))),
        max_new=draw(st.integers(1, 4 if vocabulary < 4 else 3)),
        kind=kind,
        temperature=draw(st.sampled_from((0.3, 1.0, 2.0))),
        seed=draw(st.integers(0, 10**9)),
        groups=groups,
        diversity=draw(st.sampled_from((0.0, 0.4, 5.0))),
    )
    return random_provider(draw(st.integers(0, 2**32)), vocabulary), made, tuple(sorted(ends))


def bare(search):
    """What was found and how, without the marks of a kind."""
    steps = [
        replace(s, candidates=tuple(replace(c, ranked=None, group=None) for c in s.candidates))
        for s in search.steps
    ]
    held = [replace(h, ranked=None, group=None) for h in (*search.hypotheses, *search.others)]
    return steps, held, search.stop


# --- what holds for both kinds


@MANY
@given(st.sampled_from(("sampled", "diverse")).flatmap(cases))
def test_scores_chains_and_losses(case):
    provider, settings, ends = case
    found = search(provider, settings, ends)
    everything = exhaustive(provider, replace(settings, kind="plain", width=256), ends)
    known = {h.tokens: h.score for h in everything.hypotheses}
    assert 1 <= len(found.hypotheses) <= settings.width
    for h in (*found.hypotheses, *found.others):
        nodes = [found.steps[s].candidates[c] for s, c in found.chain(h.node)]
        assert found.tokens_at(h.node) == h.tokens
        assert h.logprob == pytest.approx(math.fsum(n.token_logprob for n in nodes))
        assert h.score == pytest.approx(known[h.tokens])
        assert nodes[-1].group == h.group
        assert (h in found.hypotheses) or h.loss is not None or settings.nbest
    before = 1
    for step in found.steps:
        assert step.beams == before
        assert list(step.live) == [i for i, c in enumerate(step.candidates) if c.fate == "live"]
        for c in step.candidates:
            assert (c.loss is None) == (c.fate != "lost")
            if c.loss:
                assert c.loss.by >= 0
                winner = found.steps[c.loss.to[0]].candidates[c.loss.to[1]]
                assert winner.group == c.group
        before = len(step.live)
    scores = [h.score for h in found.hypotheses]
    assert scores == sorted(scores, reverse=True)
    assert search(provider, settings, ends) == found


@MANY
@given(st.sampled_from(("sampled", "diverse")).flatmap(cases), st.sampled_from((-1.0, 0.7)))
def test_another_penalty_without_the_model(case, penalty):
    provider, settings, ends = case
    other = replace(settings, length_penalty=penalty, stop="best")
    found = search(provider, settings, ends)
    assert replay(found, settings).search == found
    again = replay(found, other)
    if again.verdict != "further":
        assert again.search == search(provider, other, ends)
    if settings.kind == "sampled":
        # No score decides who stays, so nothing but the order can change.
        assert again.verdict == "same"
        texts = lambda s: {h.tokens for h in s.hypotheses}  # noqa: E731
        assert texts(again.search) == texts(found)
    for change in ({"seed": settings.seed + 1}, {"kind": "plain"}, {"diversity": 9.0}):
        with pytest.raises(ValueError, match="another search"):
            replay(found, replace(settings, **change))


# --- sampled


@MANY
@given(cases("sampled"))
def test_a_sampled_beam_of_one_is_the_sampling_run(case):
    provider, settings, ends = case
    settings = replace(settings, width=1)
    dice = Settings(temperature=settings.temperature, seed=settings.seed)
    text = []
    while len(text) < settings.max_new and not (text and text[-1] in ends):
        text.append(choose(provider([tuple(text)])[0], dice, step=len(text)).id)
    (found,) = search(provider, settings, ends).hypotheses
    assert found.tokens == tuple(text)
    assert found.ranked == 0


@MANY
@given(cases("sampled"))
def test_a_sampled_beam_wide_enough_draws_every_text(case):
    provider, settings, ends = case
    everything = exhaustive(provider, replace(settings, kind="plain", width=256), ends)
    found = search(provider, replace(settings, width=min(256, everything.texts)), ends)
    assert {h.tokens: h.score for h in found.hypotheses} == pytest.approx(
        {h.tokens: h.score for h in everything.hypotheses}
    )
    assert found.stop in ("no_beam_left", "output_limit")


@MANY
@given(cases("sampled"))
def test_perturbed_scores_fall_from_the_top_down(case):
    """The best child inherits its parent's; no score rises; the highest ones stay."""
    provider, settings, ends = case
    found = search(provider, settings, ends)
    above = {0: 0.0}
    for step in found.steps:
        ranked = [c.ranked for c in step.candidates]
        assert ranked == sorted(ranked, reverse=True)
        for parent, value in above.items():
            mine = [c.ranked for c in step.candidates if c.parent == parent]
            assert not mine or mine[0] == value
        above = dict(enumerate(step.candidates[i].ranked for i in step.live))
    best = [h.ranked for h in (*found.hypotheses, *found.others) if h.loss is None]
    assert max(best) == 0


def without_putting_back(p, width):
    """The probability of each set of ``width`` outcomes drawn one after another."""
    sets = Counter()
    for order in permutations(range(len(p)), width):
        chance, left = 1.0, 1.0
        for i in order:
            chance, left = chance * p[i] / left, left - p[i]
        sets[frozenset(order)] += chance
    return sets


def within_four_sigma(counts, expected, draws):
    """Outcomes too rare for the normal distribution count as one."""
    assert set(counts) <= set(expected)
    rare = {outcome for outcome, p in expected.items() if draws * p < 10}
    table = [(counts[o], p) for o, p in expected.items() if o not in rare]
    table.append((sum(counts[o] for o in rare), sum(expected[o] for o in rare)))
    for count, p in table:
        assert abs(count - draws * p) <= 4 * math.sqrt(draws * p * (1 - p)) + 1e-9


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_the_first_step_draws_without_putting_back(temperature):
    p = np.array([0.5, 0.25, 0.15, 0.1])
    q = p ** (1 / temperature)
    q /= q.sum()
    row, draws = [np.log(p)], 6_000
    sets, single = Counter(), Counter()
    for seed in range(draws):
        settings = replace(SAMPLED, width=2, max_new=1, seed=seed, temperature=temperature)
        hypotheses = search(lambda _: row, settings, ()).hypotheses
        sets[frozenset(h.tokens[0] for h in hypotheses)] += 1
        single.update(h.tokens[0] for h in hypotheses)
    expected = without_putting_back(q, 2)
    within_four_sigma(sets, expected, draws)
    included = {i: sum(c for s, c in expected.items() if i in s) for i in range(4)}
    within_four_sigma(single, included, draws)


def test_whole_texts_are_a_sample_without_putting_back():
    """Of different lengths, some complete long before the others."""
    provider = random_provider(31, 3, zeros=0)
    everything = exhaustive(provider, BeamSettings(width=256, max_new=3), (0,))
    texts = [h.tokens for h in everything.hypotheses]
    p = [math.exp(h.logprob) for h in everything.hypotheses]
    rows = {prefix: provider([prefix])[0] for t in texts for prefix in (t[:0], t[:1], t[:2])}
    counts, draws = Counter(), 4_000
    for seed in range(draws):
        settings = replace(SAMPLED, width=2, max_new=3, seed=seed)
        found = search(lambda prefixes: [rows[x] for x in prefixes], settings, (0,))
        counts[frozenset(h.tokens for h in found.hypotheses)] += 1
    chances = without_putting_back(p, 2)
    within_four_sigma(
        counts, {frozenset(texts[i] for i in s): c for s, c in chances.items()}, draws
    )


def test_a_step_of_a_sampled_search_by_hand():
    p = np.array([0.5, 0.3, 0.2])
    settings = replace(SAMPLED, width=2, max_new=2, seed=5)
    step = search(lambda x: [np.log(p)] * len(x), settings, ()).steps[0]
    u, v, noise = (uniform(5, 0, roll) for roll in (0, 2, 3))
    first = int(np.searchsorted(np.cumsum(p), u, side="right"))
    rest = [i for i in range(3) if i != first]
    second = rest[int(np.searchsorted(np.cumsum(p[rest]) / p[rest].sum(), v, side="right"))]
    assert [c.token for c in step.candidates[:2]] == [first, second]
    middle = math.log(1 - p[first])
    expected = middle - math.log(math.exp(middle) - math.log(1 - noise))
    assert [c.ranked for c in step.candidates[:2]] == [0, pytest.approx(expected)]
    lost = step.candidates[2]
    assert lost.loss == Loss("outside_beam", (0, 1), pytest.approx(expected - lost.ranked))
    assert [c.logprob for c in step.candidates] == pytest.approx(
        [math.log(p[c.token]) for c in step.candidates]
    )


def test_a_removed_token_is_never_drawn():
    row = [0.0, -np.inf, -1.0, -np.inf]
    for seed in range(300):
        settings = replace(SAMPLED, width=4, max_new=2, seed=seed, temperature=50.0)
        found = search(lambda x: [row] * len(x), settings, ())
        assert {t for h in found.hypotheses for t in h.tokens} <= {0, 2}
        assert len(found.hypotheses) == 4


# --- diverse


@MANY
@given(cases("diverse"))
def test_one_group_is_the_plain_search(case):
    provider, settings, ends = case
    found = search(provider, replace(settings, groups=1), ends)
    plain = search(provider, replace(settings, kind="plain"), ends)
    assert bare(found) == bare(plain)
    assert {c.group for s in found.steps for c in s.candidates} == {0}


@MANY
@given(cases("diverse"))
def test_groups_that_never_pay_are_plain_searches_side_by_side(case):
    provider, settings, ends = case
    found = search(provider, replace(settings, diversity=0.0), ends)
    narrow = replace(settings, kind="plain", width=settings.width // settings.groups)
    plain = search(provider, narrow, ends)
    expected = [(h.tokens, h.score) for h in plain.hypotheses]
    for group in range(settings.groups):
        held = [h for h in (*found.hypotheses, *found.others) if h.group == group and not h.loss]
        assert [(h.tokens, h.score) for h in held] == expected


def test_a_group_pays_for_what_those_before_it_took():
    p = np.array([0.5, 0.3, 0.2])
    settings = BeamSettings(width=4, kind="diverse", groups=2, diversity=0.8, max_new=1)
    (step,) = search(lambda x: [np.log(p)] * len(x), settings, ()).steps
    shown = [(c.group, c.token, c.fate, round(c.ranked, 4)) for c in step.candidates]
    ln = [round(math.log(x), 4) for x in p]
    assert shown == [
        (0, 0, "live", ln[0]),
        (0, 1, "live", ln[1]),
        (0, 2, "lost", ln[2]),
        (1, 0, "live", round(math.log(0.5) - 0.8, 4)),
        (1, 2, "live", ln[2]),
        (1, 1, "lost", round(math.log(0.3) - 0.8, 4)),
    ]
    assert step.candidates[5].loss.to == (0, 4)
    assert [c.logprob for c in step.candidates] == pytest.approx(
        [math.log(p[c.token]) for c in step.candidates]
    )


def test_more_diversity_makes_other_texts():
    provider = random_provider(7, 6, zeros=0)
    greedy = search(provider, BeamSettings(width=1, max_new=4), ()).hypotheses[0]
    texts = []
    for diversity in (0.0, 3.0):
        settings = BeamSettings(width=4, kind="diverse", groups=4, diversity=diversity, max_new=4)
        found = search(provider, settings, ())
        texts.append(len({h.tokens[0] for h in found.hypotheses}))
        first = next(h for h in found.hypotheses if h.group == 0)
        assert first.tokens == greedy.tokens
    assert texts == [1, 4]


def test_groups_must_fit():
    with pytest.raises(ValueError, match="5 beams cannot be dealt out evenly to 2 groups"):
        BeamSettings(width=5, kind="diverse")
    assert BeamSettings(width=5, kind="plain").groups == 2
