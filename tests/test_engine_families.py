"""Architectures with parts that the usual ones lack: read as they are, or said not to be."""

import dataclasses

import numpy as np
import pytest
import torch

from core.engine.cost import attention_bytes
from core.engine.local import LocalEngine
from core.faults import Fault
from core.heads import layer_map, telling_head
from core.lens import distance_to_own, lens_column
from core.models.loaded import UNBOUNDED
from core.models.tiny import tiny_of
from core.residual import stream
from core.trace import Capture
from core.weight import derive
from tests.families import FAMILIES, family_of

IDS = tuple(int(i) for i in np.random.default_rng(5).integers(4, 250, 24))
INSIDE = Capture(attention=False, parts=True, neurons=True)
READABLE = ("gemma2", "gpt_oss", "phi3", "olmo2", "opt")
RUNS = tuple(family for family in FAMILIES if family != "mamba")


@pytest.mark.parametrize("family", READABLE)
def test_attention_equals_eager(family):
    loaded = family_of(family)
    with torch.inference_mode():
        expected = loaded.model(torch.tensor([IDS]), output_attentions=True)
    found = LocalEngine(loaded).forward(IDS)
    for layer, weights in enumerate(expected.attentions):
        assert found.attention[layer] == pytest.approx(weights[0].numpy(), abs=1e-6), layer
    assert found.logits == pytest.approx(expected.logits[0, -1].numpy(), abs=1e-5)


HYBRIDS = {"lfm2": (1,), "qwen3_next": (3,)}


@pytest.mark.parametrize("family", HYBRIDS)
def test_a_hybrid_s_layers_with_attention_are_read_and_the_others_named(family):
    loaded, closed = family_of(family), HYBRIDS[family]
    with torch.inference_mode():
        expected = loaded.model(torch.tensor([IDS]), output_attentions=True).attentions
    engine = LocalEngine(loaded)
    info, found = engine.info, engine.forward(IDS)
    assert found.attending == closed
    assert info.without_attention == tuple(n for n in range(info.layers) if n not in closed)
    weights = [w for w in expected if w is not None]
    assert len(weights) == len(closed) == len(found.attention)
    for layer, own in zip(closed, weights, strict=True):
        assert layer_map([found], layer) == pytest.approx(own[0].numpy(), abs=1e-6)
    for layer in info.without_attention:
        alone = engine.forward(IDS, capture=Capture(scores=True, layer=layer))
        assert (alone.attention, alone.scores, alone.attending) == (None, None, ())
        assert layer_map([found], layer) is None
    assert telling_head(found)[0] in closed
    assert attention_bytes(info, 0, 24) == found.attention.nbytes
    scored = engine.forward(IDS, capture=Capture(scores=True, layer=closed[0]))
    assert derive(scored, closed[0], 2, 9, 4).difference < 1e-5


def test_the_nearest_layer_with_attention():
    info = family_of("lfm2").info
    assert [info.attending(layer) for layer in range(3)] == [1, 1, 1]
    assert tiny_of("llama").info.attending(1) == 1
    mixed = dataclasses.replace(info, layers=5, layer_kinds=("full_attention", *["conv"] * 3, "x"))
    assert [mixed.attending(layer) for layer in range(5)] == [0, 0, 0, 4, 4]


@pytest.mark.parametrize("family", RUNS)
def test_steps_with_a_cache_equal_all_at_once(family):
    """And once more in another order: what one step remembers, no other may change."""
    loaded = family_of(family)
    # A recurrence is computed in chunks over a text, and one by one afterwards.
    close = 1e-3 if family == "qwen3_next" else 2e-4
    engine, fresh = LocalEngine(loaded), LocalEngine(loaded, memo_bytes=0, kv_bytes=0)
    other = (*IDS[:12], 7, *IDS[13:])
    for ids in (IDS, other, IDS):
        for length in (*range(10, len(ids) + 1), 11):
            step = engine.forward(ids[:length], prompt_length=10, capture=INSIDE)
            whole = fresh.forward(ids[:length])
            assert step.logits == pytest.approx(whole.logits, abs=close), length
            assert step.residual[:, -1] == pytest.approx(whole.residual[:, -1], abs=close)
    assert engine.bytes_remembered > 0


@pytest.mark.parametrize("family", RUNS)
def test_the_lens_ends_in_the_model_s_own_distribution(family):
    engine = LocalEngine(family_of(family))
    found = engine.forward(IDS, capture=INSIDE)
    assert distance_to_own(lens_column(engine, found, -1), found) < 1e-5
    parts = stream(found, 3).parts
    if parts is not None:
        assert parts.error < 1e-4


def test_gate_and_up_of_one_projection_are_not_mixed_up():
    found = LocalEngine(family_of("phi3")).forward(IDS, capture=INSIDE)
    made = torch.nn.functional.silu(torch.tensor(found.gate)).numpy() * found.up
    assert made == pytest.approx(found.neurons, abs=1e-5)


@pytest.mark.parametrize("loaded", [tiny_of("gpt2"), family_of("opt")], ids=["gpt2", "opt"])
def test_row_and_place_make_what_enters_the_first_layer(loaded):
    engine = LocalEngine(loaded)
    table = engine.position_table(range(len(IDS)))
    entered = engine.forward(IDS).embedding
    assert engine.embeddings(IDS) + table == pytest.approx(entered, abs=1e-6)


def test_integrated_gradients_are_taken_at_the_middle_of_each_stretch():
    engine = LocalEngine(tiny_of("llama"))
    model, target = engine._model, 9
    inputs = model.get_input_embeddings()(torch.tensor([IDS])).detach()
    total = torch.zeros_like(inputs)
    for share in (0.25, 0.75):
        point = (inputs * share).requires_grad_()
        score = model(inputs_embeds=point).logits[0, -1, target]
        total += torch.autograd.grad(score, point)[0] / 2
    expected = (inputs * total).sum(-1)[0].numpy()
    assert engine.attribution(IDS, target, steps=2) == pytest.approx(expected, abs=1e-4)


def test_a_config_without_a_limit_gets_the_usual_one():
    assert family_of("bloom").info.context == UNBOUNDED


def test_a_model_without_heads_is_said_to_be_unreadable():
    with pytest.raises(Fault) as caught:
        family_of("mamba")
    assert caught.value.code == "layers_not_readable"
