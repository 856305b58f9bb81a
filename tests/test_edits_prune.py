"""Pruning a whole model: what is left computes what it should, and the original stays as it was."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core.edits import masks
from core.edits.apply import apply
from core.edits.calibrate import calibration_ids, input_norms
from core.edits.pieces import attention_of, feed_forward_of, layers_of, matrices_in
from core.edits.remove import group_norms, neuron_scores, neurons_out
from core.edits.spec import Zeros, parse_edit
from core.edits.zero import keep_mask, kept, kept_two_of_four, scores
from core.engine.local import LocalEngine
from core.engine.store import ModelStore
from core.faults import Fault
from core.models.tiny import tiny_of
from core.trace import Capture, Edit
from tests.families import family_of

IDS = [5, 40, 41, 7, 200, 33, 90, 12]
READABLE = ("llama", "qwen2", "qwen3", "gemma3", "mistral", "phi")


def edited(architecture, text):
    return apply(tiny_of(architecture), parse_edit(text), name=f"tiny#{text}")


def logits(engine, edit=Edit()):
    return engine.forward(IDS, capture=Capture(attention=False), edit=edit).logits


def whole(model):
    with torch.inference_mode():
        return model(torch.tensor([IDS]), use_cache=False).logits[0]


# ---------------------------------------------------------------- the choice of weights


tables = arrays.arrays(
    np.float32,
    st.tuples(st.integers(1, 6), st.integers(1, 13)),
    # Few values, so that ties are the rule.
    elements=st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]),
)


@given(tables, st.floats(0, 1), st.booleans())
def test_torch_keeps_what_numpy_keeps(table, share, by_row):
    law = masks.share_mask(table, share, by_row=by_row)
    assert np.array_equal(kept(torch.from_numpy(table), share, by_row=by_row).numpy(), law)


@given(tables)
def test_torch_keeps_two_of_four_as_numpy_does(table):
    law = masks.two_of_four(table)
    assert np.array_equal(kept_two_of_four(torch.from_numpy(table)).numpy(), law)


@pytest.mark.parametrize("method", masks.METHODS)
def test_scores_are_those_of_the_law(method):
    weights = np.random.default_rng(1).normal(size=(5, 8)).astype(np.float32)
    norms = np.abs(np.random.default_rng(2).normal(size=8)).astype(np.float32)
    law = masks.scores_of(weights, method, norms=norms, seed=3)
    found = scores(torch.from_numpy(weights), method, norms=torch.from_numpy(norms), seed=3)
    assert np.allclose(found.numpy(), law, rtol=1e-6)


def test_a_mask_by_hand():
    weight = torch.tensor([[1.0, -4.0, 2.0, 3.0], [0.5, 0.25, -8.0, 1.0]])
    norms = torch.tensor([10.0, 1.0, 1.0, 1.0])
    magnitude = keep_mask(weight, Zeros(0.5, "magnitude"))
    assert magnitude.tolist() == [[False, True, True, True], [False, False, True, False]]
    by_row = keep_mask(weight, Zeros(0.5, "magnitude_row"))
    assert by_row.tolist() == [[False, True, False, True], [False, False, True, True]]
    wanda = keep_mask(weight, Zeros(0.5, "wanda"), norms=norms)
    assert wanda.tolist() == [[True, True, False, False], [True, False, True, False]]


# ---------------------------------------------------------------- zeros in a model


@pytest.mark.parametrize("method", masks.METHODS)
@pytest.mark.parametrize("share", [0.0, 0.25, 0.7])
def test_the_share_of_zeros_is_exact(method, share):
    model = edited("llama", f"zeros:{share}:{method}").model
    for name, matrix in matrices_in(model):
        zeros = int((matrix.weight == 0).sum())
        rows, columns = matrix.weight.shape
        by_row = method in {"magnitude_row", "wanda"}
        count = rows * int(share * columns + 1e-9) if by_row else int(share * rows * columns + 1e-9)
        assert zeros == count, name
    original = tiny_of("llama").model
    assert torch.equal(model.get_input_embeddings().weight, original.get_input_embeddings().weight)
    assert torch.equal(model.lm_head.weight, original.lm_head.weight)


@pytest.mark.parametrize("method", masks.METHODS)
def test_two_of_each_four_are_zero_everywhere(method):
    model = edited("gemma3", f"zeros:2of4:{method}").model
    for _, matrix in matrices_in(model):
        fours = (matrix.weight == 0).reshape(-1, 4).sum(1)
        assert set(fours.tolist()) == {2}


def test_the_norms_of_wanda_equal_a_forward_by_hand():
    model = tiny_of("llama").model
    found = input_norms(model, matrices_in(model), IDS)
    layer = model.model.layers[0]
    with torch.inference_mode():
        stream = model.model.embed_tokens(torch.tensor([IDS]))[0]
        size = (stream.pow(2).mean(-1, keepdim=True) + model.config.rms_norm_eps).rsqrt()
        met = stream * size * layer.input_layernorm.weight
    by_hand = met.pow(2).sum(0).sqrt()
    assert len(found) == 7 * model.config.num_hidden_layers
    for name in ("q_proj", "k_proj", "v_proj"):
        norms = found[f"model.layers.0.self_attn.{name}"]
        assert torch.allclose(norms, by_hand, atol=1e-5)
    # and what the neurons of the last layer really said, as the engine records it
    engine = LocalEngine(tiny_of("llama"))
    neurons = engine.forward(IDS, capture=Capture(neurons=True)).neurons
    last = found["model.layers.1.mlp.down_proj"].numpy()
    assert np.allclose(last, np.sqrt((neurons[1] ** 2).sum(0)), atol=1e-5)


def test_wanda_reads_the_calibration_text():
    loaded = tiny_of("llama")
    ids = calibration_ids(loaded.tokenizer, loaded.info.context)
    assert loaded.tokenizer.decode(ids[:30]).startswith("A library is a place")
    norms = input_norms(loaded.model, matrices_in(loaded.model), ids)
    result = edited("llama", "zeros:0.5:wanda").model
    for (name, before), (_, after) in zip(
        matrices_in(loaded.model), matrices_in(result), strict=True
    ):
        law = masks.share_mask(
            masks.scores_of(before.weight.numpy(), "wanda", norms=norms[name].numpy()),
            0.5, by_row=True,
        )  # fmt: skip
        assert np.array_equal((after.weight != 0).numpy(), law)


# ---------------------------------------------------------------- heads, layers, neurons


@pytest.mark.parametrize("architecture", READABLE)
def test_a_model_without_a_layer_is_the_model_that_skips_it(architecture):
    original = LocalEngine(tiny_of(architecture))
    shorter = LocalEngine(edited(architecture, "layers:1"))
    assert shorter.info.layers == original.info.layers - 1
    difference = logits(shorter) - logits(original, Edit(layers_off=(1,)))
    assert np.abs(difference).max() <= 1e-5
    # step by step, through the KV cache and past Gemma's window
    path = [i % 250 for i in range(3, 25)]
    slow = shorter.forward(path, prompt_length=3).logits
    assert np.abs(slow - shorter.forward(path).logits).max() <= 1e-4


@pytest.mark.parametrize("architecture", READABLE)
def test_a_silenced_head_is_a_head_switched_off(architecture):
    original, silenced = LocalEngine(tiny_of(architecture)), edited(architecture, "heads:0.1_1.3")
    off = Edit(heads_off=((0, 1), (1, 3)))
    assert np.abs(logits(LocalEngine(silenced)) - logits(original, off)).max() <= 1e-5


@pytest.mark.parametrize("architecture", [a for a in READABLE])
def test_removed_groups_are_heads_switched_off(architecture):
    loaded = tiny_of(architecture)
    info, layers = loaded.info, layers_of(loaded.model)[2]
    gone = []
    for place, layer in enumerate(layers):
        found = int(group_norms(attention_of(loaded.model, layer), info.kv_heads).argmin())
        shared = info.heads // info.kv_heads
        gone += [(place, found * shared + i) for i in range(shared)]
    smaller = edited(architecture, "groups:1")
    assert smaller.info.kv_heads == info.kv_heads - 1
    assert smaller.info.heads == info.heads - info.heads // info.kv_heads
    assert smaller.info.head_dim == info.head_dim
    difference = logits(LocalEngine(smaller)) - logits(
        LocalEngine(loaded), Edit(heads_off=tuple(gone))
    )
    assert np.abs(difference).max() <= 1e-5


@pytest.mark.parametrize("architecture", [*READABLE, "phi3"])
def test_removed_neurons_are_neurons_that_say_nothing(architecture):
    # Phi-3 keeps gate and up in one matrix.
    make = family_of if architecture == "phi3" else tiny_of
    loaded, again = make(architecture), make(architecture)
    smaller = apply(again, parse_edit("neurons:0.3"), name="x")
    neurons, count = loaded.info.intermediate, 19  # int(0.3 · 64)
    assert neurons_out(neurons, 0.3) == count
    assert smaller.info.intermediate == neurons - count
    ids = calibration_ids(loaded.tokenizer, loaded.info.context)
    parts = [feed_forward_of(loaded.model, layer) for layer in layers_of(loaded.model)[2]]
    with torch.inference_mode():
        for part, found in zip(parts, neuron_scores(loaded.model, parts, ids), strict=True):
            part.down.weight[:, found.argsort(stable=True)[:count]] = 0
    assert (whole(smaller.model) - whole(loaded.model)).abs().max() <= 1e-4


def test_the_size_of_a_group_counts_its_part_of_all_four_matrices():
    model = tiny_of("llama").model
    attention = attention_of(model, layers_of(model)[2][0])
    with torch.inference_mode():
        for matrix in (attention.query, attention.key, attention.value, attention.out):
            matrix.weight.zero_()
        # The second of 2 KV heads of 8: two of the four query heads belong to it.
        attention.query.weight[16:] = 1
        attention.key.weight[8:] = 2
        attention.value.weight[8:] = 3
        attention.out.weight[:, 16:] = 4
    squares = 16 * 32 * 1 + 8 * 32 * 4 + 8 * 32 * 9 + 32 * 16 * 16
    assert group_norms(attention, 2).tolist() == [0, pytest.approx(squares**0.5)]


def test_the_score_of_a_neuron_is_what_it_says_times_what_it_writes():
    loaded = tiny_of("llama")
    parts = [feed_forward_of(loaded.model, layer) for layer in layers_of(loaded.model)[2]]
    said = LocalEngine(tiny_of("llama")).forward(IDS, capture=Capture(neurons=True)).neurons
    found = neuron_scores(loaded.model, parts, IDS)
    for layer, part in enumerate(parts):
        columns = np.linalg.norm(part.down.weight.numpy(), axis=0)
        law = np.linalg.norm(said[layer], axis=0) * columns
        assert np.allclose(found[layer].numpy(), law, rtol=1e-4)


def test_norms_over_all_heads_lose_the_rows_of_the_group_that_goes():
    loaded = family_of("olmo2")
    attention = attention_of(loaded.model, layers_of(loaded.model)[2][0])
    with torch.inference_mode():
        attention.key.weight[:8] = attention.value.weight[:8] = 0
        attention.query.weight[:16] = 0
        attention.module.q_norm.weight.copy_(torch.arange(32.0))
        attention.module.k_norm.weight.copy_(torch.arange(16.0))
    left = layers_of(apply(loaded, parse_edit("groups:1"), name="x").model)[2][0].self_attn
    assert left.q_norm.weight.tolist() == list(range(16, 32))
    assert left.k_norm.weight.tolist() == list(range(8, 16))


def test_the_first_of_equal_neurons_go():
    assert neurons_out(10, 0.3) == 3
    assert neurons_out(7, 0.5) == 3


@pytest.mark.parametrize("family", ["gemma2", "phi3", "olmo2", "opt"])
def test_other_architectures_shrink_or_say_why(family):
    for text in ("layers:0", "neurons:0.25", "groups:1", "heads:0.0", "zeros:0.5:wanda"):
        try:
            found = apply(family_of(family), parse_edit(text), name=text)
        except Fault as fault:
            # q, k and v are one matrix there.
            assert (fault.code, family, text) == ("edit_piece_missing", "phi3", "groups:1")  # noqa: PT017
        else:
            assert torch.isfinite(whole(found.model)).all()


def test_gpt2_says_which_piece_it_has_not():
    # Its matrices lie the other way round, and q, k and v are one.
    for text in ("neurons:0.25", "groups:1", "heads:0.0", "zeros:0.5"):
        with pytest.raises(Fault) as caught:
            edited("gpt2", text)
        assert caught.value.code == "edit_piece_missing"
    assert edited("gpt2", "layers:0").info.layers == 1


def test_what_the_model_has_not_gets_a_sentence():
    for text, code in {
        "layers:2": "no_such_layer",
        "layers:0.1": "edit_removes_all_layers",
        "heads:2.0": "no_such_layer",
        "heads:0.4": "no_such_head",
        "groups:2": "edit_removes_all_groups",
        "groups:7": "edit_removes_all_groups",
    }.items():
        with pytest.raises(Fault) as caught:
            edited("llama", text)
        assert caught.value.code == code


def test_heads_and_layers_are_counted_as_in_the_original():
    both = LocalEngine(edited("llama", "layers:0+heads:1.2"))
    off = Edit(layers_off=(0,), heads_off=((1, 2),))
    assert np.abs(logits(both) - logits(LocalEngine(tiny_of("llama")), off)).max() <= 1e-5


def test_edits_compose_and_the_facts_are_read_off_again():
    found = edited("gemma3", "layers:0+groups:1+neurons:0.25+zeros:0.5:magnitude+bits:8")
    info = found.info
    assert (info.layers, info.kv_heads, info.heads, info.intermediate) == (2, 1, 2, 48)
    assert info.layer_kinds == ("sliding_attention", "full_attention")
    assert info.parameters == sum(p.numel() for p in found.model.parameters())
    tensors = [*found.model.parameters(), *found.model.buffers()]
    assert info.bytes_in_memory == sum(t.numel() * t.element_size() for t in tensors)
    # a matrix owns what it needs and no more
    down = found.model.model.layers[0].mlp.down_proj.weight
    assert down.untyped_storage().nbytes() == 32 * 48 * 4


# ---------------------------------------------------------------- nobody else is touched


def test_the_original_stays_as_it_is_while_others_edit():
    store = ModelStore()
    store.request("tiny")
    assert store.wait("tiny").status == "ready"
    tiny = store.engine("tiny")
    before = logits(tiny)
    weights = {name: p.clone() for name, p in tiny._model.named_parameters()}
    names = [f"tiny#{text}" for text in ("zeros:0.5:wanda", "layers:1+neurons:0.5", "groups:1")]
    threads = [threading.Thread(target=store.request, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    during = [tiny.forward([*IDS, token]).logits for token in range(20)]
    for thread in threads:
        thread.join()
    for name in names:
        assert store.wait(name).status == "ready"
        assert not np.array_equal(logits(store.engine(name)), before)
    fresh = LocalEngine(tiny_of("llama"))
    assert np.array_equal(logits(fresh), before)
    for token, found in enumerate(during):
        assert np.array_equal(fresh.forward([*IDS, token]).logits, found)
    for name, parameter in tiny._model.named_parameters():
        assert torch.equal(parameter, weights[name])


@pytest.mark.parametrize("family", ["lfm2", "qwen3_next", "gpt_oss", "bloom"])
@pytest.mark.parametrize(
    "text", ["layers:0", "neurons:0.25", "groups:1", "heads:1.0", "zeros:0.5", "zeros:2of4:random"]
)
def test_unusual_architectures_run_or_get_a_sentence(family, text):
    try:
        found = apply(family_of(family), parse_edit(text), name=text)
    except Fault as fault:
        assert fault.code in {  # noqa: PT017
            "edit_piece_missing", "edit_not_possible", "wanda_without_norms",
        }  # fmt: skip
    else:
        engine = LocalEngine(found)
        path = [i % 250 for i in range(3, 25)]
        one_by_one = engine.forward(path, prompt_length=3).logits
        assert np.isfinite(one_by_one).all()
        assert np.abs(one_by_one - engine.forward(path).logits).max() < 1e-3
