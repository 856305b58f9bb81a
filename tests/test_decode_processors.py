"""Penalties, banned texts and n-grams: hand-worked lines, laws, transformers, and runs."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    AutoModelForCausalLM,
    NoBadWordsLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
)

from core.decode import Past, Rules, candidates, choose, probabilities, rules_for, run
from core.decode.draw import needle
from core.decode.processors import processed
from core.engine.toy import open_toy
from core.faults import Fault
from core.models.catalog import folder_of, resolve
from core.settings import PROCESSOR_NAMES, RunSpec, Settings
from core.text.opened import open_vocabulary
from tests.decoding import TABLE
from tests.vocabularies import sentencepiece

NUMBERS = ("repetition_penalty", "presence_penalty", "frequency_penalty", "no_repeat_ngram")
GREEDY = Settings(strategy="greedy")
SIZE = 6
ROWS = st.lists(
    st.one_of(st.floats(-60, 60), st.integers(-2, 2).map(float)), min_size=SIZE, max_size=SIZE
)
PASTS = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=12).flatmap(
    lambda ids: st.integers(0, len(ids)).map(lambda n: Past(tuple(ids), n))
)
PENALTIES = st.fixed_dictionaries(
    {
        "repetition_penalty": st.none() | st.floats(0.1, 5),
        "presence_penalty": st.none() | st.floats(-3, 3),
        "frequency_penalty": st.none() | st.floats(-3, 3),
        "no_repeat_ngram": st.none() | st.integers(2, 5),
    }
)
BANNED = st.lists(
    st.lists(st.integers(0, SIZE - 2), min_size=1, max_size=3).map(tuple), max_size=4
).map(tuple)


def last(logits, past, rules=None, **settings):
    return processed(logits, Settings(**settings), past, rules).last


def law_past(law):
    rules = Rules(tuple(map(tuple, law["banned"]))) if "banned" in law else None
    settings = {name: law[name] for name in NUMBERS if name in law}
    settings |= {"banned": ("?",)} if rules else {}
    return Past(tuple(law["ids"]), law["prompt_length"]), rules, settings


@pytest.mark.parametrize("law", TABLE["processors"], ids=lambda law: law["law"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_processor_laws(law, dtype):
    past, rules, settings = law_past(law)
    found = last(np.array(law["logits"], dtype), past, rules, **settings)
    assert found.tolist() == [-math.inf if x is None else x for x in law["scores"]]
    assert found.dtype == dtype


def test_each_that_is_on_is_recorded_before_the_filters():
    past = Past((2, 0, 1, 0), 2)
    settings = Settings(
        top_k=2, repetition_penalty=2, presence_penalty=1, no_repeat_ngram=2, banned=("x",)
    )
    choice = choose([4, 3, 2, 1], settings, step=2, past=past, rules=Rules(((3,),)))
    assert [stage.name for stage in choice.stages] == [
        "repetition_penalty",
        "presence_penalty",
        "no_repeat_ngram",
        "banned",
        "temperature",
        "top_k",
        "top_p",
        "min_p",
    ]
    scores = [stage.logits.tolist() for stage in choice.stages[:5]]
    none = -math.inf
    assert scores == [
        [2, 1.5, 1, 1],
        [1, 0.5, 1, 1],
        [1, none, 1, 1],
        [1, none, 1, none],
        [1, none, 1, none],
    ]
    assert [stage.parameter for stage in choice.stages[:4]] == [2, 1, 2, "x"]
    assert [stage.survivors for stage in choice.stages] == [4, 4, 3, 2, 2, 2, 2, 2]
    p = probabilities([1, 0.5, 1, 1])
    assert choice.stages[2].mass == pytest.approx(1 - p[1])
    assert choice.stages[3].mass == pytest.approx(2 / 3)


def test_both_probabilities_the_rank_and_the_entropy_are_the_models_own():
    row = np.log([0.5, 0.3, 0.2])
    for strategy in ("greedy", "sample"):
        settings = Settings(strategy=strategy, presence_penalty=5.0, top_k=1)
        choice = choose(row, settings, step=1, past=Past((0,), 0))
        assert (choice.id, choice.rank) == (1, 2)
        assert choice.probability_model == pytest.approx(0.3)
        assert choice.probability_filtered == 1
        assert choice.entropy_model == pytest.approx(1.0297, abs=1e-4)
        assert choice.entropy_filtered == 0


def test_greedy_obeys_them_and_takes_the_lowest_id_among_the_highest():
    settings = Settings(strategy="greedy", repetition_penalty=2.0)
    choice = choose([4.0, 2.0, 2.0], settings, step=0, past=Past((0,), 1))
    assert (choice.id, choice.rule, choice.u) == (0, "greedy", None)
    zero = dataclasses.replace(settings, strategy="sample", temperature=0)
    assert choose([3.0, 2.0, 2.0], zero, step=0, past=Past((0,), 1)).id == 1


def test_a_forced_token_overrules_them():
    settings = Settings(banned=("x",), forced=((1, 2),), no_repeat_ngram=1)
    choice = choose([3, 2, 1], settings, step=1, past=Past((2,), 1), rules=Rules(((0,),)))
    assert (choice.id, choice.rule, choice.probability_filtered) == (2, "forced", 0)
    assert choice.probability_model == pytest.approx(probabilities([3, 2, 1])[2])
    # Where nothing is left at all, it is judged as if there were no rules.
    nothing = choose([3, 2, 1], settings, step=1, past=Past((0, 1, 2), 1), rules=Rules(((0,),)))
    assert (nothing.id, nothing.rule) == (2, "forced")
    assert nothing.probability_filtered == nothing.probability_model > 0
    assert [s.name for s in nothing.stages] == ["temperature", "top_k", "top_p", "min_p"]


def test_when_nothing_is_left_a_sentence_names_the_rule():
    settings = Settings(banned=("x",), no_repeat_ngram=1)
    with pytest.raises(Fault, match="The rule no-repeat-ngram leaves no token"):
        choose([1, 2], settings, step=2, past=Past((0, 1), 0), rules=Rules(((0,),)))
    with pytest.raises(Fault, match="The rule banned leaves no token"):
        choose([1, 2], settings, step=1, past=Past((0,), 0), rules=Rules(((1,),)))


def test_without_a_past_there_is_nothing_to_look_at():
    settings = Settings(repetition_penalty=2.0, banned=("x",), pattern="y")
    plain = choose([3, 2, 1], Settings(), step=0)
    found = choose([3, 2, 1], settings, step=0)
    assert found.slim() == plain.slim()
    assert [s.name for s in found.stages] == [s.name for s in plain.stages]


def test_texts_need_their_rules():
    for settings in (Settings(banned=("x",)), Settings(pattern="x")):
        with pytest.raises(ValueError, match="need rules"):
            choose([1, 2], settings, step=0, past=Past((0,), 1))


def test_a_score_that_would_grow_without_bounds_stays_a_number():
    settings = Settings(repetition_penalty=0.01)
    choice = choose([1e308, 0], settings, step=0, past=Past((0,), 1))
    assert (choice.id, choice.probability_filtered) == (0, 1)
    with np.errstate(all="raise", under="ignore"):
        row = np.array([-3e38, 1], np.float32)
        sunk = choose(row, Settings(repetition_penalty=10.0), step=0, past=Past((0,), 1))
    assert sunk.id == 1


def test_what_is_no_distribution_is_refused_in_words():
    settings = Settings(repetition_penalty=2.0)
    for dtype in (np.float32, np.float64):
        for row in ([1, math.nan], [math.inf, 1], [-math.inf, -math.inf]):
            with pytest.raises(Fault) as caught:
                choose(np.array(row, dtype), settings, step=0, past=Past((0,), 1))
            assert caught.value.code in ("logits_not_finite", "logits_all_impossible")


def removing(settings):
    if settings.no_repeat_ngram:
        yield Settings(no_repeat_ngram=settings.no_repeat_ngram)
    if settings.banned:
        yield Settings(banned=settings.banned)


@given(ROWS, PASTS, PENALTIES, BANNED)
def test_every_stage_leaves_a_distribution_that_is_never_empty(row, past, penalties, banned):
    settings = Settings(**penalties, banned=("x",) if banned else ())
    try:
        choice = choose(row, settings, step=0, past=past, rules=Rules(banned))
    except Fault:
        # Every score is possible, so all of them were banned, or would repeat an n-gram.
        kept = [processed(row, alone, past, Rules(banned)) for alone in removing(settings)]
        assert not np.all([flow.last > -np.inf for flow in kept], axis=0).any()
        return
    on = [stage for stage in choice.stages if stage.name in PROCESSOR_NAMES]
    assert [stage.name for stage in on] == list(settings.processors)
    before = probabilities(row)
    for stage in on:
        p = probabilities(stage.logits)
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert stage.survivors == np.count_nonzero(p) == np.count_nonzero(stage.keeps) >= 1
        assert stage.mass == pytest.approx(before[stage.keeps].sum(), abs=1e-9)
        before = p
    assert choice.stages[-1].keeps[choice.id]
    assert choice.probability_filtered == pytest.approx(before[choice.id], abs=1e-12)
    assert choice.probability_model == pytest.approx(probabilities(row)[choice.id], abs=1e-12)
    again = choose(row, settings, step=0, past=past, rules=Rules(banned), with_stages=False)
    assert again == choice.slim()


@given(ROWS, PASTS, PENALTIES)
def test_the_order_shown_is_the_order_executed(row, past, penalties):
    settings = Settings(**penalties)
    one_by_one = np.array(row)
    for name in settings.processors:
        one_by_one = last(one_by_one, past, **{name: penalties[name]})
    assert np.array_equal(one_by_one, processed(row, settings, past, None).last)


@given(ROWS, PASTS)
def test_parameters_that_change_nothing_change_nothing(row, past):
    settings = Settings(repetition_penalty=1.0, presence_penalty=0.0, frequency_penalty=0.0)
    for dtype in (np.float32, np.float64):
        logits = np.array(row, dtype)
        assert np.array_equal(processed(logits, settings, past, None).last, logits)
    on, off = choose(row, settings, step=0, past=past), choose(row, Settings(), step=0)
    assert (on.id, on.rank, on.u) == (off.id, off.rank, off.u)
    for name in ("probability_model", "probability_filtered", "entropy_model", "entropy_filtered"):
        assert getattr(on, name) == pytest.approx(getattr(off, name), abs=1e-12)


@given(ROWS, PASTS, BANNED)
def test_removing_twice_is_removing_once(row, past, banned):
    for settings in (Settings(no_repeat_ngram=2), Settings(banned=("x",))):
        once = processed(row, settings, past, Rules(banned)).last
        assert np.array_equal(processed(once, settings, past, Rules(banned)).last, once)


@given(ROWS, PASTS, PENALTIES)
def test_inputs_stay_as_they_were(row, past, penalties):
    for dtype in (np.float32, np.float64):
        logits = np.array(row, dtype)
        copy = logits.copy()
        try:
            stages = choose(logits, Settings(**penalties), step=0, past=past).stages
        except Fault:
            stages = ()
        assert logits.flags.writeable
        assert np.array_equal(logits, copy)
        assert not any(stage.logits.flags.writeable for stage in stages)


# --- against transformers, to the last bit


def theirs(processor, ids, row):
    return processor(torch.tensor([ids]), torch.from_numpy(row)[None].clone())[0].numpy()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_equal_those_of_transformers(seed, dtype):
    rng = np.random.default_rng(seed)
    row = rng.normal(0, 3, 200).astype(dtype)
    # Few different ids, so that n-grams do come back.
    ids = rng.integers(0, 5 if seed % 2 else 200, 60).tolist()
    past = Past(tuple(ids), 20)
    for penalty in (0.7, 1.3, 2.0):
        found = last(row, past, repetition_penalty=penalty)
        assert np.array_equal(found, theirs(RepetitionPenaltyLogitsProcessor(penalty), ids, row))
    for n in (1, 2, 3, 4, 5):
        found = last(row, past, no_repeat_ngram=n)
        assert np.array_equal(found, theirs(NoRepeatNGramLogitsProcessor(n), ids, row))
    words = [[7], [ids[-1], 9], [*ids[-2:], 11], [3, 4, 5], [*ids[-3:-1], 13], [199]]
    found = last(row, past, Rules(tuple(map(tuple, words))), banned=("x",))
    assert np.array_equal(found, theirs(NoBadWordsLogitsProcessor(words, eos_token_id=0), ids, row))
    assert np.count_nonzero(found == -np.inf) == 4


def test_presence_and_frequency_are_openais_definition():
    """mu[j] - c[j] · frequency - (c[j] > 0) · presence, c over the generated tokens."""
    rng = np.random.default_rng(3)
    row, ids = rng.normal(0, 3, 50), rng.integers(0, 50, 80).tolist()
    counts = np.bincount(ids[30:], minlength=50)
    found = last(row, Past(tuple(ids), 30), presence_penalty=0.7, frequency_penalty=0.3)
    assert found == pytest.approx(row - counts * 0.3 - (counts > 0) * 0.7, abs=1e-12)


# --- draws


def test_a_million_draws_never_hit_a_removed_token():
    rng = np.random.default_rng(1)
    row = rng.normal(0, 2, 200).astype(np.float32)
    past = Past(tuple(rng.integers(0, 20, 60).tolist()), 20)
    settings = Settings(
        temperature=1.4,
        top_k=60,
        typical_p=0.8,
        repetition_penalty=1.2,
        presence_penalty=0.4,
        no_repeat_ngram=2,
        banned=("x",),
    )
    rules = Rules(((int(row.argmax()),), (150,)))
    stages = choose(row, settings, step=0, past=past, rules=rules).stages
    p = probabilities(stages[-1].logits)
    order = np.argsort(-stages[-1].logits, kind="stable")[: stages[-1].survivors]
    draws = 1_000_000
    us = np.floor(np.random.default_rng(2).random(draws) * 2**53) / 2**53
    ends = np.cumsum(p[order])
    places = np.minimum(np.searchsorted(ends, us * ends[-1], side="right"), order.size - 1)
    assert places[:100].tolist() == [needle(ends, u) for u in us[:100]]
    counts = np.bincount(order[places], minlength=200)
    assert counts[~stages[-1].keeps].sum() == 0
    assert 5 < np.count_nonzero(p) < 60
    assert (abs(counts - draws * p) <= 4 * np.sqrt(draws * p * (1 - p))).all()


def test_the_table_of_candidates_stands_by_the_model_and_the_bar_by_what_is_left():
    row = np.log([0.4, 0.3, 0.2, 0.1])
    settings = Settings(presence_penalty=math.log(4), banned=("x",))
    past, rules = Past((0,), 0), Rules(((1,),))
    choice = choose(row, settings, step=0, past=past, rules=rules)
    # 0.4 ÷ 4 = 0.1, 0.3 is banned: 1/4, 0, 1/2, 1/4 of what is left.
    found = candidates(row, choice, 3)
    assert [c.id for c in found] == [0, 1, 2, None]
    assert [c.rank for c in found] == [1, 2, 3, None]
    assert [c.removed_by for c in found] == [None, "banned", None, None]
    assert [c.probability_filtered for c in found] == pytest.approx([0.25, 0, 0.5, 0.25])
    assert found[2].bar == pytest.approx((0, 0.5))
    assert found[0].bar == pytest.approx((0.5, 0.75))
    assert (found[1].bar, found[3].bar) == (None, None)
    low, high = next(c.bar for c in found if c.chosen)
    assert low <= choice.u < high


# --- rules out of texts


@pytest.mark.model
def test_texts_are_banned_with_and_without_a_space(default_model):
    vocabulary = open_vocabulary(resolve(default_model))
    rules = rules_for(Settings(banned=("Paris", " the", "New York")), vocabulary)
    texts = [vocabulary.text(ids) for ids in rules.banned]
    assert texts == ["Paris", " Paris", "the", " the", "New York", " New York"]
    assert rules_for(Settings(banned=("Paris",)), vocabulary).banned == rules.banned[:2]
    assert rules_for(Settings(), vocabulary) == Rules()


@pytest.mark.model
def test_what_a_tokenizer_adds_to_every_text_is_no_part_of_a_banned_one(gemma3_name):
    vocabulary = open_vocabulary(resolve(gemma3_name))
    rules = rules_for(Settings(banned=("Paris",)), vocabulary)
    assert [vocabulary.text(ids) for ids in rules.banned] == ["Paris", " Paris"]
    assert not any(vocabulary.is_special(id) for ids in rules.banned for id in ids)


def test_a_tokenizer_that_puts_a_space_before_every_text_is_asked_how_a_text_goes_on():
    vocabulary = sentencepiece(prefixed=True)
    rules = rules_for(Settings(banned=("hi",)), vocabulary)
    pieces = [[vocabulary.tokens([id], 1)[0].piece for id in ids] for ids in rules.banned]
    assert pieces == [["hi"], ["▁hi"], ["▁", "▁hi"]]


# --- whole runs


@pytest.fixture(scope="module")
def toy():
    return open_toy()


def written(engine, **settings):
    made = run(engine, RunSpec("toy", "The", dataclasses.replace(GREEDY, **settings)))
    return engine.vocabulary.text([s.choice.id for s in made.steps], skip_special=True), made


def test_a_banned_word_is_not_written(toy):
    assert written(toy)[0] == "sun shines brightly"
    text, made = written(toy, banned=("sun",))
    assert text.startswith("moon")
    assert made.steps[0].choice.rank == 2
    assert written(toy, banned=("sun shines",))[0].startswith("sun rises")
    assert written(toy, banned=("<end>", "never"))[1].stop == "end_token"


def test_a_run_stops_where_the_rules_leave_nothing():
    from core.engine.toy import ToyEngine, parse_table

    engine = ToyEngine(parse_table({"vocab": ["a", "b"], "next": {"*": [0.6, 0.4]}}))
    text, made = written(engine, no_repeat_ngram=1)
    assert (text, made.stop) == ("a b", "no_token_left")
    spec = RunSpec("toy", "x", dataclasses.replace(GREEDY, no_repeat_ngram=1))
    assert run(engine, spec, steps=2).stop is None
    again = run(engine, spec, steps=3)
    assert (len(again.steps), again.stop) == (2, "no_token_left")
    limit = dataclasses.replace(spec, settings=dataclasses.replace(spec.settings, max_new=2))
    assert run(engine, limit).stop == "output_limit"
    # Nothing could be written at all: only the sentence tells why.
    with pytest.raises(Fault, match="The rule banned leaves no token"):
        written(engine, banned=("a", "b"))


def test_listed_choices_can_be_made_again(tiny):
    settings = Settings(seed=3, repetition_penalty=1.5, no_repeat_ngram=1, max_new=12)
    made = run(tiny, RunSpec("tiny", "1 2 3", settings))
    ids = [step.choice.id for step in made.steps]
    assert len(ids) == 12
    assert len(set(made.ids)) == len({token.id for token in made.prompt}) + 12
    for step in made.steps:
        past = Past.at(step.forward.ids, step.index)
        assert past.prompt_length == len(made.prompt)
        full = choose(step.forward.logits, settings, step=step.index, past=past)
        assert full.slim() == step.choice


@pytest.mark.model
def test_a_greedy_run_is_that_of_transformers(smollm2):
    settings = Settings(
        strategy="greedy",
        repetition_penalty=1.3,
        no_repeat_ngram=2,
        banned=("Paris", "city of"),
        max_new=30,
    )
    prompt = "The capital of France is"
    made = run(smollm2, RunSpec("smollm2-135m", prompt, settings))
    rules = rules_for(settings, smollm2.vocabulary)
    ids = torch.tensor([[token.id for token in made.prompt]])
    folder = folder_of(resolve("smollm2-135m"))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    out = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=30,
        repetition_penalty=1.3,
        no_repeat_ngram_size=2,
        bad_words_ids=[list(sequence) for sequence in rules.banned],
        pad_token_id=0,
    )
    assert list(made.ids) == out[0].tolist()
    assert "Paris" not in smollm2.vocabulary.text(made.ids)
