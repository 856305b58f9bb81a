"""What holds for every beam search, on random little language models."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from core.decode import exhaustive, search
from core.decode.beam_replay import replay
from core.decode.beam_rules import Question, State, looked_at, options, settle
from core.settings import BeamSettings
from tests.beams import random_provider

PENALTIES = (-1.0, -0.3, 0.0, 0.5, 1.0, 2.0)
MANY = hypothesis_settings(max_examples=60)


@st.composite
def cases(draw, least_width=1, most_width=9):
    """(provider, settings, end ids, vocabulary)."""
    vocabulary = draw(st.integers(2, 4))
    ends = draw(st.sets(st.integers(0, vocabulary - 1), max_size=2))
    made = BeamSettings(
        width=draw(st.integers(least_width, most_width)),
        length_penalty=draw(st.sampled_from(PENALTIES)),
        stop=draw(st.sampled_from(("full", "best"))),
        max_new=draw(st.integers(1, 4 if vocabulary < 4 else 3)),
    )
    provider = random_provider(draw(st.integers(0, 2**32)), vocabulary)
    return provider, made, tuple(sorted(ends)), vocabulary


def texts(hypotheses):
    return [h.tokens for h in hypotheses]


@MANY
@given(cases())
def test_a_beam_wide_enough_finds_what_trying_everything_finds(case):
    provider, settings, ends, _ = case
    everything = exhaustive(provider, replace(settings, width=256), ends)
    wide = replace(settings, width=max(2, everything.texts))
    found = search(provider, wide, ends)
    assert len(found.hypotheses) == everything.texts
    assert {h.tokens: h.score for h in found.hypotheses} == pytest.approx(
        {h.tokens: h.score for h in everything.hypotheses}
    )
    assert [h.score for h in found.hypotheses] == pytest.approx(
        [h.score for h in everything.hypotheses]
    )
    total = math.fsum(math.exp(h.logprob) for h in everything.hypotheses)
    assert total == pytest.approx(1)


@MANY
@given(cases())
def test_no_beam_beats_trying_everything(case):
    provider, settings, ends, _ = case
    everything = exhaustive(provider, replace(settings, width=256), ends)
    known = {h.tokens: h.score for h in everything.hypotheses}
    found = search(provider, settings, ends)
    assert 1 <= len(found.hypotheses) <= settings.width
    assert len(set(texts(found.hypotheses))) == len(found.hypotheses)
    for hypothesis in (*found.hypotheses, *found.others):
        assert hypothesis.score == pytest.approx(known[hypothesis.tokens])
    assert found.hypotheses[0].score <= everything.hypotheses[0].score + 1e-12
    assert found.forwards <= everything.forwards


@MANY
@given(cases())
def test_a_beam_of_one_is_greedy(case):
    provider, settings, ends, _ = case
    greedy = []
    while len(greedy) < settings.max_new and not (greedy and greedy[-1] in ends):
        greedy.append(int(np.argmax(provider([tuple(greedy)])[0])))
    found = search(provider, replace(settings, width=1), ends)
    assert texts(found.hypotheses) == [tuple(greedy)]
    assert found.hypotheses[0].finished == (greedy[-1] in ends)
    assert found.forwards == len(greedy)


@MANY
@given(cases())
def test_scores_are_sums_along_the_chain_of_parents(case):
    provider, settings, ends, _ = case
    found = search(provider, settings, ends)
    for hypothesis in (*found.hypotheses, *found.others):
        chain = found.chain(hypothesis.node)
        assert chain == tuple(enumerate(hypothesis.path))
        nodes = [found.steps[s].candidates[c] for s, c in chain]
        assert tuple(n.token for n in nodes) == hypothesis.tokens
        assert found.tokens_at(hypothesis.node) == hypothesis.tokens
        total = math.fsum(n.token_logprob for n in nodes)
        assert hypothesis.logprob == pytest.approx(total)
        assert hypothesis.logprob == pytest.approx(nodes[-1].logprob)
        assert hypothesis.score == pytest.approx(total / len(nodes) ** settings.length_penalty)


@MANY
@given(cases())
def test_every_candidate_lives_finishes_or_knows_to_whom_it_lost(case):
    provider, settings, ends, vocabulary = case
    found = search(provider, settings, ends)
    before = 1
    for step in found.steps:
        assert step.beams == before
        rows = step.candidates
        assert len(rows) <= min(looked_at(settings.width, len(ends)), before * vocabulary)
        assert len({(c.parent, c.token) for c in rows}) == len(rows)
        values = [c.logprob for c in rows]
        assert values == sorted(values, reverse=True)
        assert min(values) > -math.inf
        live = [i for i, c in enumerate(rows) if c.fate == "live"]
        assert list(step.live) == live
        assert len(live) <= settings.width
        for place, c in enumerate(rows):
            assert c.is_end == (c.token in ends)
            assert (c.loss is None) == (c.fate != "lost")
            if c.loss is None:
                assert c.fate == "live" or place < settings.width
                continue
            winner = found.steps[c.loss.to[0]].candidates[c.loss.to[1]]
            assert c.loss.by == pytest.approx(winner.score - c.score)
            assert c.loss.by >= 0
            assert (c.loss.reason == "end_outside_beam") == (c.is_end and place >= settings.width)
            if c.loss.reason == "outside_beam":
                last = step.index + 1 == settings.max_new
                assert c.loss.to == (step.index, settings.width - 1 if last else live[-1])
        before = len(live)


@MANY
@given(cases(least_width=2))
def test_the_careful_rule_never_stops_too_early(case):
    """With no stopping rule at all the same texts are held at the end."""
    provider, settings, ends, _ = case
    settings = replace(settings, stop="best")
    question = Question(settings, ends, settings.max_new, "output_limit")
    state = State()
    while state.beams and state.index < settings.max_new:
        rows = provider([beam.tokens for beam in state.beams])
        looked = options(rows, state.beams, looked_at(settings.width, len(ends)))
        state, _ = settle(looked, replace(state, stop=None), question)
    assert texts(search(provider, settings, ends).hypotheses) == texts(state.held)


@MANY
@given(cases(), st.sampled_from(PENALTIES), st.sampled_from(("full", "best")), st.booleans())
def test_a_search_is_judged_again_without_the_model(case, penalty, stop, one):
    provider, settings, ends, _ = case
    other = replace(settings, length_penalty=penalty, stop=stop, nbest=1 if one else None)
    found = search(provider, settings, ends)
    again, real = replay(found, other), search(provider, other, ends)
    if again.verdict == "further":
        assert again.search.stop is None
        assert len(real.steps) > len(found.steps)
    else:
        assert again.search == real
        assert (again.verdict == "earlier") == (len(real.steps) < len(found.steps))
    assert replay(found, settings).search == found


def test_another_width_cannot_be_judged_without_the_model():
    found = search(random_provider(1, 3), BeamSettings(width=2, max_new=2), ())
    with pytest.raises(ValueError, match="another search"):
        replay(found, BeamSettings(width=3, max_new=2))
