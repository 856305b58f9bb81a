"""The KV cache laboratory: counting by hand, transformers as oracle, identities."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import DynamicCache

from core.decode.generate import Stopped
from core.engine.local import LocalEngine
from core.faults import Fault
from core.lab import kv_passes as passes
from core.lab.kv_contexts import at_lengths, long_ids
from core.lab.kv_cost import kept_bytes, token_bytes, work
from core.lab.kv_held import held, rows
from core.lab.kv_others import other_caches
from core.lab.kv_passes import new_cache, read, shape_in
from core.lab.kv_reuse import common_beginning, reused
from core.lab.kv_steps import written_twice
from core.lab.shape import ModelShape
from core.models.tiny import tiny_of
from core.trace import Capture
from tests.families import family_of

SMOLLM2 = ModelShape("smollm2", 30, 576, 9, 3, 64, 1536, 49152, tied=True)
GEMMA3 = ModelShape(
    "gemma3", 18, 640, 4, 1, 256, 2048, 262144,
    tied=True, window=512, sliding_layers=15, norms=4, qk_norm=True,
)  # fmt: skip
CLOSE = 5e-4


@pytest.fixture(scope="module")
def sliding():
    """Three layers, two of them with a window of 8 positions."""
    return LocalEngine(tiny_of("gemma3"))


def last_of(turns):
    for found in turns:
        last = found
    return last


# ---------------------------------------------------------------- counting


def test_a_step_by_hand():
    # 1 layer, D = 2, one head of 2, 3 neurons, 5 tokens in the vocabulary.
    shape = ModelShape("t", 1, 2, 1, 1, 2, 3, 5)
    step = work(shape, held=4, new=1, value_bytes=4)
    matrices = 4 * 2 * 2 + 3 * 2 * 3
    assert step.flops == 2 * matrices + 2 * 5 * 2 + 4 * 1 * 2 * 5
    # Two norms of 2 in the layer, one behind it; one row of the table, the LM head whole.
    assert step.weight_bytes == 4 * (matrices + 3 * 2 + 1 * 2 + 5 * 2)
    assert (step.kv_read, step.kv_written) == (2 * 2 * 4 * 5, 2 * 2 * 4)
    assert step.bytes == step.weight_bytes + 80 + 16
    whole = work(shape, held=0, new=5, value_bytes=4)
    # All 5 · 5 pairs are computed, the masked ones too; only the last position meets the head.
    assert whole.flops == 2 * matrices * 5 + 2 * 5 * 2 + 4 * 2 * 25
    assert whole.kv_read == whole.kv_written == 80


@pytest.mark.parametrize("architecture", ["llama", "gemma3", "mistral", "qwen2", "qwen3"])
@pytest.mark.parametrize(("held_", "new"), [(0, 11), (11, 1), (6, 3)])
def test_flops_are_those_that_torch_counts(architecture, held_, new):
    engine = LocalEngine(tiny_of(architecture))
    shape, value = shape_in(engine)
    ids = tuple(range(5, 5 + held_ + new))
    with engine.borrowed() as model:
        cache = new_cache(model)
        if held_:
            read(model, ids[:held_], cache)
        counter = FlopCounterMode(display=False)
        with counter:
            read(model, ids[held_:], cache)
    assert counter.get_total_flops() == work(shape, held_, new, value).flops


def test_the_size_of_a_cache_by_hand():
    assert token_bytes(SMOLLM2, 4) == 2 * 30 * 3 * 64 * 4 == 46_080
    assert kept_bytes(SMOLLM2, 1000, 4) == 46_080_000
    # A step writes what the cache grows by, and reads all of it.
    step = work(SMOLLM2, 999, 1, 4)
    assert (step.kv_written, step.kv_read) == (46_080, 46_080_000)
    assert token_bytes(GEMMA3, 4) == 2 * 18 * 256 * 4 == 36_864
    # 3 layers keep everything; 15 keep 511, and the next token is the 512th that they see.
    assert kept_bytes(GEMMA3, 1000, 4) == 2048 * (3 * 1000 + 15 * 511)
    assert kept_bytes(GEMMA3, 511, 2) == 511 * 36_864 / 2


def test_a_pass_of_a_mixture_reads_the_experts_that_its_tokens_meet():
    shape = ModelShape("t", 1, 2, 1, 1, 2, 3, 5, tied=True, experts=4, active=1)
    others = shape.parameters - 4 * shape.expert_parameters
    for new, met in ((1, 1), (2, 4 - 4 * 0.75**2)):
        read_ = others + met * shape.expert_parameters
        assert work(shape, 0, new, 4).weight_bytes == round(4 * read_)


def test_other_models_keep_two_rows_a_kv_head():
    for other in other_caches(100):
        rows_ = 2 * other.layers * other.kv_heads
        assert other.token_bytes == rows_ * other.head_dim * 2, other.name
        assert other.heads % other.kv_heads == 0
        assert (other.cache_bytes, other.length) == (100 * other.token_bytes, 100)


# ---------------------------------------------------------------- what is held


def test_the_cache_is_what_transformers_makes(tiny):
    ids = tiny.vocabulary.read("the thing is the thing").ids
    found = held(tiny, ids)
    assert found.length == len(ids)
    assert found.token_bytes == found.next_bytes == 2 * 2 * 2 * 8 * 4
    assert found.nbytes == len(ids) * found.token_bytes
    other = tiny_of("llama").model
    cache = DynamicCache(config=other.config)
    with torch.inference_mode():
        other(torch.tensor([ids]), cache=cache, use_cache=True)
    for layer in (0, 1):
        for head in (0, 1):
            one = rows(tiny, ids, layer, head)
            assert one.first == 0
            for mine, theirs in ((one.keys, "keys"), (one.values, "values")):
                oracle = getattr(cache.layers[layer], theirs)[0, head].numpy()
                assert mine == pytest.approx(oracle, abs=1e-5)


def test_the_rows_are_those_that_attention_reads(tiny):
    ids = tiny.vocabulary.read("the thing").ids
    forward = tiny.forward(ids, capture=Capture(scores=True))
    one = rows(tiny, ids, 1, 0)
    assert np.array_equal(one.keys, forward.keys[1, 0])
    assert np.array_equal(one.values, forward.values[1, 0])
    longer = (*ids, 7)
    after = rows(tiny, longer, 1, 0, prompt_length=len(ids))
    # What is written stays as it is; one row is new.
    assert np.array_equal(after.keys[:-1], one.keys)
    assert len(after.keys) == len(longer)


def test_a_sliding_layer_drops_its_oldest_rows(sliding):
    ids = tuple(range(5, 17))
    found = held(sliding, ids)
    assert [layer.positions for layer in found.layers] == [7, 7, 12]
    assert [layer.first for layer in found.layers] == [5, 5, 0]
    assert [layer.full for layer in found.layers] == [True, True, False]
    row = 2 * 2 * 16 * 4
    assert found.nbytes == row * (7 + 7 + 12)
    assert (found.token_bytes, found.next_bytes) == (3 * row, row)
    shape, value = shape_in(sliding)
    assert found.nbytes == kept_bytes(shape, len(ids), value)
    assert len(rows(sliding, ids, 0, 1).keys) == 7
    assert rows(sliding, ids, 0, 1).first == 5
    assert len(rows(sliding, ids, 2, 1).keys) == 12
    assert held(sliding, ids[:7]).next_bytes == row
    assert held(sliding, ids[:6]).next_bytes == 3 * row


def test_what_is_not_there_is_said(tiny):
    ids = (5, 6, 7)
    with pytest.raises(Fault, match="layer"):
        rows(tiny, ids, 2, 0)
    with pytest.raises(Fault, match="KV head 2"):
        rows(tiny, ids, 0, 2)
    states = LocalEngine(family_of("lfm2"))
    with pytest.raises(Fault, match="keep a state"):
        shape_in(states)
    # The one layer with attention is still measured.
    assert [layer.layer for layer in held(states, ids).layers] == [1]
    with pytest.raises(Fault, match="keep a state"):
        rows(states, ids, 0, 0)


# ---------------------------------------------------------------- with and without


def test_both_ways_write_what_generate_writes(tiny):
    ids = tiny.vocabulary.read("the thing").ids
    run = last_of(written_twice(tiny, ids, 6, repeats=1))
    oracle = tiny_of("llama").model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=6)
    assert list(run.ids) == oracle[0].tolist()
    assert run.done
    assert run.equal
    assert 0 < run.difference <= CLOSE
    assert [step.cached.positions for step in run.steps] == [len(ids), 1, 1, 1, 1, 1]
    assert [step.whole.positions for step in run.steps] == [len(ids) + i for i in range(6)]
    assert run.steps[0].difference == 0
    for step in run.steps:
        assert step.cache_bytes == 256 * step.length
        assert step.scores[0].id == step.chosen
        gaps = [abs(score.cached - score.whole) for score in step.scores]
        assert max(gaps) <= step.difference
        assert 0 < step.cached_ms.low <= step.cached_ms.median <= step.cached_ms.high
        assert step.cached_ms.repeats == step.whole_ms.repeats == 1


def test_windows_change_nothing_of_it(sliding):
    run = last_of(written_twice(sliding, tuple(range(5, 14)), 5, repeats=1))
    assert run.equal
    assert run.difference <= CLOSE
    row = 256
    assert [step.cache_bytes for step in run.steps] == [row * (14 + n) for n in range(9, 14)]


def test_it_can_be_stopped_and_goes_no_further_than_asked(tiny):
    ids = tiny.vocabulary.read("the thing").ids
    turns = written_twice(tiny, ids, 5, repeats=2)
    shares = []
    for now in turns:
        shares.append(now.progress)
        if len(now.steps) == 2:
            break
    assert shares == sorted(shares)
    assert not now.done
    with pytest.raises(Stopped):
        turns.throw(Stopped())
    for steps, prompt in ((0, ids), (65, ids), (5, ()), (3, (5,) * 511)):
        with pytest.raises(Fault):
            next(written_twice(tiny, prompt, steps))


@pytest.fixture
def counting(monkeypatch):
    """A clock for which each position that goes through the model takes a millisecond."""

    def timed(engine, new, cache):
        return float(len(new)), passes.timed(engine, new, cache)[1]

    for module in ("kv_steps", "kv_reuse"):
        monkeypatch.setattr(f"core.lab.{module}.timed", timed)


def test_times_stand_beside_the_way_that_took_them(tiny, counting):
    ids = tiny.vocabulary.read("the thing").ids
    for step in last_of(written_twice(tiny, ids, 3, repeats=2)).steps:
        assert step.cached_ms.median == step.cached.positions
        assert step.whole_ms.median == step.whole.positions
    for point in last_of(at_lengths(tiny, (4, 16), repeats=1)).points:
        assert (point.cached_ms.median, point.whole_ms.median) == (1, point.length)
        assert point.ratio == point.length
    found = last_of(reused(tiny, (5, 6, 7, 8), (5, 6, 7, 9, 10), repeats=1))
    assert (found.whole_ms.median, found.reused_ms.median) == (5, 2)


def test_longer_texts_cost_more_without_a_cache(tiny):
    found = last_of(at_lengths(tiny, (4, 64, 400, 5000), repeats=1))
    # The model reads 512 tokens at most.
    assert [point.length for point in found.points] == [4, 64, 400]
    assert found.done
    assert [point.cached.positions for point in found.points] == [1, 1, 1]
    assert [point.whole.positions for point in found.points] == [4, 64, 400]
    assert all(point.difference <= CLOSE for point in found.points)
    assert [point.cache_bytes for point in found.points] == [256 * n for n in (4, 64, 400)]
    assert len(long_ids(tiny, 3000)) == 3000


# ---------------------------------------------------------------- a beginning used twice


def test_a_beginning_is_not_computed_twice(tiny):
    first, second = tuple(range(5, 25)), (*range(5, 20), 60, 61)
    found = last_of(reused(tiny, first, second, repeats=2))
    assert (found.first, found.second, found.common) == (20, 17, 15)
    assert (found.whole.positions, found.reused.positions) == (17, 2)
    assert found.shared_bytes == 15 * 256
    assert found.difference <= CLOSE
    assert found.whole_ms.repeats == found.reused_ms.repeats == 2
    # The last token is always read: something has to follow it.
    assert common_beginning(first, first) == 19
    assert common_beginning((1, 2), (3, 4)) == 0
    nothing = last_of(reused(tiny, (5, 6), (7, 8), repeats=1))
    assert (nothing.common, nothing.shared_bytes, nothing.difference) == (0, 0, 0)
    assert last_of(reused(tiny, (5, 6), (5,), repeats=1)).reused.positions == 1


def test_a_window_may_have_dropped_the_beginning(sliding):
    first = tuple(range(5, 25))
    with pytest.raises(Fault, match="15 tokens"):
        next(reused(sliding, first, (*first[:15], 60, 61)))
    found = last_of(reused(sliding, first, (*first, 60, 61), repeats=1))
    assert found.common == 20
    assert found.difference <= CLOSE


# ---------------------------------------------------------------- the packaged models


@pytest.mark.model
def test_smollm2_takes_46080_bytes_a_token(smollm2):
    ids = smollm2.vocabulary.read("The capital of France is").ids
    found = held(smollm2, ids)
    assert (found.token_bytes, found.nbytes) == (46_080, 46_080 * len(ids))
    run = last_of(written_twice(smollm2, ids, 2, repeats=1))
    assert smollm2.vocabulary.text(run.ids[-2:]) == " Paris."
    assert run.equal
    assert 0 < run.difference <= CLOSE


@pytest.mark.model
def test_gemma_stops_growing_in_its_windows(gemma3):
    ids = long_ids(gemma3, 600)
    found = held(gemma3, ids)
    assert found.nbytes == 2048 * (3 * 600 + 15 * 511)
    assert (found.token_bytes, found.next_bytes) == (36_864, 6144)
    one = rows(gemma3, ids, 0, 0)
    assert (one.first, one.keys.shape) == (89, (511, 256))
