"""Strategies in lock-step: what each column writes, alone and beside others."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.compare_records import Column, Question
from core.decode import (
    PRESETS,
    Stopped,
    beam_search,
    compare,
    parse_column,
    run,
    seed_of,
    texts_of,
    uniform,
)
from core.decode.compare import MOST_ROWS, UNREAD
from core.engine.toy import ToyEngine, default_table
from core.engine.toy_classics import CLASSICS, classic
from core.faults import Fault
from core.settings import MAX_SEED, BeamSettings, RunSpec, Settings
from tests.comparing import EVEN, ask, last, seed_within, toy

SIX = (
    "greedy",
    "beam",
    "sample,seed=7",
    "sample,temperature=0.7",
    "sample,top_k=2",
    "sample,top_p=0.6",
)


def alone(engine, question, place, sample=0):
    """What ``run`` or ``beam_search`` write, without any neighbour: (ids, stop)."""
    settings = replace(question.columns[place].settings, max_new=question.max_new)
    settings = replace(settings, seed=seed_of(question, place, sample))
    if isinstance(settings, BeamSettings):
        ids = engine.vocabulary.read(question.prompt).ids
        best = beam_search(engine, ids, settings).hypotheses[0]
        return best.tokens, best.end
    made = run(engine, RunSpec(question.model, question.prompt, settings))
    return tuple(step.choice.id for step in made.steps), made.stop


# ---------------------------------------------------------------- the same as alone


@pytest.mark.parametrize("table", ["default", *CLASSICS])
@pytest.mark.parametrize("dice", ["same", "own"])
def test_six_columns_write_what_each_writes_alone_on_tables(table, dice):
    engine = ToyEngine(default_table() if table == "default" else classic(table))
    question = ask(*SIX, prompt="once", dice=dice, samples=3, max_new=5)
    found = last(engine, question)
    for place, written in enumerate(found.columns):
        assert len(written.texts) == texts_of(question, place)
        for text in written.texts:
            assert (text.ids, text.stop) == alone(engine, question, place, text.sample)


def test_six_columns_write_what_each_writes_alone_on_a_transformer(tiny):
    question = ask(*SIX, prompt="the 国 is", model="tiny", samples=2, max_new=16)
    found = last(tiny, question)
    for place, written in enumerate(found.columns):
        for text in written.texts:
            assert (text.ids, text.stop) == alone(tiny, question, place, text.sample)


def test_penalties_and_bans_see_the_same_past(tiny):
    lines = (
        "greedy",
        "greedy,repetition_penalty=1.5,no_repeat_ngram=2",
        "sample,presence_penalty=2,frequency_penalty=1,seed=3",
        "greedy,banned=the,banned=is",
        "greedy,pattern=[a-z ]+",
    )
    question = ask(*lines, prompt="the the is", model="tiny", max_new=12)
    found = last(tiny, question)
    for place, written in enumerate(found.columns):
        assert written.fault is None
        assert (written.texts[0].ids, written.texts[0].stop) == alone(tiny, question, place)


@pytest.mark.model
def test_greedy_beside_others_is_greedy_alone(smollm2):
    lines = ("greedy", "sample,top_p=0.9,seed=1", "beam,beams=2")
    prompt = "The capital of France is"
    question = ask(*lines, prompt=prompt, model="smollm2-135m", max_new=12, samples=2)
    found = last(smollm2, question)
    for place in (0, 2):
        assert found.columns[place].texts[0].ids == alone(smollm2, question, place)[0]


def test_the_choices_are_those_of_a_run(tiny):
    question = ask("greedy", "sample,top_p=0.5,seed=4", prompt="the", model="tiny", max_new=4)
    found = last(tiny, question)
    for written in found.columns:
        settings = replace(written.column.settings, max_new=4)
        if settings.strategy == "sample":
            settings = replace(settings, seed=seed_of(question, 1))
        steps = run(tiny, RunSpec("tiny", "the", settings)).steps
        for mine, step in zip(written.texts[0].choices, steps, strict=True):
            theirs = step.choice
            assert (mine.id, mine.rule, mine.rank, mine.u) == (
                theirs.id,
                theirs.rule,
                theirs.rank,
                theirs.u,
            )
            assert mine.probability_model == pytest.approx(theirs.probability_model, rel=1e-3)
            assert mine.entropy_model == pytest.approx(theirs.entropy_model, rel=1e-3)
            assert mine.stages == ()


def test_a_beam_keeps_ranks_and_entropies_along_its_path():
    engine = ToyEngine(classic("beam_beats_greedy"))
    (written,) = last(engine, ask("beam,beams=2", max_new=3)).columns
    blue, sky, end = written.texts[0].choices
    assert (blue.id, sky.id, end.id) == (1, 2, 4)
    assert [c.rank for c in (blue, sky, end)] == [2, 1, 1]
    assert [c.probability_model for c in (blue, sky, end)] == pytest.approx([0.45, 0.9, 1])
    p = np.array([0.9, 0.06, 0.04])
    assert sky.entropy_model == pytest.approx(-float(p @ np.log(p)))
    assert {(c.u, c.rule) for c in (blue, sky, end)} == {(None, "greedy")}
    assert written.search.hypotheses[0].tokens == (1, 2, 4)
    assert written.search.stop == "no_beam_left"


# ---------------------------------------------------------------- dice


def test_the_same_dice_for_all():
    lines = ("sample,seed=5", "sample,top_k=2", "sample,top_p=0.8")
    found = last(toy(EVEN), ask(*lines, max_new=8))
    for step in range(8):
        assert {w.texts[0].choices[step].u for w in found.columns} == {uniform(5, step)}


def test_a_column_that_names_its_seed_keeps_it():
    lines = ("sample,top_k=2", "sample,seed=5", "sample,top_p=0.8,seed=9")
    found = last(toy(EVEN), ask(*lines, max_new=8))
    for step in range(8):
        us = [w.texts[0].choices[step].u for w in found.columns]
        assert us == [uniform(5, step), uniform(5, step), uniform(9, step)]


@pytest.mark.parametrize("engine_name", ["toy", "tiny"])
def test_equal_filters_write_equal_texts(engine_name, request):
    engine = toy(EVEN) if engine_name == "toy" else request.getfixturevalue("tiny")
    lines = ("sample,top_k=9,seed=2", "sample,temperature=0.5", "sample,top_k=9,top_p=1", "greedy")
    found = last(engine, ask(*lines, prompt="the", model=engine_name, max_new=12, samples=4))
    first, _, third, _ = found.columns
    assert [t.ids for t in first.texts] == [t.ids for t in third.texts]


def test_seeds():
    same = ask("greedy", "sample", "sample,seed=6", "beam", "sample,seed=8", samples=3)
    assert [seed_of(same, i) for i in range(5)] == [0, 6, 6, 0, 8]
    # Even the derived ones of further samples are those of the seed that a column has.
    alike = ask("sample,seed=6", "sample", samples=3)
    assert [seed_of(same, 1, s) for s in range(3)] == [seed_of(alike, 0, s) for s in range(3)]
    drawn = ask("beam,kind=sampled,seed=2", "sample,seed=6", "beam,seed=9", samples=3)
    assert [seed_of(drawn, i) for i in range(3)] == [2, 6, 9]
    assert [texts_of(drawn, i) for i in range(3)] == [1, 3, 1]
    nought = ask("sample", "sample,seed=0", "sample,seed=3", "sample,seed=0")
    assert [seed_of(nought, i) for i in range(4)] == [0, 0, 3, 0]
    later = ask("sample", "sample,seed=3", "sample,seed=0")
    assert [seed_of(later, i) for i in range(3)] == [3, 3, 0]
    own = replace(same, dice="own")
    assert [seed_of(own, i) for i in range(5)] == [0, 0, 6, 0, 8]
    twins = ask("sample,seed=3", "sample,seed=3", "sample,seed=3", dice="own", samples=4)
    seeds = [seed_of(twins, i, s) for i in range(3) for s in range(4)]
    assert seeds[0] == 3
    assert len(set(seeds)) == 12
    assert all(0 <= seed <= MAX_SEED for seed in seeds)
    # Derived seeds are part of every link to a comparison: they may never change.
    assert [seed_of(twins, 0, 1), seed_of(twins, 1)] == [2181664121084586789, 8145720469986801514]


def test_samples_differ_and_only_where_dice_are_thrown():
    lines = ("greedy", "beam", "sample", "sample,temperature=0")
    found = last(toy(EVEN), ask(*lines, samples=20, max_new=6))
    assert [len(written.texts) for written in found.columns] == [1, 1, 20, 1]
    assert [text.sample for text in found.columns[2].texts] == list(range(20))
    assert len({text.ids for text in found.columns[2].texts}) > 15


def test_samples_follow_the_distribution():
    found = last(toy(), ask("sample", samples=100))
    counts = np.bincount([text.ids[0] for text in found.columns[0].texts], minlength=5)
    for count, p in zip(counts, [0.4, 0.3, 0.2, 0.1, 0], strict=True):
        assert abs(count - 100 * p) <= 4 * (100 * p * (1 - p)) ** 0.5


# ---------------------------------------------------------------- batches


class Counting(ToyEngine):
    def __init__(self, table):
        super().__init__(table)
        self.batches = []

    def next_logits(self, prefixes, *, prompt_length=None, run=None):
        self.batches.append((list(prefixes), run))
        return super().next_logits(prefixes, prompt_length=prompt_length, run=run)


def test_one_batch_a_turn_and_equal_prefixes_once():
    engine = Counting(default_table())
    question = ask(*SIX, samples=5, max_new=4)
    found = last(engine, question)
    assert len(engine.batches) == found.steps == 4
    assert len(engine.batches[0][0]) == 1  # the prompt, which everybody wants
    for rows, _ in engine.batches:
        assert len(set(rows)) == len(rows)
    assert len({run for _, run in engine.batches}) == 1
    assert hash(engine.batches[0][1]) is not None
    texts = sum(len(text.ids) for written in found.columns for text in written.texts)
    beam = found.columns[1]
    assert sum(w.forwards for w in found.columns) == texts - len(beam.texts[0].ids) + beam.forwards
    assert beam.forwards == beam.search.forwards


def test_many_samples_come_in_waves_of_bounded_size():
    engine = Counting(default_table())
    found = last(engine, ask("sample", "sample,top_k=5", "greedy", samples=100, max_new=3))
    assert max(len(rows) for rows, _ in engine.batches) <= MOST_ROWS + 1
    assert len({run for _, run in engine.batches}) == 4  # 32 samples of both at a time
    assert all(text.stop for written in found.columns for text in written.texts)


def test_after_each_turn_every_open_text_has_one_token_more():
    question = ask("greedy", "sample,seed=3", "beam,beams=3", max_new=4)
    engine = ToyEngine(default_table())
    seen = list(compare({"toy": engine}, question))
    assert [now.steps for now in seen] == list(range(1, len(seen) + 1))
    for before, after in pairwise(seen):
        for was, now in zip(before.columns[:2], after.columns[:2], strict=True):
            grown = 0 if was.done else 1
            assert len(now.texts[0].ids) == len(was.texts[0].ids) + grown
            assert now.texts[0].ids[: len(was.texts[0].ids)] == was.texts[0].ids
    assert [now.done for now in seen] == [False] * (len(seen) - 1) + [True]
    assert not seen[0].columns[0].done


def test_two_models_with_tokenizers_of_their_own(tiny):
    lines = ("greedy", "greedy,model=toy", "sample,model=toy,top_k=1")
    question = ask(*lines, prompt="the end", model="tiny", max_new=3)
    table = ToyEngine(default_table())
    found = last({"tiny": tiny, "toy": table}, question)
    assert found.columns[0].texts[0].ids == alone(tiny, question, 0)[0]
    assert found.columns[1].texts[0].ids == alone(table, question, 1)[0]
    assert found.columns[2].texts[0].ids == found.columns[1].texts[0].ids


def test_equal_questions_give_equal_answers(tiny):
    question = ask(*SIX, prompt="the", model="tiny", samples=3, max_new=8)
    first, second = (last(tiny, question) for _ in range(2))
    for one, two in zip(first.columns, second.columns, strict=True):
        assert one.texts == two.texts
        assert one.parted == two.parted
        assert one.search == two.search


# ---------------------------------------------------------------- ends


def test_ends(tiny):
    found = last(tiny, ask("greedy", "beam,beams=2", prompt="the", model="tiny", max_new=2))
    assert [w.texts[0].stop for w in found.columns] == ["output_limit", "output_limit"]
    found = last(ToyEngine(default_table()), ask("greedy", max_new=9))
    assert found.columns[0].texts[0].stop == "end_token"


def test_a_full_context_ends_every_text():
    engine = toy(EVEN)
    engine._info = replace(engine.info, context=5)
    found = last(engine, ask("greedy", "beam,beams=2", "sample", prompt="x y", max_new=9))
    for written in found.columns:
        assert [(len(t.ids), t.stop) for t in written.texts] == [(3, "context_limit")]


def test_a_reader_who_has_seen_enough():
    question = ask("greedy", "sample,seed=3", "beam,beams=3", samples=2, max_new=5)
    seen = []

    def after(now):
        seen.append(now.steps)
        if now.steps == 2:
            raise Stopped

    *_, found = compare({"toy": ToyEngine(default_table())}, question, on_turn=after)
    assert seen == [1, 2]
    assert (found.cancelled, found.done, found.steps) == (True, True, 2)
    for written in found.columns:
        assert all(len(text.ids) <= 2 for text in written.texts)
        assert all(text.stop is not None for text in written.texts)
    assert found.columns[0].texts[0].stop == "user"
    assert found.columns[2].search.stop == "user"


def test_a_generator_can_be_told_to_stop_or_left():
    turns = compare({"toy": toy(EVEN)}, ask("greedy", "sample,seed=1", max_new=9))
    next(turns)
    found = turns.throw(Stopped())
    assert (found.cancelled, found.steps) == (True, 1)
    assert [w.texts[0].stop for w in found.columns] == ["user", "user"]
    assert list(turns) == []
    compare({"toy": toy()}, ask("greedy")).close()


def test_stopping_at_the_last_turn_cancels_nothing():
    def after(now):
        if now.done:
            raise Stopped

    *_, found = compare({"toy": toy()}, ask("greedy"), on_turn=after)
    assert not found.cancelled
    assert found.columns[0].texts[0].stop == "end_token"


# ---------------------------------------------------------------- failing alone


def test_a_column_that_fails_fails_alone():
    lines = ("greedy", "sample,force=1:999", "greedy,pattern=(", "greedy,model=other", "sample")
    question = ask(*lines, max_new=3)
    found = last(toy(EVEN), question)
    codes = [w.fault.code if w.fault else None for w in found.columns]
    assert codes == [None, "forced_unknown", "pattern_not_understood", "model_of_column", None]
    assert len(found.columns[1].texts[0].ids) == 1  # what was written before it failed
    assert found.columns[2].texts == ()
    assert [len(found.columns[i].texts[0].ids) for i in (0, 4)] == [3, 3]
    assert found.done


def test_a_model_that_is_not_there_has_its_own_reason():
    fault = Fault("not_fetched", name="other")
    engines = {"toy": toy(), "other": fault}
    found = last(engines, ask("greedy", "greedy,model=other"))
    assert found.columns[1].fault is fault
    assert found.columns[0].done


def test_a_row_that_a_table_does_not_have_fails_only_who_asks_for_it():
    table = {
        "vocab": ["a", "b", "<end>"],
        "end": ["<end>"],
        "next": {"": [0.6, 0.4, 0], "a": [0, 0, 1]},
    }
    seed = seed_within(0.6, 1)
    found = last(toy(table), ask("greedy", f"sample,seed={seed}", "beam,beams=2"))
    codes = [w.fault.code if w.fault else None for w in found.columns]
    assert codes == [None, "toy_no_row", "toy_no_row"]
    assert found.columns[0].texts[0].stop == "end_token"
    assert found.columns[1].texts[0].ids == (1,)


def test_columns_that_could_not_be_read_keep_their_place():
    fault = Fault("column_empty", allowed="")
    question = Question("x", "toy", (UNREAD, Column(Settings(seed=2))))
    engine = Counting(default_table())
    found = last(engine, question, failed={0: fault})
    assert found.columns[0].fault is fault
    assert found.columns[0].texts == ()
    assert found.columns[1].done
    assert found.columns[1].forwards == len(engine.batches)


def test_nothing_is_possible_any_more():
    table = {"vocab": ["a", "b"], "end": [], "next": {"*": [1, 0]}}
    found = last(toy(table), ask("greedy", "greedy,no_repeat_ngram=1", "greedy,banned=a"))
    first, second, third = found.columns
    assert len(first.texts[0].ids) == 24
    assert (second.texts[0].ids, second.texts[0].stop) == ((0,), "no_token_left")
    assert second.fault is None
    assert third.fault.code == "no_token_left"


@pytest.mark.parametrize("prompt", ["", "x " * 3000])
def test_a_prompt_that_no_model_can_read(prompt):
    seen = list(compare({"toy": toy()}, ask("greedy", "beam", prompt=prompt)))
    assert len(seen) == 1
    assert seen[0].done
    assert {w.fault.code for w in seen[0].columns} <= {"empty_prompt", "prompt_too_long"}


def test_bad_questions():
    for more in ({"samples": 0}, {"samples": 101}, {"max_new": 0}, {"dice": "loaded"}):
        with pytest.raises(Fault):
            ask("greedy", **more)
    with pytest.raises(Fault):
        compare({}, Question("x", "toy", ()))


def test_every_preset_runs(tiny):
    question = Question("the", "tiny", tuple(PRESETS.values()), samples=2, max_new=3)
    found = last(tiny, question)
    assert [w.fault for w in found.columns] == [None] * len(PRESETS)


def test_forced_and_rolled_steps_are_part_of_a_column():
    lines = ("sample,seed=1", "sample,seed=1,force=0:3", "sample,seed=1,roll=1:2")
    found = last(toy(EVEN), ask(*lines, max_new=3))
    plain, forced, rolled = (w.texts[0].choices for w in found.columns)
    assert (forced[0].id, forced[0].rule, forced[0].u) == (3, "forced", plain[0].u)
    assert rolled[0] == plain[0]
    assert rolled[1].u == uniform(1, 1, 2)


def test_a_column_can_be_written_by_its_line():
    found = last(toy(), ask("greedy"))
    assert found.columns[0].column == parse_column("greedy")


FILTERS = (
    "",
    ",temperature=0.4",
    ",temperature=0",
    ",top_k=2",
    ",top_p=0.6",
    ",min_p=0.3",
    ",typical_p=0.5",
    ",top_p=0.8,temperature=3,order=top_p",
    ",repetition_penalty=1.7",
    ",presence_penalty=1.5,seed=11",
    ",no_repeat_ngram=1",
    ",banned=moon,seed=12",
    ",force=1:2",
    ",roll=0:1+1:2",
)
BEAMS = (
    "beam,beams=1",
    "beam,beams=3,length_penalty=1",
    "beam,stop=full",
    "beam,kind=sampled,beams=3,temperature=2,seed=4",
    "beam,kind=sampled,beams=1",
    "beam,kind=diverse,diversity=3,groups=4",
)
some_lines = st.lists(
    st.builds("".join, st.tuples(st.sampled_from(["sample", "greedy"]), st.sampled_from(FILTERS)))
    | st.sampled_from(BEAMS),
    min_size=1,
    max_size=5,
)


@given(some_lines, st.sampled_from(["same", "own"]), st.integers(1, 4), st.integers(1, 6))
def test_any_columns_write_what_each_writes_alone(lines, dice, samples, limit):
    engine = ToyEngine(default_table())
    question = ask(*lines, dice=dice, samples=samples, max_new=limit)
    found = last(engine, question)
    for place, written in enumerate(found.columns):
        for text in written.texts:
            assert (text.ids, text.stop) == alone(engine, question, place, text.sample)
        assert written.texts == tuple(sorted(written.texts, key=lambda text: text.sample))
        for other, parts in written.parted:
            theirs = found.columns[other].texts[0].ids
            assert (written.texts[0].ids[parts.step], theirs[parts.step]) == (
                parts.here,
                parts.there,
            )
            assert written.texts[0].ids[: parts.step] == theirs[: parts.step]


def test_a_sampled_beam_of_one_shares_the_dice():
    lines = ("sample,temperature=1.5,seed=8", "beam,kind=sampled,beams=1,temperature=1.5")
    found = last(toy(EVEN), ask(*lines, max_new=9))
    assert found.columns[0].texts[0].ids == found.columns[1].texts[0].ids


@given(some_lines, st.integers(1, 3))
def test_a_stopped_comparison_has_whole_texts(lines, turn):
    def after(now):
        if now.steps == turn:
            raise Stopped

    engine = ToyEngine(default_table())
    *_, found = compare({"toy": engine}, ask(*lines, samples=3, max_new=6), on_turn=after)
    for written in found.columns:
        for text in written.texts:
            assert text.stop is not None
            assert len(text.ids) <= turn


def test_while_a_search_runs_the_likeliest_live_text_is_in_view():
    found = next(iter(compare({"toy": toy()}, ask("beam,beams=3", max_new=3))))
    (written,) = found.columns
    live = [written.search.steps[0].candidates[place] for place in written.search.steps[0].live]
    assert len(live) == 3
    assert written.texts[0].stop is None
    assert written.texts[0].ids == (max(live, key=lambda c: c.logprob).token,)
