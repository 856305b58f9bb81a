"""Maps of a run, statistics of heads, one weight recomputed, heads switched off."""

import time

import numpy as np
import pytest

from core import ablation
from core.engine.local import LocalEngine
from core.faults import Fault
from core.heads import (
    PROBE,
    induction,
    last_rows,
    layer_map,
    owner,
    probe_ids,
    statistics,
    telling_head,
)
from core.models.tiny import ARCHITECTURES, tiny_of
from core.settings import Settings
from core.trace import Capture, Edit
from core.weight import derive, plain_scaling
from ui.figures.attention import Digest, grid_data, head_data, pictures


def ids_of(count, seed=0, size=256):
    return tuple(int(i) for i in np.random.default_rng(seed).integers(0, size, count))


def steps(engine, ids, prompt):
    """The passes of a run whose prompt has ``prompt`` tokens."""
    return [
        engine.forward(ids[:stop], prompt_length=prompt) for stop in range(prompt, len(ids) + 1)
    ]


# --- maps


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_the_stitched_rows_are_those_of_one_pass_over_everything(architecture):
    engine = LocalEngine(tiny_of(architecture))
    ids = ids_of(14)
    forwards = steps(engine, ids, 6)
    whole = engine.forward(ids)
    for layer in range(engine.info.layers):
        found = layer_map(forwards, layer)
        assert found.shape == (engine.info.heads, 14, 14)
        assert found == pytest.approx(whole.attention[layer], abs=1e-5)
        assert found.sum(axis=2) == pytest.approx(1, abs=1e-5)
        assert (np.triu(found, 1) == 0).all()
    assert last_rows(forwards, engine.info.layers) == pytest.approx(
        whole.attention[:, :, -1].mean(axis=1), abs=1e-5
    )
    # Read alone, a layer with a window gives its latest keys only.
    for layer in range(engine.info.layers):
        alone = [
            engine.forward(f.ids, prompt_length=6, capture=Capture(layer=layer)) for f in forwards
        ]
        assert layer_map(alone, layer) == pytest.approx(whole.attention[layer], abs=1e-5)
        known = last_rows(alone, engine.info.layers)
        assert known[layer] == pytest.approx(whole.attention[layer, :, -1].mean(axis=0), abs=1e-5)
        assert np.isnan(np.delete(known, layer, axis=0)).all()
    assert owner(forwards, 3) is forwards[0]
    assert owner(forwards, 9).start == 9
    with pytest.raises(LookupError):
        owner(forwards, 14)


def test_a_map_misses_what_a_pass_did_not_keep(tiny):
    ids = ids_of(6)
    kept = tiny.forward(ids)
    bare = tiny.forward(ids[:5], prompt_length=5, capture=Capture(attention=False))
    assert layer_map([bare, kept], 0) is None
    assert last_rows([bare], 2) is None
    one = tiny.forward(ids, capture=Capture(layer=1))
    assert layer_map([one], 0) is None
    assert (layer_map([one], 1) == kept.attention[1]).all()
    assert np.isnan(last_rows([one], 2)[0]).all()


def test_the_telling_head_reads_something_in_between(tiny):
    forward = tiny.forward(ids_of(8))
    layer, head = telling_head(forward)
    between = forward.attention[:, :, -1, 1:-1]
    assert between[layer, head].max() == between.max()
    assert telling_head(tiny.forward((1,))) == (0, 0)
    assert telling_head(tiny.forward((1, 2), capture=Capture(attention=False))) is None


# --- statistics: by hand


HAND = np.array(
    [
        [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.5, 0.25, 0], [0, 0, 1, 0]],
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]],
    ],
    dtype=np.float32,
)


def test_statistics_of_two_heads_written_by_hand():
    found = statistics(HAND, (7, 8, 7, 9))
    ln2 = np.log(2)
    assert found.entropy == pytest.approx([(ln2 + 1.5 * ln2 + 0) / 3, 0], abs=1e-6)
    assert found.distance == pytest.approx([(0.5 + 1.0 + 1) / 3, (0 + 0 + 3) / 3], abs=1e-6)
    assert found.first == pytest.approx([0.25, 1 / 3], abs=1e-6)
    assert found.previous == pytest.approx([(0.5 + 0.5 + 1) / 3, 0], abs=1e-6)
    assert found.itself == pytest.approx([0.25, 2 / 3], abs=1e-6)
    # Only position 2 has an earlier twin: position 0.
    assert found.same == pytest.approx([0.25, 0], abs=1e-6)


def test_statistics_change_when_the_axes_are_swapped():
    swapped = statistics(np.ascontiguousarray(HAND.transpose(0, 2, 1)), (7, 8, 7, 9))
    right = statistics(HAND, (7, 8, 7, 9))
    assert swapped.first[0] != pytest.approx(right.first[0])
    assert swapped.distance[0] != pytest.approx(right.distance[0])


def test_a_single_token_has_statistics_and_no_twin():
    found = statistics(np.ones((3, 1, 1), dtype=np.float32), (5,))
    assert found.first == pytest.approx(1)
    assert found.entropy == pytest.approx(0)
    assert np.isnan(found.same).all()


def test_the_probe_is_ordinary_tokens_twice(tiny):
    ids, start, length = probe_ids(tiny.vocabulary)
    assert length == PROBE == len(set(ids[start : start + length]))
    assert ids[start : start + length] == ids[start + length :]
    assert not any(tiny.vocabulary.is_special(id) for id in ids[start:])
    assert probe_ids(tiny.vocabulary) == (ids, start, length)


def test_induction_reads_the_token_after_the_first_copy(tiny):
    ids, start, length = probe_ids(tiny.vocabulary)
    weights = tiny.forward(ids).attention
    by_hand = np.mean(
        [weights[:, :, start + length + i, start + i + 1] for i in range(length)], axis=0
    )
    assert induction(tiny) == pytest.approx(by_hand, abs=1e-6)


@pytest.mark.model
def test_the_default_model_has_induction_heads_and_a_sink(smollm2):
    found = induction(smollm2)
    assert np.unravel_index(found.argmax(), found.shape) == (18, 6)
    assert found.max() > 0.9
    assert np.median(found) < 0.05
    forward = smollm2.forward(smollm2.vocabulary.read("The capital of France is").ids)
    firsts = [statistics(layer_map([forward], n), forward.ids).first for n in range(30)]
    assert 0.6 < np.mean(firsts) < 0.85


# --- one weight


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_a_recomputed_row_equals_the_captured_one(architecture):
    engine = LocalEngine(tiny_of(architecture))
    ids, prompt = ids_of(20, seed=3), 13
    for query in (0, 1, 7, 12, 15, 19):
        stop = prompt if query < prompt else query + 1
        for layer in range(engine.info.layers):
            kept = Capture(attention=True, scores=True, layer=layer)
            forward = engine.forward(ids[:stop], prompt_length=prompt, capture=kept)
            for head in range(engine.info.heads):
                found = derive(forward, layer, head, query, query // 2)
                assert found.difference < 1e-5
                assert found.weights.sum() == pytest.approx(1, abs=1e-9)
                assert found.kv_head == head // (engine.info.heads // engine.info.kv_heads)
                assert (found.weights[query + 1 :] == 0).all()
                window = engine.window(layer)
                seen = range(max(0, query - (window or 10**6) + 1), query + 1)
                assert np.flatnonzero(found.visible).tolist() == list(seen)


def test_the_scaling_is_the_models_own():
    llama, gemma = LocalEngine(tiny_of("llama")), LocalEngine(tiny_of("gemma3"))
    for engine, plain in ((llama, True), (gemma, True)):
        forward = engine.forward(ids_of(9), capture=Capture(scores=True, layer=0))
        found = derive(forward, 0, 1, 6, 2)
        assert plain_scaling(found) is plain
        assert found.dots[2] == pytest.approx(found.products.sum(), abs=1e-9)
    # A key that the window has dropped has no number.
    loaded = tiny_of("gemma3")
    ids = ids_of(20)
    engine = LocalEngine(loaded)
    forward = engine.forward(ids, prompt_length=5, capture=Capture(scores=True, layer=0))
    found = derive(forward, 0, 0, 19, 2)
    assert np.isnan(found.k).all()
    assert found.weights[2] == 0
    assert found.difference < 1e-5


def test_what_was_not_kept_is_said(tiny):
    with pytest.raises(Fault) as caught:
        derive(tiny.forward(ids_of(4)), 0, 0, 3, 1)
    assert caught.value.code == "scores_not_readable"
    kept = tiny.forward(ids_of(4), capture=Capture(scores=True))
    with pytest.raises(LookupError):
        derive(kept, 0, 0, 4, 1)


# --- switched off


def test_the_effect_of_an_edit_by_hand():
    before, after = np.log([0.5, 0.25, 0.25]), np.log([0.25, 0.25, 0.5])
    found = ablation.effect(before, after, 0, top=1)
    assert found.kl == pytest.approx(0.5 * np.log(2) - 0.25 * np.log(2), abs=1e-9)
    assert [row.id for row in found.top] == [0, 2]
    assert (found.chosen.rank_before, found.chosen.rank_after) == (1, 2)
    assert (found.chosen.before, found.chosen.after) == pytest.approx((0.5, 0.25))
    assert ablation.effect(before, before, 0).kl == 0
    lopsided = ablation.effect(np.log([0.9, 0.1]), np.log([0.5, 0.5]), 0).kl
    assert lopsided == pytest.approx(0.9 * np.log(1.8) + 0.1 * np.log(0.2), abs=1e-9)


def test_an_edit_changes_the_text_and_nobody_elses(tiny):
    ids = ids_of(7)
    settings = Settings(seed=3)
    plain = tiny.forward(ids).logits.copy()
    off = Edit(heads_off=((0, 0), (0, 1), (1, 2)), layers_off=(1,))
    written = {}
    for name, edit in (("plain", Edit()), ("off", off), ("again", Edit())):
        found = ablation.continuation(tiny, ids, settings, prompt_length=7, edit=edit, steps=6)
        written[name] = tuple(found)
    assert written["plain"] == written["again"] != written["off"]
    assert (tiny.forward(ids).logits == plain).all()
    changed = ablation.next_logits(tiny, ids, 7, off)
    assert np.abs(changed - plain).max() > 0.01


def test_without_an_edit_the_text_is_that_of_the_run(tiny):
    from core.decode import run
    from core.settings import RunSpec

    spec = RunSpec("tiny", "Hello", Settings(seed=5, max_new=8))
    made = run(tiny, spec)
    prompt = len(made.prompt)
    ids = made.ids[: prompt + 2]
    rest = ablation.continuation(
        tiny, ids, spec.settings, prompt_length=prompt, edit=Edit(), steps=6
    )
    assert tuple(rest) == made.ids[prompt + 2 :]


# --- speed


@pytest.mark.model
def test_grid_and_one_head_of_512_tokens_take_less_than_two_seconds(smollm2):
    ids = smollm2.vocabulary.read("The old library at the edge of the town had closed. " * 43).ids
    ids = ids[:512]
    forward = smollm2.forward(ids)
    assert len(ids) == 512
    began = time.perf_counter()
    digests = {}
    for layer in range(30):
        maps = layer_map([forward], layer)
        digests[layer] = Digest(pictures(maps), statistics(maps, ids))
    grid = grid_data(digests, smollm2.info, 512, None)
    tokens = smollm2.vocabulary.tokens(ids, 512)
    head = head_data(
        layer_map([forward], 7)[2],
        last_rows([forward], 30),
        tokens,
        smollm2.info,
        layer=7,
        head=2,
        window=None,
    )
    assert time.perf_counter() - began < 2
    assert len(str(grid)) + len(str(head)) < 2_000_000
