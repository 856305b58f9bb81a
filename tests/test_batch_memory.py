"""What batches keep and what they spare: each law here fails for one small change of the code."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from core.engine import batch as module
from core.engine.history import ENTRY, Histories
from core.engine.stack import Stack, can_stack
from tests.test_batch import PROMPT, SAME, asked, fresh, passes, reference, same, walk

START = len(PROMPT)


def known(name="llama", **budgets):
    """An engine whose batches are trusted, so that trying them is not counted."""
    engine = fresh(name, **budgets)
    assert engine._batches.trusted()
    return engine


def forget_stacks(engine):
    engine._batches._stacks = type(engine._batches._stacks)(engine._batches._limit)


def grown(rows, *tokens):
    return [(*row, token) for row, token in zip(rows, tokens, strict=True)]


FIRST = [(*PROMPT, 5), (*PROMPT, 6), (*PROMPT, 7)]
SECOND = grown(FIRST, 8, 9, 8)
THIRD = grown(SECOND, 1, 2, 3)


def test_a_question_holds_the_stack_of_its_latest_step_alone():
    engine = known()
    asked(engine, walk(1, 6))
    assert len(engine._batches._stacks) == 1
    asked(engine, walk(2, 6), run="other")
    assert len(engine._batches._stacks) == 2


def test_a_question_without_a_name_leaves_nothing():
    engine = known()
    engine.next_logits(FIRST, prompt_length=START)
    engine.next_logits([FIRST[0], SECOND[1]], prompt_length=START)
    assert engine._batches.used == 0


def test_answers_of_a_pass_cannot_be_changed():
    engine = known()
    for rows in (FIRST, SECOND, [FIRST[0], THIRD[1]]):
        found = engine.next_logits(rows, prompt_length=START, run=len(rows))
        with pytest.raises(ValueError, match="read-only"):
            found[0, 0] = 1


def test_a_forgotten_stack_is_made_again_though_its_answers_are_known(monkeypatch):
    expected = asked(known(), [FIRST, SECOND, THIRD])
    engine = known()
    asked(engine, [FIRST, SECOND])
    forget_stacks(engine)
    shapes = passes(engine, monkeypatch)
    assert same(asked(engine, [THIRD]), expected[2:])
    assert shapes == [(3, 1), (3, 1), (3, 1)]


def test_what_another_thread_has_read_meanwhile_is_taken(monkeypatch):
    engine = known()
    (expected,) = asked(engine, [FIRST])
    shapes, answers, missed = passes(engine, monkeypatch), engine._batches._answers, []
    real = answers.get

    def late(batch):
        """Not there at the first look."""
        missed.append(batch)
        return real(batch) if len(missed) > 1 else None

    monkeypatch.setattr(answers, "get", late)
    assert same(asked(engine, [FIRST]), [expected])
    assert shapes == []
    assert len(missed) == 2


@pytest.mark.parametrize("rows", [FIRST, [FIRST[0], SECOND[1]]], ids=["fan", "gather"])
def test_a_batch_goes_on_from_the_caches_of_single_runs(rows, monkeypatch):
    engine = known()
    for row in rows:
        for stop in range(START, len(row)):
            engine.forward(row[:stop], prompt_length=START)
    shapes = passes(engine, monkeypatch)
    engine.next_logits(rows, prompt_length=START)
    assert shapes == [(len(rows), 1)]


def test_a_text_that_parts_after_a_while_is_read_on_from_there(monkeypatch):
    engine, text = known(), PROMPT
    for token in (9, 8, 7):
        engine.next_logits([text], prompt_length=START, run="q")
        text = (*text, token)
    engine.next_logits([text], prompt_length=START, run="q")
    shapes = passes(engine, monkeypatch)
    rows = [(*text, 1), (*text, 2)]
    found = engine.next_logits(rows, prompt_length=START, run="q")
    assert shapes == [(2, 1)]
    for row, logits in zip(rows, found, strict=True):
        alone = reference("llama").forward(row, prompt_length=START).logits
        assert logits == pytest.approx(alone, abs=SAME)


def test_texts_beyond_the_budget_do_not_read_their_past_again(monkeypatch):
    dice = np.random.default_rng(12)
    rows = [tuple(map(int, dice.integers(4, 250, n))) for n in (40, 30, 20)]
    engine = known(kv_bytes=60_000, memo_bytes=0)
    shapes, read = passes(engine, monkeypatch), [0]
    for _ in range(3):
        engine.next_logits(rows, prompt_length=15, run="long")
        read.append(len(shapes))
        rows = grown(rows, 9, 9, 9)
    first, second, third = np.diff(read)
    assert second <= first + 3
    assert third <= second + 3


def test_of_many_rows_as_many_are_kept_as_fit_beside_what_they_share():
    """A stack that did not fit would be forgotten, and its whole past read at each step."""
    position = known()._batches._position
    budget = 2 * (START + 40) * position  # half of it is for stacks
    engine = known(kv_bytes=budget, memo_bytes=0)
    rows = [PROMPT] * 30
    for step in range(8):
        engine.next_logits(rows, prompt_length=START, run="q")
        rows = grown(rows, *(int(t) for t in np.random.default_rng(step).permutation(200)[:30]))
        used, limit = engine._batches._stacks.used, engine._batches._limit
        if step:
            assert 0 < used <= limit
        if step >= 4:
            # All that fits: 10 rows of 4 positions beside the 10 of the prompt, and so on.
            assert used > 0.7 * limit


def test_many_rows_are_dealt_out_to_passes(monkeypatch):
    expected = asked(known(), [FIRST, SECOND])
    monkeypatch.setattr(module, "MOST_ROWS", 2)
    engine = known()
    shapes = passes(engine, monkeypatch)
    found = asked(engine, [FIRST, SECOND])
    assert [rows for rows, _ in shapes if rows < 3][-4:] == [2, 1, 2, 1]
    for a, b in zip(found, expected, strict=True):
        assert a == pytest.approx(b, abs=SAME)


def test_a_sliding_window_keeps_no_position_that_it_cannot_see():
    engine = known(name="gemma3")
    asked(engine, walk(1, 30))
    (batch,) = engine._batches._stacks.known()
    stack = engine._batches._stacks.get(batch)
    windows = [rows for rows in stack.layers if rows.window]
    assert windows
    for rows in windows:
        assert rows.own[0].shape[-2] == rows.own[1].shape[-2] == min(rows.window - 1, 29)
    assert {rows.own[0].shape[-2] for rows in stack.layers if not rows.window} == {29}


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma3"])
def test_texts_of_different_lengths_change_places_and_part(name):
    engine, dice = known(name), np.random.default_rng(3)
    rows = [tuple(int(i) for i in dice.integers(4, 250, n)) for n in (3, 30, 12)]
    lengths = [3, 30, 12]
    for order in ([0, 1, 2], [2, 0, 1], [1, 1, 2], [2, 0], [1, 0, 0]):
        rows = [(*rows[i], 20 + 3 * place) for place, i in enumerate(order)]
        lengths = [lengths[i] for i in order]
        found = engine.next_logits(rows, run="q")
        for row, logits, length in zip(rows, found, lengths, strict=True):
            alone = reference(name).forward(row, prompt_length=length).logits
            assert logits == pytest.approx(alone, abs=SAME)


# --- histories


def test_a_question_is_its_name_and_the_length_of_its_prompt():
    histories, rows = Histories(10**6), ((1, 2), (1, 3))
    short, long = (histories.place("q", length, rows) for length in (1, 2))
    assert (short.way, long.way) == ("fan", "prompts")
    assert [batch.prompt_length for batch in (short, long)] == [1, 2]
    assert histories.place("q", 1, rows) is short


def test_a_long_question_weighs_more_and_is_forgotten_whole():
    histories, rows = Histories(20 * ENTRY), ((1, 2), (1, 3))
    for step in range(12):
        histories.place("q", 1, rows)
        rows = tuple((*row, step) for row in rows)
        assert histories.used >= (step + 1) * ENTRY
    for step in range(12):
        rows = tuple((*row, step) for row in rows)
        histories.place("q", 1, rows)
    assert histories.used <= 20 * ENTRY


def test_of_two_batches_that_it_could_continue_the_older_one_counts():
    histories = Histories(10**6)
    place = lambda *rows: histories.place("q", None, rows)  # noqa: E731
    first = place((1, 2), (5,))
    older = place((1, 2, 3), (5, 6))
    newer = place((5, 6), (1, 2, 3))
    assert newer is not older
    assert older.before is newer.before is first
    found = place((1, 2, 3, 4), (5, 6, 7))
    assert found.before is older
    assert found.parents.tolist() == [0, 1]


def test_padding_stays_as_wide_as_the_longest_text_was():
    histories = Histories(10**6)
    place = lambda *rows: histories.place("q", 1, rows)  # noqa: E731
    first = place((1, 2), (5,), (1, 2, 3, 4))
    assert (first.way, first.padded, first.longest, first.cells) == ("gather", True, 4, 12)
    second = place((1, 2, 3), (5, 6))  # the longest one is gone, its column is not
    assert (second.way, second.padded, second.longest, second.cells) == ("next", True, 5, 12)
    third = place(*((1, 2, 3, n) for n in range(4)))
    assert (third.longest, third.cells) == (6, 24)
    even = histories.place("even", 1, ((1, 2), (1, 3)))
    assert (even.padded, even.cells) == (False, 0)


def test_how_a_batch_is_read():
    histories = Histories(10**6)
    way = lambda run, *rows: histories.place(run, 1, rows).way  # noqa: E731
    assert way("a", (1, 2), (3, 2)) == "gather"  # of one length, but not of one prompt
    assert way("b", (1, 2), (1, 2, 3)) == "gather"
    assert way("c", (1, 2)) == way("c", (1, 2, 3)) == "single"
    assert way("c", (1, 2, 3, 4), (1, 2, 3, 5)) == "fan"
    assert way("d", (1,), (2,)) == "prompts"
    assert way("d", (1, 2), (2, 3)) == "gather"
    assert way("d", (1, 2, 4)) == "next"


# --- which models are trusted with batches


def test_a_model_whose_batches_differ_reads_its_rows_one_by_one(monkeypatch):
    engine = fresh()
    real = engine._batches._single
    monkeypatch.setattr(engine._batches, "_single", lambda row, n: real(row, n) + 0.01)
    assert not engine._batches.trusted()
    shapes = passes(engine, monkeypatch)
    engine.next_logits(FIRST, prompt_length=START, run="q")
    assert {rows for rows, _ in shapes} == {1}


def test_texts_of_different_lengths_are_tried_too(monkeypatch):
    """An architecture that takes no notice of the mask is right for equal lengths only."""
    monkeypatch.setattr(Stack, "places", lambda *_: {})
    assert not fresh()._batches.trusted()


def test_an_error_while_trying_is_an_answer(monkeypatch, caplog):
    engine = fresh()

    def broken(*_, **__):
        raise RuntimeError("no such mask")

    monkeypatch.setattr(engine._batches, "_logits", broken)
    assert engine._batches.trusted() is False
    assert "cannot be batched" in caplog.text


def test_what_can_be_stacked():
    engine = fresh()
    config = engine._model.config
    cache = engine._cache_of(PROMPT, START)
    assert can_stack(config, cache)
    chunks = SimpleNamespace(layer_types=["chunked_attention", "full_attention"])
    assert not can_stack(SimpleNamespace(get_text_config=lambda: chunks), cache)
    other = type("Other", (type(cache.layers[0]),), {})()
    assert not can_stack(config, SimpleNamespace(layers=[*cache.layers, other]))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 8, 9])
def test_the_lm_head_of_a_few_rows_is_the_same_and_stays_as_it_was(rows, bias):
    torch.manual_seed(rows)
    head = torch.nn.Linear(6, 40, bias=bias)
    hidden = torch.randn(rows, 1, 6)
    with torch.inference_mode():
        expected = head(hidden)
        with module._tall_head(head, rows):
            assert ("forward" in vars(head)) == (1 < rows <= 8)
            found = head(hidden)
    assert found.shape == expected.shape
    assert torch.allclose(found, expected, atol=1e-6)
    assert "forward" not in vars(head)
