"""Many texts as one batch: the numbers of single texts, whatever their company and the memory."""

import threading
from functools import cache

import numpy as np
import pytest

from core.decode import beam_search
from core.engine.history import Histories
from core.engine.local import LocalEngine
from core.faults import Fault
from core.models.tiny import ARCHITECTURES, tiny_of
from core.settings import BeamSettings
from tests.families import FAMILIES, family_of

STATES = ("lfm2", "qwen3_next")
NAMES = (*ARCHITECTURES, *(name for name in FAMILIES if name != "mamba"))
PROMPT = tuple(int(i) for i in np.random.default_rng(8).integers(4, 250, 10))
SAME = 1e-4


@cache
def loaded(name):
    return tiny_of(name) if name in ARCHITECTURES else family_of(name)


@cache
def reference(name):
    return LocalEngine(loaded(name))


def fresh(name="llama", **budgets):
    return LocalEngine(loaded(name), **budgets)


def walk(seed, steps, *, width=5, prompt=PROMPT):
    """Batches of one question: parents used twice, in any order, rows that vanish."""
    dice = np.random.default_rng(seed)
    rows = [prompt] * width
    for step in range(steps):
        yield rows
        order = list(dice.permutation(len(rows))[: max(2, width - step // 8)])
        rows = [(*rows[i], int(dice.integers(4, 250))) for i in [*order, order[0]][:width]]


def asked(engine, batches, run="q"):
    return [engine.next_logits(rows, prompt_length=len(PROMPT), run=run) for rows in batches]


def same(a, b):
    return all((x == y).all() for x, y in zip(a, b, strict=True))


# --- the numbers of single texts


@pytest.mark.parametrize("name", NAMES)
def test_a_row_does_not_depend_on_its_neighbours(name):
    """Also far past the sliding windows."""
    engine = fresh(name)
    for rows in walk(1, 8 if name in STATES else 40):
        found = engine.next_logits(rows, prompt_length=len(PROMPT), run="q")
        for row, logits in zip(rows, found, strict=True):
            expected = reference(name).forward(row, prompt_length=len(PROMPT)).logits
            assert logits == pytest.approx(expected, abs=SAME)
    assert engine._batches.trusted() == (name not in STATES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("run", ["q", None])
def test_different_lengths_and_prompts(name, run):
    engine, dice = fresh(name), np.random.default_rng(2)
    rows = [tuple(int(i) for i in dice.integers(4, 250, n)) for n in (3, 30, 12, 1)]
    lengths = [len(row) for row in rows]
    for _ in range(3 if name in STATES else 12):
        found = engine.next_logits(rows, run=run)
        for row, logits, length in zip(rows, found, lengths, strict=True):
            prompt = length if run else len(row)
            expected = reference(name).forward(row, prompt_length=prompt).logits
            assert logits == pytest.approx(expected, abs=SAME)
        rows = [(*row, int(dice.integers(4, 250))) for row in rows]


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma3", "bloom", "lfm2"])
def test_a_batch_in_the_middle_of_a_run(name):
    """Some continue from what forward has read, some from nothing, of one length and of many."""
    engine, dice = fresh(name), np.random.default_rng(3)
    for lengths in ((9, 9, 9), (0, 4, 25), (1, 2)):
        rows = [(*PROMPT, *map(int, dice.integers(4, 250, n))) for n in lengths]
        engine.forward(rows[-1], prompt_length=len(PROMPT))
        found = engine.next_logits(rows, prompt_length=len(PROMPT))
        for row, logits in zip(rows, found, strict=True):
            expected = reference(name).forward(row, prompt_length=len(PROMPT)).logits
            assert logits == pytest.approx(expected, abs=SAME)


def test_the_prompt_and_a_single_text_are_what_forward_gives_to_the_bit():
    engine = fresh()
    text = PROMPT
    for token in (9, 8, 7):
        (row,) = engine.next_logits([text], prompt_length=len(PROMPT), run="greedy")
        assert (row == reference("llama").forward(text, prompt_length=len(PROMPT)).logits).all()
        text = (*text, token)
    rows = engine.next_logits([PROMPT] * 100, prompt_length=len(PROMPT), run="many")
    assert rows.shape == (100, engine.info.vocabulary)
    assert (rows == reference("llama").forward(PROMPT).logits).all()


# --- one pass a step, and each text once


def passes(engine, monkeypatch):
    shapes = []
    real = engine._model.forward

    def counted(ids, **more):
        shapes.append(tuple(ids.shape))
        return real(ids, **more)

    monkeypatch.setattr(engine._model, "forward", counted)
    engine._batches._takes_places = True
    return shapes


def test_a_step_is_one_pass_over_the_distinct_rows(monkeypatch):
    engine = fresh()
    assert engine._batches.trusted()
    shapes = passes(engine, monkeypatch)
    start = len(PROMPT)
    engine.forward(PROMPT)
    assert shapes == [(1, start)]
    ask = [
        [PROMPT] * 4,
        [(*PROMPT, 1), (*PROMPT, 2), (*PROMPT, 1), (*PROMPT, 3)],
        [(*PROMPT, 3, 5), (*PROMPT, 1, 5), (*PROMPT, 1, 6), (*PROMPT, 3, 5)],
        [(*PROMPT, 1, 6, 7)],
    ]
    asked(engine, ask)
    # The prompt was known whatever had been captured of it.
    assert shapes == [(1, start), (3, 1), (3, 1), (1, 1)]
    asked(engine, ask)
    assert len(shapes) == 4


def test_two_searches_of_one_question_share_what_they_read(monkeypatch):
    engine = fresh()
    assert engine._batches.trusted()
    first = beam_search(engine, PROMPT, BeamSettings(width=3, max_new=6))
    shapes = passes(engine, monkeypatch)
    again = beam_search(engine, PROMPT, BeamSettings(width=3, max_new=6, length_penalty=1))
    assert shapes == []
    assert [s.beams for s in again.steps] == [s.beams for s in first.steps] == [1, 3, 3, 3, 3, 3]


# --- the same numbers to the bit


def test_what_else_was_asked_changes_no_bit():
    batches = list(walk(4, 20))
    expected = asked(fresh(), batches)
    busy, found = fresh(), []
    for number, rows in enumerate(batches):
        asked(busy, walk(number, 3), run="other")
        busy.forward(rows[0], prompt_length=len(PROMPT))
        busy.next_logits(rows, prompt_length=len(PROMPT))
        found += asked(busy, [rows])
    assert same(found, expected)
    assert same(asked(busy, batches), expected)


@pytest.mark.parametrize("name", ["llama", "gemma3"])
@pytest.mark.parametrize("kv_bytes", [0, 40_000])
def test_what_was_forgotten_is_read_again_in_the_same_way(name, kv_bytes):
    """Every stack is dropped between two steps: the whole past of the question comes again."""
    batches = list(walk(5, 12))
    small = fresh(name, kv_bytes=kv_bytes, memo_bytes=0)
    twin = fresh(name, kv_bytes=kv_bytes, memo_bytes=0)
    expected = asked(small, batches)
    found = []
    for rows in batches:
        asked(twin, walk(6, 3), run="other")
        twin._batches._stacks = type(twin._batches._stacks)(kv_bytes // 2)
        found += asked(twin, [rows])
    assert same(found, expected)
    if kv_bytes:
        for a, b in zip(found, asked(fresh(name), batches), strict=True):
            assert a == pytest.approx(b, abs=SAME)


def test_a_step_asked_again_after_later_ones():
    engine, batches = fresh(memo_bytes=0), list(walk(7, 10))
    first = asked(engine, batches)
    for number in (9, 4, 0, 7):
        assert same(asked(engine, [batches[number]]), [first[number]])


def test_two_readers_of_one_question_at_once():
    batches = list(walk(9, 14))
    expected, engine, wrong = asked(fresh(), batches), fresh(memo_bytes=400_000), []

    def reader(run):
        if not same(asked(engine, batches, run), expected):
            wrong.append(run)

    threads = [threading.Thread(target=reader, args=(run,)) for run in ("a", "a", "a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_lock_is_free_between_two_passes(monkeypatch):
    """Others get their turn while a long question is read again."""
    engine, batches = fresh(kv_bytes=0, memo_bytes=0), list(walk(3, 8))
    asked(engine, batches[:-1])
    taken, real = [], engine._batches._logits

    def watched(*args):
        taken.append(engine._lock.locked())
        return real(*args)

    monkeypatch.setattr(engine._batches, "_logits", watched)
    free, step = [], engine._batches._step

    def between(*args, **more):
        free.append(not engine._lock.locked())
        return step(*args, **more)

    monkeypatch.setattr(engine._batches, "_step", between)
    asked(engine, batches[-1:])
    assert taken == [True] * 7
    assert free == [True] * 7


# --- memory


def test_a_hundred_samples_stay_within_the_budget():
    budget = 600_000
    engine = fresh(kv_bytes=budget, memo_bytes=0)
    dice, seen = np.random.default_rng(11), 0
    rows = [PROMPT] * 100
    for _ in range(20):
        found = engine.next_logits(rows, prompt_length=len(PROMPT), run="samples")
        assert engine.bytes_remembered <= budget + 1_000_000
        seen = max(seen, engine._batches._stacks.used)
        pick = [0, 57, 99]
        for index in pick:
            expected = reference("llama").forward(rows[index], prompt_length=len(PROMPT)).logits
            assert found[index] == pytest.approx(expected, abs=SAME)
        rows = [(*row, int(dice.integers(4, 250))) for row in rows]
    position = engine._batches._position
    assert 100 * 19 * position > budget // 2 > seen > budget // 4


def test_texts_of_many_lengths_beyond_the_budget_are_read_one_by_one():
    dice = np.random.default_rng(12)
    rows = [tuple(map(int, dice.integers(4, 250, n))) for n in (40, 30, 20)]
    engine = fresh(kv_bytes=60_000, memo_bytes=0)
    for _ in range(3):
        found = engine.next_logits(rows, prompt_length=15, run="long")
        for row, logits in zip(rows, found, strict=True):
            expected = reference("llama").forward(row, prompt_length=15).logits
            assert (logits == expected).all()
        rows = [(*row, 9) for row in rows]
    assert engine._batches._stacks.used == 0


def test_rows_are_dealt_out_evenly_to_passes_of_bounded_size():
    batches = fresh()._batches
    assert batches._chunk(50, 100) == 100
    assert batches._chunk(50, 256) == 128
    assert batches._chunk(50, 130) == 65
    assert batches._chunk(10**9, 7) == 1


def test_histories_are_forgotten_within_their_budget():
    histories = Histories(20_000)
    for number in range(200):
        batch = histories.place(number, 1, ((1, 2), (1, 3)))
        assert histories.place(number, 1, ((1, 2), (1, 3))) is batch
        assert histories.used <= 20_000


def test_rows_are_found_again_along_their_parents():
    histories = Histories(10**6)
    place = lambda *rows: histories.place("q", None, rows)  # noqa: E731
    first = place((1, 2), (5,))
    second = place((5, 6), (1, 2, 3), (5, 7))
    third = place((5, 7, 8), (5, 7, 9), (5, 6, 8))
    assert first.way, second.way == ("prompts", "gather")
    assert (third.way, third.before, third.depth) == ("next", second, 2)
    assert third.rows() == ((5, 7, 8), (5, 7, 9), (5, 6, 8))
    assert third.parents.tolist() == [2, 2, 0]
    assert [third.prompt_of(row) for row in third.rows()] == [1, 1, 1]
    assert place((5, 7, 8), (5, 7, 9), (5, 6, 8)) is third
    assert place((5, 7, 9), (5, 7, 8), (5, 6, 8)) is not third
    assert place((9, 9), (8,)).before is None


# --- the protocol


def test_answers_cannot_be_changed():
    for rows in walk(1, 3):
        found = fresh().next_logits(rows, run="q")
        if len(set(rows)) == len(rows):
            with pytest.raises(ValueError, match="read-only"):
                found[0, 0] = 1


@pytest.mark.parametrize(
    ("rows", "code"),
    [([(1, 2), ()], "empty_prompt"), ([(1,), (100_000,)], "unknown_token")],
)
def test_rows_that_cannot_be_read_get_a_sentence(tiny, rows, code):
    with pytest.raises(Fault) as caught:
        tiny.next_logits(rows, run="q")
    assert caught.value.code == code
    with pytest.raises(ValueError, match="prompt_length"):
        tiny.next_logits([(1, 2)], prompt_length=3)
    assert tiny.next_logits([]).shape == (0, tiny.info.vocabulary)


@pytest.mark.model
@pytest.mark.parametrize(("name", "longest"), [("smollm2", 60), ("gemma3", 513)])
def test_the_packaged_models(name, longest, request):
    """Gemma with one text past its window of 512 tokens, beside short ones."""
    engine = request.getfixturevalue(name)
    ids = engine.vocabulary.encode("The lighthouse keeper wrote down the weather. " * 60).ids
    texts = [ids[:longest], ids[:5], ids[3:30]]
    rows = list(texts)
    for _ in range(2):
        found = engine.next_logits(rows, run="lengths")
        for row, text, logits in zip(rows, texts, found, strict=True):
            alone = engine.forward(row, prompt_length=len(text)).logits
            assert logits == pytest.approx(alone, abs=SAME)
        rows = [(*row, int(np.argmax(logits))) for row, logits in zip(rows, found, strict=True)]
