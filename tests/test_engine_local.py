"""The engine against transformers' own eager attention, and against itself with other memory."""

import threading

import numpy as np
import pytest
import torch

from core.engine.local import LocalEngine
from core.engine.memory import PrefixCache
from core.faults import Fault
from core.models.tiny import ARCHITECTURES, tiny_of
from core.trace import Capture, Edit

EVERYTHING = Capture(attention=True, scores=True)


def oracle(model, ids):
    """The same weights through transformers' eager attention; [H, Q, S] a layer, and the rest."""
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        found = model(torch.tensor([ids]), output_attentions=True, output_hidden_states=True)
    model.set_attn_implementation("token_by_token")
    return found


def ids_of(count, size=256, seed=3):
    return tuple(int(i) for i in np.random.default_rng(seed).integers(0, size, count))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("length", [1, 7, 40])
def test_a_forward_equals_transformers_eager(architecture, length):
    loaded = tiny_of(architecture)
    engine = LocalEngine(loaded)
    ids = ids_of(length)
    forward = engine.forward(ids)
    expected = oracle(loaded.model, ids)

    layers, heads = engine.info.layers, engine.info.heads
    assert forward.attention.shape == (layers, heads, length, length)
    for layer in range(layers):
        assert forward.attention[layer] == pytest.approx(
            expected.attentions[layer][0].numpy(), abs=1e-6
        )
    assert forward.embedding == pytest.approx(expected.hidden_states[0][0].numpy(), abs=1e-6)
    for layer in range(layers - 1):
        after = expected.hidden_states[layer + 1][0].numpy()
        assert forward.residual[layer] == pytest.approx(after, abs=1e-5)
    assert forward.normed == pytest.approx(expected.hidden_states[-1][0, -1].numpy(), abs=1e-5)
    assert forward.logits == pytest.approx(expected.logits[0, -1].numpy(), abs=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_step_by_step_equals_all_at_once(architecture):
    engine = LocalEngine(tiny_of(architecture))
    ids = ids_of(40)
    whole = engine.forward(ids, capture=EVERYTHING)
    prompt = 5
    for length in range(prompt, len(ids) + 1):
        step = engine.forward(ids[:length], prompt_length=prompt)
        rows = slice(step.start, length)
        assert step.start == (0 if length == prompt else length - 1)
        assert step.attention == pytest.approx(whole.attention[:, :, rows, :length], abs=1e-5), (
            f"position {length - 1}"
        )
        assert step.residual == pytest.approx(whole.residual[:, rows], abs=1e-4)
    assert step.logits == pytest.approx(whole.logits, abs=1e-4)
    assert step.cached == len(ids) - 1


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_recorded_scores_give_the_recorded_weights(architecture):
    """softmax(q·kᵀ/√d, masked), recomputed from what was recorded, row by row."""
    engine = LocalEngine(tiny_of(architecture))
    found = engine.forward(ids_of(30), capture=EVERYTHING)
    scores = found.scores.astype(np.float64)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    assert weights == pytest.approx(found.attention, abs=1e-6)
    assert found.attention.sum(axis=-1) == pytest.approx(1, abs=1e-5)
    upper = np.triu(np.ones(found.attention.shape[-2:], dtype=bool), 1)
    assert (found.attention[:, :, upper] == 0).all()
    assert np.isneginf(found.scores[:, :, upper]).all()
    share = engine.info.heads // engine.info.kv_heads
    keys = np.repeat(found.keys, share, axis=1)
    products = np.einsum("lhqd,lhkd->lhqk", found.queries, keys, dtype=np.float64)
    seen = np.isfinite(scores[0, 0])
    ratio = products[0, 0][seen] / scores[0, 0][seen]
    assert ratio == pytest.approx(ratio[0], rel=1e-3)


def test_what_was_asked_before_changes_no_bit():
    """The same run alone, after a longer prompt, after forks, and from an empty memory."""
    ids = ids_of(24)
    alone = LocalEngine(tiny_of("llama"))
    expected = [alone.forward(ids[:n], prompt_length=8) for n in range(8, 25)]
    busy = LocalEngine(tiny_of("llama"))
    busy.forward(ids)
    busy.forward((*ids[:12], 9, 8, 7), prompt_length=8)
    for n in range(24, 7, -1):
        found = busy.forward(ids[:n], prompt_length=8)
        assert (found.logits == expected[n - 8].logits).all()
        assert (found.attention == expected[n - 8].attention).all()
    forgetful = LocalEngine(tiny_of("llama"), memo_bytes=0, kv_bytes=0)
    last = forgetful.forward(ids, prompt_length=8)
    assert (last.logits == expected[-1].logits).all()
    assert last.cached == 0


def test_a_fork_past_a_sliding_window_is_exact():
    """Cutting a cache whose window has moved on would be silently wrong."""
    loaded = tiny_of("gemma3")
    engine = LocalEngine(loaded)
    ids = ids_of(60)
    for n in range(6, 61):
        engine.forward(ids[:n], prompt_length=6)
    branch = (*ids[:30], 11, 12)
    forked = engine.forward(branch, prompt_length=6)
    assert forked.logits == pytest.approx(oracle(loaded.model, branch).logits[0, -1], abs=1e-4)


def test_the_same_question_is_answered_once():
    engine = LocalEngine(tiny_of("llama"))
    first = engine.forward((1, 2, 3))
    assert engine.forward([1, 2, 3]) is first
    assert engine.forward((1, 2, 3), prompt_length=2) is not first


def test_memory_stays_within_its_budget():
    one = LocalEngine(tiny_of("llama")).forward(ids_of(20)).nbytes
    engine = LocalEngine(tiny_of("llama"), memo_bytes=3 * one, kv_bytes=100_000)
    for seed in range(12):
        engine.forward(ids_of(20, seed=seed))
        assert engine.bytes_remembered <= 3 * one + 100_000
    assert engine.bytes_remembered > one


def test_records_cannot_be_changed():
    forward = LocalEngine(tiny_of("llama")).forward((1, 2, 3))
    for array in (forward.logits, forward.attention, forward.residual, forward.embedding):
        with pytest.raises(ValueError, match="read-only"):
            array[..., 0] = 1


def test_many_threads_get_what_each_would_get_alone():
    prompts = [ids_of(6 + n, seed=n) for n in range(6)]
    alone = [LocalEngine(tiny_of("llama")).forward(p) for p in prompts]
    engine = LocalEngine(tiny_of("llama"), memo_bytes=0)
    wrong = []

    def reader(index):
        for _ in range(8):
            found = engine.forward(prompts[index])
            same = (found.logits == alone[index].logits).all()
            if not same or found.attention.shape != alone[index].attention.shape:
                wrong.append(index)

    threads = [threading.Thread(target=reader, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("ids", "code"),
    [((), "empty_prompt"), ((1, 100_000), "unknown_token"), ((1, -1), "unknown_token")],
)
def test_ids_that_cannot_be_read_get_a_sentence(tiny, ids, code):
    with pytest.raises(Fault) as caught:
        tiny.forward(ids)
    assert caught.value.code == code


def test_a_text_longer_than_the_context_gets_a_sentence(tiny):
    with pytest.raises(Fault) as caught:
        tiny.forward([1] * (tiny.info.context + 1))
    assert caught.value.code == "context_full"
    assert str(tiny.info.context) in str(caught.value)


def test_next_logits_gives_a_row_for_each_prefix(tiny):
    prefixes = [(1, 2, 3), (4,), (1, 2, 3, 4, 5)]
    rows = tiny.next_logits(prefixes)
    for row, prefix in zip(rows, prefixes, strict=True):
        assert row == pytest.approx(tiny.forward(prefix).logits, abs=1e-4)


def test_unembedding_the_last_layer_is_the_models_own_answer(tiny):
    forward = tiny.forward(ids_of(9))
    assert tiny.unembed(forward.residual[-1, -1:])[0] == pytest.approx(forward.logits, abs=1e-4)


class TestPrefixCache:
    """Which cache is taken up, by ((prompt length, edit), ids)."""

    def test_another_prompt_length_or_edit_is_another_path(self):
        engine = LocalEngine(tiny_of("llama"))
        engine.forward((1, 2, 3, 4), prompt_length=2)
        cache: PrefixCache = engine._prefixes
        assert cache.longest((2, Edit()), (1, 2, 3, 4, 5))[0] == 4
        assert cache.longest((2, Edit()), (1, 2, 3, 9))[0] == 3
        assert cache.longest((3, Edit()), (1, 2, 3, 4))[0] == 0
        assert cache.longest((2, Edit()), (1, 9, 3))[0] == 0
        assert cache.longest((2, Edit(layers_off=(0,))), (1, 2, 3, 4))[0] == 0

    def test_a_longer_path_replaces_the_shorter_ones(self):
        engine = LocalEngine(tiny_of("llama"))
        for n in range(3, 9):
            engine.forward(tuple(range(n)), prompt_length=3)
        assert len(engine._prefixes._items) == 1
