"""What an edit does, and what the weights answer, against transformers and torch."""

import numpy as np
import pytest
import torch

from core.engine.local import LocalEngine
from core.faults import Fault
from core.models.tiny import ARCHITECTURES, tiny_of
from core.trace import Capture, Edit

IDS = (3, 1, 4, 1, 5, 9, 2, 6)
PARTS = Capture(attention=False, parts=True, neurons=True)
EVERY = pytest.mark.parametrize("architecture", ARCHITECTURES)


@EVERY
def test_the_parts_of_a_layer_add_up_to_its_change(architecture):
    engine = LocalEngine(tiny_of(architecture))
    found = engine.forward(IDS, capture=PARTS)
    before = np.concatenate([found.embedding[None], found.residual[:-1]])
    total = before + found.attention_part + found.feed_forward_part
    assert total == pytest.approx(found.residual, abs=1e-4)
    assert np.abs(found.attention_part).max() > 0
    assert np.abs(found.feed_forward_part).max() > 0


@EVERY
def test_the_attention_part_is_what_the_attention_module_returns(architecture):
    """Heard at the module itself; where a norm stands behind it, after that norm."""
    loaded = tiny_of(architecture)
    engine = LocalEngine(loaded)
    heard = {}
    for index, layer in enumerate(engine._parts.layers):
        module = layer.post_attention_layernorm if architecture == "gemma3" else None
        module = module or getattr(layer, "self_attn", None) or layer.attn

        def keep(_, __, output, index=index):
            heard[index] = (output[0] if isinstance(output, tuple) else output)[0].numpy()

        module.register_forward_hook(keep)
    found = engine.forward(IDS, capture=PARTS)
    for index, output in heard.items():
        assert found.attention_part[index] == pytest.approx(output, abs=1e-5)


@EVERY
def test_neurons_through_the_down_projection_make_the_feed_forward_part(architecture):
    engine = LocalEngine(tiny_of(architecture))
    found = engine.forward(IDS, capture=PARTS)
    info = engine.info
    assert found.neurons.shape == (info.layers, len(IDS), info.intermediate)
    assert (found.gate is not None) == info.gated == (architecture not in ("gpt2", "phi"))
    if architecture == "gemma3":
        return  # a norm stands behind the projection
    for layer in range(info.layers):
        columns = engine.neuron_outputs(layer, range(info.intermediate))
        made = found.neurons[layer] @ columns
        bias = found.feed_forward_part[layer] - made
        # What is left is the projection's bias: the same for every position.
        assert bias == pytest.approx(np.broadcast_to(bias[0], bias.shape), abs=1e-4)
        if info.gated:
            assert bias == pytest.approx(0, abs=1e-4)


@EVERY
def test_gate_times_up_is_the_neuron(architecture):
    engine = LocalEngine(tiny_of(architecture))
    found = engine.forward(IDS, capture=PARTS)
    if found.gate is None:
        return
    activate = {"silu": torch.nn.functional.silu}.get(
        engine.info.activation, lambda x: torch.nn.functional.gelu(x, approximate="tanh")
    )
    made = activate(torch.tensor(found.gate)).numpy() * found.up
    assert made == pytest.approx(found.neurons, abs=1e-5)


@EVERY
def test_one_layer_alone_gives_the_same_as_all(architecture):
    engine = LocalEngine(tiny_of(architecture))
    whole = engine.forward(IDS, capture=Capture(scores=True, neurons=True))
    one = engine.forward(IDS, capture=Capture(scores=True, neurons=True, layer=1))
    assert whole.layers == tuple(range(engine.info.layers))
    assert one.layers == (1,)
    for name in ("attention", "scores", "queries", "keys", "values", "neurons"):
        assert (getattr(one, name)[0] == getattr(whole, name)[1]).all()
    assert one.residual.shape == whole.residual.shape


@EVERY
def test_all_heads_off_leaves_no_attention_but_the_bias(architecture):
    engine = LocalEngine(tiny_of(architecture))
    off = tuple((0, head) for head in range(engine.info.heads))
    found = engine.forward(IDS, capture=PARTS, edit=Edit(heads_off=off))
    rows = found.attention_part[0]
    assert rows == pytest.approx(np.broadcast_to(rows[0], rows.shape), abs=1e-6)
    assert found.edit.heads_off == off


def test_a_head_that_is_off_is_a_zeroed_slice_before_the_output_projection():
    loaded = tiny_of("llama")
    engine = LocalEngine(loaded)
    size, head = engine.info.head_dim, 2

    def zero(_, args):
        hidden = args[0].clone()
        hidden[..., head * size : (head + 1) * size] = 0
        return (hidden,)

    found = engine.forward(IDS, edit=Edit(heads_off=((1, head),)))
    handle = loaded.model.model.layers[1].self_attn.o_proj.register_forward_pre_hook(zero)
    with torch.inference_mode():
        expected = loaded.model(torch.tensor([IDS])).logits[0, -1].numpy()
    handle.remove()
    assert found.logits == pytest.approx(expected, abs=1e-5)
    assert found.logits != pytest.approx(engine.forward(IDS).logits, abs=1e-4)


@EVERY
def test_a_layer_that_is_off_passes_the_stream_on(architecture):
    engine = LocalEngine(tiny_of(architecture))
    found = engine.forward(IDS, capture=PARTS, edit=Edit(layers_off=(1,)))
    assert (found.residual[1] == found.residual[0]).all()
    assert not found.attention_part[1].any()
    first = engine.forward(IDS)
    assert (found.residual[0] == first.residual[0]).all()
    assert not np.allclose(found.logits, first.logits)


@EVERY
def test_an_edit_leaves_no_trace(architecture):
    engine = LocalEngine(tiny_of(architecture), memo_bytes=0, kv_bytes=0)
    before = engine.forward(IDS).logits
    for edit in (Edit(layers_off=(0,)), Edit(heads_off=((0, 0),)), Edit(positions="none")):
        changed = engine.forward(IDS, capture=PARTS, edit=edit).logits
        assert (changed != before).any()
    assert (engine.forward(IDS).logits == before).all()


@EVERY
def test_edited_steps_equal_an_edited_whole(architecture):
    engine = LocalEngine(tiny_of(architecture))
    for edit in (Edit(heads_off=((0, 1),)), Edit(layers_off=(1,)), Edit(positions="none")):
        whole = engine.forward(IDS, edit=edit)
        step = engine.forward(IDS, prompt_length=4, edit=edit)
        assert step.logits == pytest.approx(whole.logits, abs=1e-4)


@EVERY
def test_without_positions_the_order_of_earlier_tokens_does_not_matter(architecture):
    if architecture == "gemma3":
        return  # its sliding windows still see the order
    engine = LocalEngine(tiny_of(architecture))
    edit = Edit(positions="none")
    # One layer mixes a bag of tokens; the causal mask of later layers sees an order again.
    one = engine.forward((7, 8, 9, 5), edit=edit).residual[0, -1]
    other = engine.forward((9, 7, 8, 5), edit=edit).residual[0, -1]
    assert one == pytest.approx(other, abs=1e-5)
    kept = engine.forward((9, 7, 8, 5)).residual[0, -1]
    assert np.abs(kept - engine.forward((7, 8, 9, 5)).residual[0, -1]).max() > 1e-4


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (Edit(layers_off=(99,)), "no_such_layer"),
        (Edit(heads_off=((0, 99),)), "no_such_head"),
        (Edit(heads_off=((-1, 0),)), "no_such_layer"),
    ],
)
def test_an_edit_of_what_is_not_there_gets_a_sentence(tiny, edit, code):
    with pytest.raises(Fault) as caught:
        tiny.forward(IDS, edit=edit)
    assert caught.value.code == code


@EVERY
def test_gradient_times_input_is_torchs(architecture):
    loaded = tiny_of(architecture)
    engine = LocalEngine(loaded)
    found = engine.attribution(IDS, 42)
    loaded.model.set_attn_implementation("eager")
    inputs = loaded.model.get_input_embeddings()(torch.tensor([IDS])).detach().requires_grad_()
    loaded.model(inputs_embeds=inputs).logits[0, -1, 42].backward()
    expected = (inputs.grad * inputs).sum(-1)[0].detach().numpy()
    assert found == pytest.approx(expected, abs=1e-5)


def test_integrated_gradients_sum_to_the_difference_from_the_baseline():
    """Completeness (Sundararajan et al. 2017, proposition 1), up to the midpoint rule."""
    loaded = tiny_of("gpt2")
    engine = LocalEngine(loaded)
    embed = loaded.model.get_input_embeddings()(torch.tensor([IDS]))
    with torch.inference_mode():
        ends = [loaded.model(inputs_embeds=e).logits[0, -1, 7].item() for e in (embed, embed * 0)]
    whole = engine.attribution(IDS, 7, steps=400).sum()
    assert whole == pytest.approx(ends[0] - ends[1], abs=0.02)


@EVERY
def test_the_parameters_of_the_parts_sum_to_the_model(architecture):
    engine = LocalEngine(tiny_of(architecture))
    parts = engine.anatomy()
    assert sum(part.parameters for part in parts) == engine.info.parameters
    assert {part.layer for part in parts} >= set(range(engine.info.layers))
    assert len({part.name for part in parts}) == len(parts)


@EVERY
def test_neighbours_are_the_largest_cosines(architecture):
    engine = LocalEngine(tiny_of(architecture))
    table = engine.embeddings(range(engine.info.vocabulary)).astype(np.float64)
    ids, cosines = engine.neighbours(table[9], 5)
    lengths = np.maximum(np.linalg.norm(table, axis=1), 1e-12)  # the padding row is zero
    every = table @ table[9] / lengths / lengths[9]
    assert ids[0] == 9
    assert cosines[0] == pytest.approx(1, abs=1e-5)
    assert set(ids) == set(np.argsort(-every)[:5])
    assert cosines == pytest.approx(every[ids], abs=1e-5)


@EVERY
def test_rope_turns_queries_as_the_model_does(architecture):
    """The same token at another position: its first-layer query is the rotated one."""
    engine = LocalEngine(tiny_of(architecture))
    rope = engine.rope(0)
    assert (rope is None) == (architecture == "gpt2") == (engine.info.positions != "rope")
    if rope is None:
        assert engine.position_table([0, 5]).shape == (2, engine.info.width)
        return
    scores = Capture(scores=True)
    query = engine.forward((9, 9, 9, 9), capture=scores).queries[0, 0]
    half = rope.dims // 2
    turned = query[0].astype(np.float64).copy()
    angle = 3 * rope.frequencies
    a, b = query[0, :half], query[0, half : rope.dims]
    turned[:half] = a * np.cos(angle) - b * np.sin(angle)
    turned[half : rope.dims] = a * np.sin(angle) + b * np.cos(angle)
    assert query[3] == pytest.approx(turned, abs=1e-5)
    assert engine.position_table([0]) is None


def test_windows_are_told_by_layer():
    gemma = LocalEngine(tiny_of("gemma3"))
    windows = [gemma.window(layer) for layer in range(gemma.info.layers)]
    assert windows == [8, 8, None]
    assert LocalEngine(tiny_of("llama")).window(0) is None


def test_projecting_the_normed_vector_is_the_models_answer(tiny):
    forward = tiny.forward(IDS)
    assert tiny.project(forward.normed[None])[0] == pytest.approx(forward.logits, abs=1e-4)


def test_edits_of_one_reader_do_not_reach_another():
    import threading

    engine = LocalEngine(tiny_of("llama"), memo_bytes=0, kv_bytes=0)
    plain = engine.forward(IDS).logits
    edit = Edit(heads_off=((0, 0), (1, 1)), layers_off=(0,))
    edited = engine.forward(IDS, edit=edit).logits
    wrong = []

    def read(change, expected):
        for _ in range(30):
            if (engine.forward(IDS, edit=change).logits != expected).any():
                wrong.append(change)

    threads = [threading.Thread(target=read, args=a) for a in ((Edit(), plain), (edit, edited)) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
