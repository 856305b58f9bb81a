"""Training beside inference: steps as PyTorch's own, bytes of real tensors, nothing left behind."""

import dataclasses
import gc
import json
import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from core.decode import probabilities
from core.decode.generate import Stopped
from core.engine.local import LocalEngine
from core.engine.toy import open_toy
from core.faults import Fault
from core.lab import training_run
from core.lab.models import local
from core.lab.quality import quality, reference
from core.lab.timing import Spread
from core.lab.training_bytes import needed_bytes
from core.lab.training_moved import fingerprint, kind_of, moved
from core.lab.training_records import (
    OTHER,
    SENTENCE,
    Ask,
    Frozen,
    Look,
    Prediction,
    ask_of,
    beginning,
)
from core.lab.training_run import trained
from core.lab.training_step import kept, optimizer_of, step, storages
from core.lab.training_stored import Words, as_text, from_plain, stored, to_plain
from core.models.load import load
from core.models.tiny import tiny, tiny_of

TEXT = "the thing is in there"
ORDER = ("original", "copy", "look", "kept", "steps", "after", "frozen")


def last_of(turns):
    for found in turns:
        last = found
    return last


def ask(engine, sentence=TEXT, **changes):
    return ask_of(
        engine.vocabulary, sentence, "", "a thing", **{"steps": 4, "rate": 1e-3, **changes}
    )


def end_of(turns):
    while True:
        try:
            next(turns)
        except StopIteration as end:
            return end.value


@pytest.fixture(scope="module")
def done(tiny):
    return list(trained(tiny, ask(tiny)))


# ---------------------------------------------------------------- the steps


@pytest.mark.parametrize(("name", "rate"), [("adamw", 1e-3), ("sgd", 1e-2)])
def test_the_losses_are_those_of_a_plain_pytorch_loop(tiny, name, rate):
    found = last_of(trained(tiny, ask(tiny, optimizer=name, rate=rate)))
    model = load("tiny", device="cpu", dtype="float32").model
    model.requires_grad_(True)
    kinds = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    optimizer = kinds[name](model.parameters(), lr=rate)
    ids = torch.tensor([found.ask.sentence])
    losses = []
    for _ in range(4):
        loss = model(ids, labels=ids).loss
        losses.append(float(loss.detach()))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    losses.append(float(model(ids, labels=ids).loss.detach()))
    assert found.losses == pytest.approx(losses, rel=1e-4)
    assert found.losses[-1] < found.losses[0]


def test_every_step_lowers_the_loss_and_it_is_the_mean_of_the_tokens(done):
    found = done[-1]
    assert all(b < a for a, b in zip(found.losses, found.losses[1:], strict=False))
    assert found.token_p.shape == (5, len(found.ask.sentence) - 1)
    assert found.losses == pytest.approx((-np.log(found.token_p)).mean(1), rel=1e-4)


def test_times_by_a_clock_that_is_set(monkeypatch):
    model = tiny_of("llama").model.requires_grad_(True)
    clock = iter([0.0, 1.0, 10.0, 12.0, 20.0, 24.0])
    monkeypatch.setattr("core.lab.training_step.time.perf_counter", lambda: next(clock))
    optimizer = optimizer_of(model, "sgd", 1e-3)
    made, _ = end_of(step(model, optimizer, torch.tensor([[5, 6, 7]]), 500.0))
    assert (made.forward_ms, made.backward_ms, made.update_ms) == (1000, 2000, 4000)
    assert (made.inference_ms, made.ms) == (500, 7000)


def test_the_first_step_is_slow_and_not_counted(done):
    found = done[-1]
    steps = tuple(
        dataclasses.replace(one, forward_ms=ms, backward_ms=0.0, update_ms=1.0)
        for one, ms in zip(found.steps, (900.0, 5.0, 1.0, 3.0), strict=True)
    )
    few = dataclasses.replace(found, steps=steps)
    assert few.forward_ms == Spread(3.0, 1.0, 5.0, 3)
    assert few.step_ms == Spread(4.0, 2.0, 6.0, 3)
    assert dataclasses.replace(found, steps=steps[:1]).forward_ms.median == 900


def test_the_divergence_is_from_before_to_after():
    before, after = np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.25, 0.5])
    assert training_run._kl(before, after) == pytest.approx(math.log(2))


def test_before_is_the_served_model_and_after_is_not(tiny, done):
    for found in (done[-1].prompt, done[-1].other):
        own = probabilities(tiny.forward(found.prompt).logits)
        for token, p in found.before.top:
            assert p == pytest.approx(own[token], abs=1e-6)
        assert found.before.written[0] == int(own.argmax())
        for (token, _), p in zip(found.after.top, found.before_p, strict=True):
            assert p == pytest.approx(own[token], abs=1e-6)
        assert found.kl > 0
    prompt = done[-1].prompt
    assert prompt.prompt == done[-1].ask.sentence[: len(prompt.prompt)]
    learned = done[-1].ask.sentence[len(prompt.prompt)]
    at = len(prompt.prompt) - 1
    before, after = done[-1].token_p[0, at], done[-1].token_p[-1, at]
    assert after > before
    # p of the same token by two ways: after the prompt, and inside the sentence.
    own = probabilities(tiny.forward(prompt.prompt).logits)
    assert own[learned] == pytest.approx(before, abs=1e-6)
    rows = prompt.rows(10)
    assert len(rows) >= 10
    assert [p for _, p, _ in rows] == pytest.approx([own[token] for token, _, _ in rows], abs=1e-6)


def test_rows_are_the_favourites_of_both_times():
    first, then = Look(((5, 0.6), (6, 0.3)), ()), Look(((7, 0.5), (5, 0.4)), ())
    found = Prediction((1,), first, then, before_p=(0.1, 0.6), after_p=(0.4, 0.05))
    assert found.rows(1) == ((5, 0.6, 0.4), (7, 0.1, 0.5))
    assert found.rows(2) == ((5, 0.6, 0.4), (7, 0.1, 0.5), (6, 0.3, 0.05))
    assert Prediction((1,), first).rows(1) == ((5, 0.6, None),)


# ---------------------------------------------------------------- bytes


def test_bytes_are_those_of_the_tensors(done):
    found, model = done[-1].kept, tiny().model
    count = sum(p.numel() for p in model.parameters())
    buffers = sum(storages(model.buffers()).values())
    assert found.weights == 4 * count + buffers
    assert found.trained == count
    assert found.gradients == 4 * count
    # Two running means a weight, and one count of steps a tensor.
    assert found.states == 2 * 4 * count + 4 * len(list(model.parameters()))
    # 2 layers × 2 KV heads × 8 numbers × (keys and values) × 4 bytes = 256 a token.
    assert found.cache == 256 * len(done[-1].ask.sentence)
    assert found.inference == found.weights + found.cache
    assert sum(size for _, size in found.places) == found.activations
    assert [name for name, _ in found.places] == ["embedding", "0", "1", "head"]


def test_gradient_descent_remembers_nothing(tiny):
    found = last_of(trained(tiny, ask(tiny, optimizer="sgd", steps=1)))
    assert found.kept.states == 0
    assert found.kept.gradients == 4 * found.kept.trained


def test_activations_by_hand():
    """A single linear layer keeps its input, and the loss its logits' log-softmax."""

    class Head(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(5, 3)
            self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 5, bias=False)])
            self.config = tiny().model.config
            self.device = torch.device("cpu")

        def forward(self, ids, **_):
            return type("Output", (), {"logits": self.layers[0](self.table(ids))})

    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("core.lab.training_step.inference", lambda *_: (0.0, 0))
        patch.setattr("core.lab.training_step.parts_of", lambda *_: None)
        found = kept(Head(), torch.tensor([[1, 2, 3, 4]]), 1)
    seen.append(found)
    # Ids 4 × 8 bytes; the layer's input 4 × 3 × 4; log-softmax 3 × 5 × 4, and its scalar weight.
    least = 4 * 8 + 4 * 3 * 4 + 3 * 5 * 4
    assert least <= found.activations <= least + 16
    assert found.trained == 5 * 3 * 2


def test_what_is_needed_is_said_before(tiny, done):
    expected = needed_bytes(tiny.info, done[-1].ask)
    assert done[0].needed == expected
    assert 0.8 < done[-1].kept.training / expected < 1.5


def test_adamw_needs_two_more_numbers_a_weight(tiny):
    adamw, sgd = (needed_bytes(tiny.info, ask(tiny, optimizer=name)) for name in ("adamw", "sgd"))
    assert adamw - sgd == 2 * 4 * tiny.info.parameters
    # What is left without weights and gradients grows with the text, and with it alone.
    text = sgd - 2 * 4 * tiny.info.parameters
    assert 0 < text < 4 * len(ask(tiny).sentence) * 4000


def test_a_byte_too_few_is_too_few(tiny, monkeypatch):
    question = ask(tiny)
    needed = needed_bytes(tiny.info, question)

    def free(size):
        found = type("Memory", (), {"available": size})
        monkeypatch.setattr(training_run.psutil, "virtual_memory", lambda: found)

    free(needed)
    assert training_run.check(tiny, question) == needed
    free(needed - 1)
    with pytest.raises(Fault):
        training_run.check(tiny, question)


def test_without_memory_it_is_not_begun(tiny, monkeypatch):
    class Full:
        available = 1000

    monkeypatch.setattr(training_run.psutil, "virtual_memory", lambda: Full)
    with pytest.raises(Fault) as fault:
        last_of(trained(tiny, ask(tiny)))
    assert fault.value.code == "no_memory_to_copy"


# ---------------------------------------------------------------- what is left behind


def test_the_served_model_is_bit_equal_and_the_copy_gone(tiny, done):
    frozen = done[-1].frozen
    assert frozen.untouched
    assert frozen.gone
    assert frozen.trained == 0
    assert frozen.sum_before == frozen.sum_after == end_of(fingerprint(tiny))
    assert frozen.sum_after == end_of(fingerprint(LocalEngine(load("tiny"))))
    assert not any(p.requires_grad for p in tiny._model.parameters())


def test_the_fingerprint_sees_one_bit():
    loaded = tiny_of("llama")
    engine = LocalEngine(loaded)
    before = end_of(fingerprint(engine))
    with torch.no_grad():
        weight = loaded.model.lm_head.weight
        weight[3, 5] = torch.nextafter(weight[3, 5], torch.tensor(math.inf))
    assert end_of(fingerprint(engine)) != before


def test_stopped_in_the_middle_nothing_is_left(tiny):
    before = end_of(fingerprint(tiny))
    turns = trained(tiny, ask(tiny, steps=20))
    while len(next(turns).steps) < 2:
        pass
    with pytest.raises(Stopped):
        turns.throw(Stopped())
    gc.collect()
    assert end_of(fingerprint(tiny)) == before
    moving = [o for o in gc.get_objects() if type(o) is torch.nn.Parameter and o.requires_grad]
    assert not moving
    # Another one may begin at once.
    assert last_of(trained(tiny, ask(tiny, steps=1))).done


def test_one_training_at_a_time(tiny):
    first = trained(tiny, ask(tiny))
    while next(first).phase != "steps":
        pass
    second = trained(tiny, ask(tiny, steps=1))
    assert [next(second).phase for _ in range(3)] == ["waiting"] * 3
    first.close()
    assert last_of(second).done


def test_progress_only_grows_and_stop_is_heard_within_a_step(done):
    shares = [record.progress for record in done]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    phases = list(dict.fromkeys(record.phase for record in done))
    assert phases == list(ORDER)
    assert sum(record.phase == "steps" for record in done) >= 3 * 4


# ---------------------------------------------------------------- what moved


def test_the_parts_that_moved_are_all_weights(done):
    found = done[-1]
    assert sum(m.count for m in found.moved) == found.kept.trained
    assert all(m.relative > 0 for m in found.moved if m.kind != "embedding")
    assert {m.layer for m in found.moved if m.kind == "attention"} == {0, 1}
    assert list(found.tensors) == sorted(found.tensors, key=lambda pair: -pair[1])


@pytest.mark.parametrize(
    ("name", "kind", "layer"),
    [
        ("model.embed_tokens.weight", "embedding", None),
        ("model.layers.3.self_attn.q_proj.weight", "attention", 3),
        ("model.layers.3.self_attn.q_norm.weight", "attention", 3),
        ("model.layers.12.mlp.down_proj.weight", "feed_forward", 12),
        ("model.layers.12.post_feedforward_layernorm.weight", "norm", 12),
        ("model.layers.0.post_attention_layernorm.weight", "norm", 0),
        ("model.norm.weight", "norm", None),
        ("lm_head.weight", "head", None),
        ("transformer.h.1.attn.c_attn.weight", "attention", 1),
        ("transformer.h.1.mlp.c_fc.weight", "feed_forward", 1),
        ("transformer.h.1.ln_2.weight", "norm", 1),
        ("transformer.wpe.weight", "embedding", None),
    ],
)
def test_tensors_belong_to_parts(name, kind, layer):
    assert kind_of(name) == (kind, layer)


def test_forgetting_is_judged_on_four_texts(done):
    found = done[-1].forgotten
    assert [each.name for each in found] == ["prose", "facts", "code", "chinese"]
    assert all(each.kl > 0 and 0 <= each.top1 <= 1 for each in found)


def test_before_is_the_perplexity_of_the_original(tiny, done):
    rows = end_of(reference(tiny, most=128))
    with tiny.borrowed() as model:
        for row, found in zip(rows, done[-1].forgotten, strict=True):
            own = quality(model, [row])
            assert found.before == pytest.approx(own.perplexity, rel=1e-5)
            assert (found.name, found.positions) == (row.name, own.positions)


def test_half_as_large_again_has_moved_by_a_half():
    original, trained_ = tiny_of("llama").model, tiny_of("llama").model
    with torch.no_grad():
        trained_.lm_head.weight.mul_(1.5)
    groups, tensors = moved(original, trained_)
    assert {group.kind: group.relative for group in groups} == {
        "embedding": 0, "attention": 0, "feed_forward": 0, "norm": 0, "head": pytest.approx(0.5),
    }  # fmt: skip
    assert tensors[0] == ("lm_head.weight", pytest.approx(0.5))


@pytest.mark.parametrize(
    ("after", "equal", "untouched"), [("a", True, True), ("b", True, False), ("a", False, False)]
)
def test_untouched_are_equal_weights_with_equal_scores(after, equal, untouched):
    assert Frozen(0, True, "a", after, equal).untouched == untouched


def test_a_larger_rate_forgets_more(tiny):
    small, large = (
        last_of(trained(tiny, ask(tiny, rate=rate, steps=3))).forgotten for rate in (1e-5, 1e-3)
    )
    assert all(b.kl > 10 * a.kl for a, b in zip(small, large, strict=True))


# ---------------------------------------------------------------- borders


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"steps": 0}, "setting_out_of_range"),
        ({"steps": 51}, "setting_out_of_range"),
        ({"rate": 0.0}, "setting_out_of_range"),
        ({"rate": 0.5}, "setting_out_of_range"),
        ({"rate": math.nan}, "setting_out_of_range"),
        ({"optimizer": "adam"}, "unknown_optimizer"),
        ({"sentence": ()}, "empty_prompt"),
        ({"sentence": (1,)}, "training_too_short"),
        ({"sentence": (1,) * 129}, "training_too_long"),
        ({"other": (1,) * 129}, "training_too_long"),
    ],
)
def test_what_is_not_allowed_is_a_sentence(changes, code):
    with pytest.raises(Fault) as fault:
        Ask(**{"sentence": (1, 2, 3), "prompt": (1, 2), "other": (4,), **changes})
    assert fault.value.code == code


def test_weights_that_are_whole_numbers_cannot_be_trained():
    engine = LocalEngine(load("tiny#int8"))
    with pytest.raises(Fault) as fault:
        last_of(trained(engine, ask(engine)))
    assert fault.value.code == "training_packed"


def test_a_table_has_no_weights():
    with pytest.raises(Fault) as fault:
        local(open_toy())
    assert fault.value.code == "lab_needs_weights"


def test_a_loss_that_is_no_number_is_said(tiny, monkeypatch):
    def broken(logits, targets):
        return functional.nll_loss(logits, targets) * math.nan

    monkeypatch.setattr("core.lab.training_step.functional.cross_entropy", broken)
    with pytest.raises(Fault) as fault:
        last_of(trained(tiny, ask(tiny)))
    assert fault.value.code == "training_diverged"
    assert fault.value.params["step"] == 1


def test_where_a_sentence_stops_being_given():
    assert beginning(SENTENCE) == "The capital of France is"
    assert beginning("法国的首都是里昂") == "法国的首"
    assert beginning("word") == "wo"


def test_other_architectures_are_trained_too():
    for name in ("gpt2", "gemma3"):
        engine = LocalEngine(tiny_of(name))
        found = last_of(trained(engine, ask(engine, steps=2)))
        assert found.losses[-1] < found.losses[0]
        assert found.frozen.untouched
        assert found.frozen.gone


# ---------------------------------------------------------------- kept in a file


def test_what_is_stored_comes_back(tiny, done):
    from core.lab.speculative_run import speculated
    from core.settings import Settings

    prompt = tiny.vocabulary.read("the thing").ids
    drafted = last_of(speculated(tiny, tiny, prompt, Settings(max_new=5), 2))
    table = json.loads(as_text(to_plain(done[-1], drafted, tiny.vocabulary)))
    found = from_plain(table)
    assert found.speculation == drafted
    assert found.training.losses == done[-1].losses
    assert np.abs(found.training.token_p - done[-1].token_p).max() < 1e-6
    for field in dataclasses.fields(found.training):
        if field.name not in ("steps", "last"):
            assert getattr(found.training, field.name) == getattr(done[-1], field.name)
    words = Words.of(tiny.vocabulary)
    for token in (*done[-1].ask.sentence, *done[-1].prompt.after.written):
        assert found.words.label(token) == words.label(token)


def test_the_stored_figures_are_of_the_default_model():
    found = stored()
    assert found is not None
    assert found.training.model == found.speculation.model == "smollm2-135m"
    assert found.training.frozen.untouched
    assert found.training.losses[-1] < found.training.losses[0]
    assert found.training.kept.gradients == 538_060_032
    assert found.words.text(found.training.ask.sentence) == SENTENCE
    assert found.words.text(found.training.ask.other) == OTHER
    assert found.speculation.greedy
    assert found.speculation.same_text


@pytest.mark.model
def test_two_steps_on_the_default_model(smollm2):
    question = ask_of(smollm2.vocabulary, SENTENCE, "", OTHER, steps=2, rate=1e-5)
    found = last_of(trained(smollm2, question))
    assert found.losses[-1] < found.losses[0]
    assert found.kept.cache == 46_080 * len(question.sentence)
    assert found.kept.gradients == 538_060_032
    assert found.kept.states == 2 * 538_060_032 + 4 * 272
    assert found.frozen.untouched
    assert found.frozen.gone
    assert smollm2.vocabulary.label(found.prompt.before.top[0][0]) == "␣Paris"
