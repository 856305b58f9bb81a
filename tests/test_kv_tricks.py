"""Smaller caches: the rounding by hand, the masks against dropping rows for real."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.engine.local import LocalEngine
from core.engine.memory import cache_bytes, fork
from core.faults import Fault
from core.lab.kv_contexts import long_ids
from core.lab.kv_packed import pack, packed, unpack
from core.lab.kv_passes import new_cache, read
from core.lab.kv_records import Trick
from core.lab.kv_tricks import LADDER, rounded, shrink, tried, visible
from core.lab.kv_words import read_trick, trick_text
from core.models.tiny import tiny_of
from tests.families import family_of

# ---------------------------------------------------------------- rounding


def test_one_token_by_hand():
    # 2 bits: four steps from 0 to 3; 1.4 and 2.6 go to 1 and 3. Four codes of 2 bits in a byte,
    # the first one lowest: 3·64 + 1·16 + 3·4 + 0.
    one = packed(np.array([[[0.0, 2.6, 1.4, 3.0]]]), 2, "token")
    assert one.codes.tolist() == [3 * 64 + 1 * 16 + 3 * 4 + 0]
    assert one.values.tolist() == [[[0.0, 3.0, 1.0, 3.0]]]
    assert (one.scale.tolist(), one.offset.tolist()) == ([[1.0]], [[0.0]])
    assert one.nbytes == 1 + 2 + 2


def test_one_outlier_spoils_its_token_or_its_channel():
    # Channel 1 is large in both tokens. Per token it stretches the grid of channel 0 with it.
    numbers = np.array([[[0.1, 96.0], [0.4, 99.0]]])
    per_token = packed(numbers, 2, "token").values
    assert per_token[0, :, 0] == pytest.approx([0.1, 0.4], abs=1e-3)
    per_channel = packed(numbers, 2, "channel").values
    assert per_channel == pytest.approx(numbers, abs=1e-3)
    # With a third channel in between there is something to lose.
    numbers = np.array([[[0.1, 96.0, 5.0], [0.4, 99.0, 20.0]]])
    lost = packed(numbers, 2, "token").values - numbers
    kept = packed(numbers, 2, "channel").values - numbers
    assert np.abs(lost).max() > 4
    assert np.abs(kept).max() < 0.02


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("span", ["token", "channel"])
def test_bytes_and_errors_of_a_real_size(bits, span):
    numbers = np.random.default_rng(bits).normal(size=(3, 128, 64)).astype(np.float32)
    one = packed(numbers, bits, span)
    count = numbers.size
    # 64 numbers share 2 + 2 bytes, whichever way they lie.
    assert one.nbytes == count * bits // 8 + count // 64 * 4
    # The same algebra in three lines of NumPy.
    table = numbers if span == "token" else numbers.reshape(3, 2, 64, 64)
    low, high = table.min(2, keepdims=True), table.max(2, keepdims=True)
    step = (high - low) / (2**bits - 1)
    oracle = (np.rint((table - low) / step) * step + low).reshape(numbers.shape)
    assert one.values == pytest.approx(oracle, abs=4e-3)
    error = np.abs(one.values - numbers)
    assert error.max() <= step.max() / 2 + 4e-3


def test_what_16_bits_cannot_hold_is_kept_in_32():
    numbers = np.array([[[-70_000.0, 0.0, 70_000.0, 1.0]]])
    one = packed(numbers, 8, "token")
    assert one.scale.dtype == np.float32
    assert np.isfinite(one.values).all()
    assert one.values == pytest.approx(numbers, abs=280)


@given(st.sampled_from([2, 4, 8]), st.lists(st.integers(0, 255), min_size=1, max_size=40))
def test_packing_loses_nothing(bits, numbers):
    codes = np.array(numbers) % 2**bits
    bytes_ = pack(codes, bits)
    assert bytes_.nbytes == -(-len(codes) * bits // 8)
    assert unpack(bytes_, bits, len(codes)).tolist() == codes.tolist()


# ---------------------------------------------------------------- dropping positions


FAMILIES = ["llama", "gemma3", "gpt2", "qwen3", "gemma2", "gpt_oss"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("trick", [Trick(window=5), Trick(window=5, sinks=2), Trick(window=50)])
def test_one_pass_is_what_dropping_rows_step_by_step_gives(family, trick):
    loaded = family_of(family) if family in ("gemma2", "gpt_oss") else tiny_of(family)
    engine = LocalEngine(loaded)
    ids, start = tuple(range(5, 30)), 18
    with engine.borrowed() as model:
        cache = new_cache(model)
        read(model, ids[:start], cache)
        smaller = shrink(cache, trick)
        extra = visible(model, smaller, len(ids) - start, trick)
        at_once = read(model, ids[start:], fork(smaller.cache), keep=len(ids) - start, extra=extra)
        assert torch.allclose(at_once, _one_by_one(model, cache, ids, start, trick), atol=1e-4)
        if trick.window == 50:
            full = read(model, ids[start:], fork(cache), keep=len(ids) - start)
            assert torch.allclose(at_once, full, atol=1e-4)
            assert smaller.nbytes == cache_bytes(cache)


def _one_by_one(model, cache, ids, start, trick):
    """Each token after rows that may not be seen any more were really taken out."""
    logits, grown = [], fork(cache)
    held = [list(range(start - layer.keys.shape[-2], start)) for layer in grown.layers]
    for at in range(start, len(ids)):
        for place, layer in enumerate(grown.layers):
            # A layer's own window keeps one position less than it sees.
            near = getattr(layer, "sliding_window", None) or 10**6
            keep = [
                i
                for i, p in enumerate(held[place])
                if (p > at - trick.window or p < trick.sinks) and p > at - near
            ]
            layer.keys, layer.values = layer.keys[:, :, keep], layer.values[:, :, keep]
            held[place] = [held[place][i] for i in keep]
        where = {"position_ids": torch.tensor([[at]])}
        # All that is left may be seen: no mask.
        logits.append(read(model, ids[at : at + 1], grown, extra=where)[0])
        for place, layer in enumerate(grown.layers):
            held[place] = [*held[place], at][-layer.keys.shape[-2] :]
    return torch.stack(logits)


def test_bytes_of_what_is_left(tiny):
    ids = tuple(range(5, 25))
    with tiny.borrowed() as model:
        cache = new_cache(model)
        read(model, ids, cache)
    before = [layer.keys.clone() for layer in cache.layers]
    position = 2 * 2 * 2 * 8 * 4
    # The next token sees itself and 4 before it; of the sinks none is among those.
    assert shrink(cache, Trick(window=5)).nbytes == 4 * position
    assert shrink(cache, Trick(window=5, sinks=3)).nbytes == 7 * position
    both = shrink(cache, Trick(bits=4, keys="token", window=5, sinks=3))
    # 7 positions of 16 numbers for each head and layer, keys and values: half a byte each, and
    # a scale with an offset for the 8 channels of a head.
    assert both.nbytes == 7 * 2 * 2 * 2 * (8 // 2 + 4)
    assert shrink(cache, Trick()).nbytes == cache_bytes(cache)
    assert all(torch.equal(a, b.keys) for a, b in zip(before, cache.layers, strict=True))


def test_rounding_a_tensor_is_rounding_its_numbers(tiny):
    with tiny.borrowed() as model:
        cache = new_cache(model)
        read(model, tuple(range(5, 25)), cache)
    keys = cache.layers[0].keys
    stored, back = rounded(keys, 4, "channel")
    assert back.shape == keys.shape
    assert np.array_equal(back[0].numpy(), stored.values)
    small = shrink(cache, Trick(bits=4, keys="channel"))
    assert torch.equal(small.cache.layers[0].keys, back)
    error = sum(
        float((s.keys - b.keys).square().sum())
        for s, b in zip(small.cache.layers, cache.layers, strict=True)
    )
    size = sum(float(b.keys.square().sum()) for b in cache.layers)
    assert small.key_error == pytest.approx((error / size) ** 0.5, rel=1e-4)
    error = sum(
        float((s.values - b.values).square().sum())
        for s, b in zip(small.cache.layers, cache.layers, strict=True)
    )
    size = sum(float(b.values.square().sum()) for b in cache.layers)
    assert small.value_error == pytest.approx((error / size) ** 0.5, rel=1e-4)


# ---------------------------------------------------------------- what it costs


def test_an_untouched_cache_costs_nothing(tiny):
    *_, found = tried(tiny, (Trick(), Trick(bits=8), Trick(window=10**6)), prefix=64)
    none, eight, wide = found.results
    assert (found.done, found.prefix, found.positions) == (True, 64, 63)
    assert (none.kl, none.top1, none.saved) == (0, 1, 0)
    assert wide.kl < 1e-6
    assert wide.top1 == 1
    assert 0 < eight.kl < 0.01
    assert eight.saved > 0.6
    assert none.full_bytes == 64 * 256


def test_the_cost_is_counted_from_the_full_cache_to_the_smaller_one(tiny):
    trick, ids = Trick(window=4), long_ids(tiny, 64 + 63)
    *_, found = tried(tiny, (trick,), ids, prefix=64)
    with tiny.borrowed() as model:
        cache = new_cache(model)
        read(model, ids[:64], cache)
        p = read(model, ids[64:], fork(cache), keep=63).log_softmax(-1)
        smaller = shrink(cache, trick)
        extra = visible(model, smaller, 63, trick)
        q = read(model, ids[64:], smaller.cache, keep=63, extra=extra).log_softmax(-1)
    there, back = (float((a.exp() * (a - b)).sum(-1).mean()) for a, b in ((p, q), (q, p)))
    assert abs(there - back) > 1e-3 * there
    assert found.results[0].kl == pytest.approx(there, rel=1e-5)


def test_what_cannot_be_tried_is_said(tiny):
    with pytest.raises(Fault, match="66"):
        next(tried(tiny, ids=(5,) * 65, prefix=64))
    with pytest.raises(Fault, match="keep a state"):
        next(tried(LocalEngine(family_of("lfm2"))))
    bloom = LocalEngine(family_of("bloom"))
    with pytest.raises(Fault, match="positions"):
        list(tried(bloom, (Trick(window=4),), prefix=64))
    *_, found = tried(bloom, (Trick(bits=8),), prefix=64)
    assert found.results[0].kl < 0.05


@pytest.mark.parametrize("trick", [*LADDER, Trick(), Trick(bits=4, window=9, sinks=1)])
def test_a_line_says_a_trick(trick):
    assert read_trick(trick_text(trick)) == trick


@pytest.mark.parametrize(
    "text",
    ["bits=3", "bits=four", "keys=row", "window=0", "window=-1", "sinks", "bits=4,bits=2",
     "colour=red", "", "window=٣", "window=99999999999", "bits=4;keys=token"],
)  # fmt: skip
def test_a_line_that_is_none_gets_a_sentence(text):
    with pytest.raises(Fault):
        read_trick(text)


@pytest.mark.parametrize(
    "given", [{"bits": 3}, {"bits": True}, {"keys": "row"}, {"window": 0}, {"sinks": -1},
              {"window": 2.5}, {"window": 2**21}],
)  # fmt: skip
def test_illegal_tricks(given):
    with pytest.raises(Fault):
        Trick(**given)


@pytest.mark.model
def test_8_bits_are_nearly_free_and_keys_want_their_channel(smollm2):
    tricks = (*LADDER[:4], Trick(window=128), Trick(window=128, sinks=4))
    *_, found = tried(smollm2, tricks)
    eight, eight_channel, four, four_channel, window, sinks = found.results
    assert max(eight.kl, eight_channel.kl) < 0.001
    assert four_channel.kl < 0.5 * four.kl
    assert four_channel.key_error < 0.5 * four.key_error
    # 4 bits and a share of a 16-bit scale and offset, of 32 bits.
    assert four.nbytes / four.full_bytes == (4 + 32 / 64) / 32
    # Four first tokens, the attention sinks, are worth more than all the others dropped.
    assert sinks.kl < 0.1 * window.kl
    assert found.positions == 63
    assert long_ids(smollm2, 10) == long_ids(smollm2, 20)[:10]
