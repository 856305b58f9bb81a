"""What the layers add is what the stream gains; a neuron's part is its activation × column."""

import numpy as np
import pytest

from core.engine.local import LocalEngine
from core.faults import Fault
from core.models.tiny import ARCHITECTURES, tiny_of
from core.neurons import MOST, NEAR_ZERO, activity, most_active
from core.residual import path, stream
from core.trace import Capture

IDS = (3, 1, 4, 1, 5, 9)
ALL = Capture(attention=False, parts=True, neurons=True)
POST_NORM = {"gemma3"}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_parts_add_up_to_the_stream(architecture):
    engine = LocalEngine(tiny_of(architecture))
    forward = engine.forward(IDS, capture=ALL)
    for row in (0, len(IDS) - 1):
        found = stream(forward, row)
        assert found.parts is not None
        assert found.parts.error < 1e-4
        way = path(forward, row)
        total = (
            way[0]
            + forward.attention_part[:, row].sum(0)
            + forward.feed_forward_part[:, row].sum(0)
        )
        np.testing.assert_allclose(total, way[-1], atol=1e-4 * max(1, np.abs(way).max()))
        # The shares along the final vector are an exact account of its length.
        shares = found.parts.attention_along.sum() + found.parts.feed_forward_along.sum()
        assert found.start_along + shares == pytest.approx(found.size[-1], rel=1e-4)
        # Lengths only obey the triangle inequality.
        assert (found.change <= found.parts.attention + found.parts.feed_forward + 1e-4).all()


def test_sizes_and_angles_by_hand(tiny):
    forward = tiny.forward(IDS)
    found = stream(forward, 2)
    way = np.concatenate([forward.embedding[None, 2], forward.residual[:, 2]])
    assert found.size == pytest.approx(np.sqrt((way.astype(float) ** 2).sum(-1)), rel=1e-6)
    assert found.cosine[-1] == pytest.approx(1, abs=1e-6)
    expected = way[0] @ way[-1] / np.linalg.norm(way[0]) / np.linalg.norm(way[-1])
    assert found.cosine[0] == pytest.approx(expected, abs=1e-5)
    assert found.change[1] == pytest.approx(np.linalg.norm(way[2] - way[1]), rel=1e-5)
    assert found.parts is None


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_neurons_times_columns_are_the_feed_forward_part(architecture):
    engine = LocalEngine(tiny_of(architecture))
    forward = engine.forward(IDS, capture=ALL)
    count = forward.neurons.shape[-1]
    for layer in range(engine.info.layers):
        columns = engine.neuron_outputs(layer, range(count))
        written = forward.neurons[layer] @ columns
        part = forward.feed_forward_part[layer]
        if architecture in POST_NORM:
            # Gemma norms what is written: the direction stays up to its learned weights.
            norm = engine._parts.layers[layer].post_feedforward_layernorm
            import torch

            written = norm(torch.from_numpy(written)).numpy()
        else:
            down = engine._parts.layers[layer].mlp
            last = getattr(down, "down_proj", None) or getattr(down, "c_proj", None) or down.fc2
            if last.bias is not None:
                written = written + last.bias.detach().numpy()
        np.testing.assert_allclose(written, part, atol=1e-4)


def test_the_most_active_neurons_come_first_and_name_their_tokens(tiny):
    forward = tiny.forward(IDS, capture=ALL)
    found = most_active(tiny, forward, 5, 1, count=6, top=4)
    own = forward.neurons[1, 5]
    order = np.argsort(-np.abs(own), kind="stable")[:6]
    assert [n.index for n in found] == order.tolist()
    first = found[0]
    assert first.value == pytest.approx(own[first.index])
    column = tiny.neuron_outputs(1, [first.index])[0]
    assert first.size == pytest.approx(abs(first.value) * np.linalg.norm(column), rel=1e-5)
    scores = tiny.project(column[None] * own[first.index])[0]
    best = np.argsort(-scores, kind="stable")
    assert [token for token, _ in first.promotes] == best[:4].tolist()
    assert [token for token, _ in first.suppresses] == best[::-1][:4].tolist()
    assert first.promotes[0][1] == pytest.approx(scores[best[0]], rel=1e-5)
    assert first.suppresses[0][1] == pytest.approx(scores[best[-1]], rel=1e-5)
    gate, up = first.gate, first.up
    assert gate is not None
    assert up is not None
    assert gate / (1 + np.exp(-gate)) * up == pytest.approx(first.value, abs=1e-5)


def test_models_without_a_gate_have_none():
    engine = LocalEngine(tiny_of("gpt2"))
    forward = engine.forward(IDS, capture=ALL)
    assert most_active(engine, forward, 0, 0, count=1)[0].gate is None


def test_sparsity_counts_what_its_definition_says(tiny):
    forward = tiny.forward(IDS, capture=ALL)
    found = activity(forward, 3)
    values = np.abs(forward.neurons[0, 3].astype(float))
    assert found.near_zero[0] == (values < NEAR_ZERO * values.max()).mean()
    squares = np.sort(values**2)[::-1]
    busy = int(found.busy[0])
    assert squares[:busy].sum() >= MOST * squares.sum() * (1 - 1e-9)
    assert squares[: busy - 1].sum() < MOST * squares.sum()


def test_a_pass_without_neurons_says_so(tiny):
    forward = tiny.forward(IDS)
    assert activity(forward, 0) is None
    with pytest.raises(Fault):
        most_active(tiny, forward, 0, 0)
