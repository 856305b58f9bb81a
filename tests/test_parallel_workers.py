"""Real worker processes give the numbers of one process, and count what they send."""

import numpy as np
import pytest

from core.engine.local import LocalEngine
from core.faults import Fault
from core.lab.parallel.offload import offload_turns
from core.lab.parallel.pipeline import pipeline_turns, texts_of
from core.lab.parallel.replicas import BATCHES, STEPS, replica_turns
from core.lab.parallel.tensor import tensor_turns
from core.models.tiny import tiny_of
from tests.families import family_of

CLOSE = 1e-4


def last(turns):
    for record in turns:
        assert 0 <= record.progress <= 1
    assert record.done
    return record


def ids(engine, text="the thing is"):
    return engine.vocabulary.read(text).ids


@pytest.fixture(scope="module")
def three(tiny):
    """4 query heads on 2 KV heads, 3 ranks: a group is cut, and its KV head copied."""
    return last(tensor_turns(tiny, "tiny", ids(tiny), 3))


def test_three_ranks_compute_what_one_process_does(three, tiny):
    assert three.difference < CLOSE
    assert three.step_difference < CLOSE
    logits = tiny.forward(ids(tiny)).logits.astype(np.float64)
    p = np.exp(logits - logits.max())
    p /= p.sum()
    best = np.argsort(-p)[:5]
    assert [i for i, _, _ in three.favourites] == best.tolist()
    assert [single for _, single, _ in three.favourites] == pytest.approx(p[best], abs=1e-6)
    assert [split for _, _, split in three.favourites] == pytest.approx(p[best], abs=1e-5)


def test_partial_sums_add_up_to_the_output_of_one_process(three):
    assert three.partials.shape == (3, 2, 2, len(three.positions), 32)
    total = three.partials.sum(axis=0)
    assert np.abs(total - three.sums).max() < 1e-5
    assert np.abs(three.sums - three.dense).max() < 1e-4
    # No rank has the whole sum by itself.
    assert all(np.abs(part - three.sums).max() > 0.1 for part in three.partials)


def test_bytes_are_those_of_the_formula(three):
    tokens, width, layers, size = three.tokens, 32, 2, 4
    for found, count in ((three.step_traffic, 1), (three.prefill_traffic, tokens)):
        seen = {each.kind: each for each in found}
        assert all(each.bytes == each.theory for each in found)
        parts = [seen["attention"], seen["feed_forward"]]
        assert [part.calls for part in parts] == [layers, layers]
        assert sum(part.bytes for part in parts) == 2 * layers * width * size * count
        assert (seen["embedding"].calls, seen["embedding"].bytes) == (1, width * size * count)
        # 278 rows of the vocabulary: 93 + 93 + 92.
        assert (seen["logits"].calls, seen["logits"].bytes) == (1, 93 * size)


def test_memory_of_a_rank_is_its_share(three):
    whole, ranks = three.single_weights, three.ranks
    norms = 5 * 32 * 4
    # Layer: q 32·8·h, o the same, k and v 32·8 each, gate, up, down 32·n each; two tables.
    counted = [
        4 * (2 * (2 * 32 * 8 * heads + 2 * 32 * 8 + 3 * 32 * neurons) + 2 * rows * 32) + norms
        for heads, neurons, rows in ((1, 22, 93), (1, 21, 93), (2, 21, 92))
    ]
    assert [rank.weights for rank in ranks] == counted
    assert max(counted) < whole
    # Keys and values of one KV head of 8 numbers each, in 2 layers, for every token read.
    steps = 10
    assert {rank.kv for rank in ranks} == {2 * 2 * 8 * 4 * (three.tokens + steps)}
    for rank in ranks:
        assert 0 < rank.waiting.median < rank.step.median
        assert rank.step.low <= rank.step.median <= rank.step.high
        assert rank.process > rank.weights


@pytest.mark.parametrize(("family", "wanted"), [("gemma2", "split"), ("qwen2", "whole")])
def test_other_architectures_and_attention_whole(family, wanted):
    # Gemma 2: norms behind the parts, caps on scores and logits. Qwen2: biases on q, k and v.
    engine = LocalEngine(family_of(family))
    found = last(tensor_turns(engine, "tiny", ids(engine), 2, wanted))
    assert found.difference < CLOSE
    assert found.step_difference < CLOSE
    assert np.abs(found.sums - found.dense).max() < CLOSE
    assert np.abs(found.partials.sum(axis=0) - found.sums).max() < CLOSE
    calls = {each.kind: each.calls for each in found.step_traffic}
    assert calls["attention"] == (0 if wanted == "whole" else engine.info.layers)
    assert calls["feed_forward"] == engine.info.layers


def test_what_cannot_be_taken_apart_is_refused_before_anything_starts(tiny):
    for family in ("phi3", "gpt_oss", "bloom"):
        engine = LocalEngine(family_of(family))
        with pytest.raises(Fault) as caught:
            next(tensor_turns(engine, "tiny", ids(engine), 2))
        assert caught.value.code == "split_architecture"
    with pytest.raises(Fault) as caught:
        next(tensor_turns(tiny, "tiny", [1] * 2000, 2))
    assert caught.value.code == "split_prompt_too_long"


def test_a_pipeline_computes_what_one_process_does():
    engine = LocalEngine(tiny_of("gemma3"))
    found = last(pipeline_turns(engine, "tiny", ids(engine), 2, "cost", (1, 4)))
    assert found.difference == 0.0
    assert [run.micro_batches for run in found.runs] == [1, 4]
    for run in found.runs:
        assert len(run.bars) == 2 * run.micro_batches
        places = {(bar.stage, bar.micro_batch): bar for bar in run.bars}
        for (stage, piece), bar in places.items():
            assert 0 <= bar.start < bar.end
            if stage:
                assert bar.start >= places[stage - 1, piece].end
            if piece:
                assert bar.start >= places[stage, piece - 1].end
        assert 0 < run.bubble < 1
    # With one micro-batch stages never work at once.
    assert found.runs[0].bubble >= 0.5
    assert found.runs[0].ideal == 0.5
    assert found.runs[1].ideal == 0.2
    # One vector of 32 numbers for each of 32 positions of 8 texts.
    assert found.traffic.bytes == found.traffic.theory == 8 * 32 * 32 * 4
    assert found.traffic.calls == 4


def test_texts_of_a_batch_begin_with_the_prompt_and_differ(tiny):
    prompt = ids(tiny)
    rows, own = texts_of(tiny, prompt)
    assert own == len(prompt)
    assert len(rows) == 8
    assert {len(row) for row in rows} == {32}
    assert {tuple(row[:own]) for row in rows} == {tuple(prompt)}
    assert len({tuple(row) for row in rows}) == 8
    long, own = texts_of(tiny, [5] * 500)
    assert own == 64
    assert all(row == [5] * 64 for row in long)


def test_with_less_memory_the_logits_are_the_same(tiny):
    found = last(offload_turns(tiny, "tiny", ids(tiny), 0.5))
    assert found.difference == 0.0
    assert sum(place.bytes for place in found.places) == found.whole_bytes == 145_536
    assert found.held_bytes == sum(p.bytes for p in found.places if p.where == "cpu")
    assert found.held_bytes <= 0.5 * found.whole_bytes
    assert "disk" in {place.where for place in found.places}
    with pytest.raises(Fault):
        next(offload_turns(tiny, "tiny", ids(tiny), 1.0))


def test_copies_are_timed_at_every_batch_size(tiny):
    found = last(replica_turns(tiny, "tiny", ids(tiny)))
    settings = [(one.replicas, one.batch) for one in found.servings]
    assert settings == [(n, batch) for n in (1, 2) for batch in BATCHES]
    for one in found.servings:
        assert one.step.repeats == STEPS
        seconds = one.step.median / 1000
        assert one.per_second == pytest.approx(one.replicas * one.batch / seconds)
    assert found.weights == 145_536


def test_the_served_model_is_left_as_it_was(tiny, three):
    fresh = LocalEngine(tiny_of("llama"))
    with tiny.borrowed() as one, fresh.borrowed() as other:
        assert not any(module._forward_hooks for module in one.modules() if _projection(module))
        for (name, mine), (_, theirs) in zip(
            one.named_parameters(), other.named_parameters(), strict=True
        ):
            assert mine.equal(theirs), name


def _projection(module):
    return type(module).__name__ == "Linear"
