"""How far an edited model is from the original, and how times are taken."""

import math
from types import SimpleNamespace

import pytest
import torch

from core.faults import Fault
from core.lab.machine import machine
from core.lab.models import local
from core.lab.quality import Row, divergence, following, judged, quality, reference, text_ids
from core.lab.texts import CALIBRATION, NAMES, text
from core.lab.timing import Spread, in_turns, interleaved, milliseconds


def end_of(turns):
    yielded = []
    while True:
        try:
            yielded.append(next(turns))
        except StopIteration as end:
            return yielded, end.value


def test_the_divergence_of_known_distributions():
    p = torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]).log()
    q = torch.tensor([[0.25, 0.25, 0.5], [0.25, 0.25, 0.5]]).log()
    assert divergence(p, q).tolist() == pytest.approx([math.log(2), 0.0], abs=1e-7)


def test_the_token_that_follows_is_the_next_one():
    rows = torch.tensor([[0.1, 0.9], [0.8, 0.2], [0.5, 0.5]]).log()
    assert following(rows, [0, 1, 0]).exp().tolist() == pytest.approx([0.9, 0.8])


def test_a_model_judged_by_itself_is_perfect(tiny):
    progress, rows = end_of(reference(tiny))
    assert progress == [0.25, 0.5, 0.75, 1.0]
    assert [row.name for row in rows] == list(NAMES)
    with tiny.borrowed() as model:
        _, found = end_of(judged(model, rows))
        # An oracle: transformers' own loss is the mean surprise of one text.
        ids = torch.tensor([rows[0].ids])
        loss = float(model(ids, labels=ids).loss)
        one = quality(model, rows[:1])
    assert found.kl == 0.0
    assert found.top1 == 1.0
    assert found.positions == sum(len(row.ids) for row in rows)
    assert one.perplexity == pytest.approx(math.exp(loss), rel=1e-5)


def test_two_positions_judged_by_hand():
    """The favourite of the first stays, that of the second does not; token 1 really follows."""
    original = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]).log()
    edited = torch.tensor([[0.6, 0.1, 0.3], [0.7, 0.2, 0.1]]).log()

    class Fixed:
        device = "cpu"

        def __call__(self, ids, **_):
            return SimpleNamespace(logits=edited[None])

    found = quality(Fixed(), [Row("by hand", (0, 1), original)])
    assert (found.top1, found.positions) == (0.5, 2)
    assert found.perplexity == pytest.approx(10)
    first = 0.7 * math.log(7 / 6) + 0.2 * math.log(2) + 0.1 * math.log(1 / 3)
    assert found.kl == pytest.approx((first + 0.6 * math.log(7)) / 2, rel=1e-5)


def test_a_changed_model_is_judged_worse(tiny):
    from core.models.load import load

    other = load("tiny").model
    _, rows = end_of(reference(tiny, most=32))
    assert quality(other, rows).kl == 0.0
    other.lm_head.weight.mul_(0)
    found = quality(other, rows)
    assert found.kl > 0
    # Without a head every token is as likely as any other.
    assert found.perplexity == pytest.approx(tiny.info.vocabulary, rel=1e-4)


def test_the_divergence_is_the_mean_over_every_position_of_every_text(tiny):
    from core.models.load import load

    other = load("tiny").model
    other.lm_head.weight.mul_(0)
    _, rows = end_of(reference(tiny, most=32))
    # From p to a law in which all tokens are alike: ln V minus the entropy of p.
    each = [
        math.log(tiny.info.vocabulary) + (row.log_probs.exp() * row.log_probs).sum(-1)
        for row in rows
    ]
    assert quality(other, rows).kl == pytest.approx(float(torch.cat(each).mean()), rel=1e-5)


def test_the_texts_are_read_up_to_a_limit(tiny):
    assert len(text_ids(tiny.vocabulary, "prose", 10)) == 10
    assert not any(text(CALIBRATION) in text(name) for name in NAMES)
    with pytest.raises(KeyError):
        text("../texts/prose")


def test_times_are_taken_in_turns():
    order = []
    calls = {"a": lambda: order.append("a"), "b": lambda: order.append("b")}
    spreads = interleaved(calls, 3)
    assert "".join(order) == "ab" * 4
    assert all(found.repeats == 3 for found in spreads.values())
    assert all(0 <= found.low <= found.median <= found.high for found in spreads.values())
    assert list(in_turns(calls, 2, warm=False)) == [0.25, 0.5, 0.75, 1.0]
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0, 3)
    with pytest.raises(ValueError, match="repeat"):
        interleaved(calls, 0)


def test_a_median_is_no_mean_and_a_time_is_in_milliseconds(monkeypatch):
    assert Spread.of([9.0, 1.0, 2.0]) == Spread(2.0, 1.0, 9.0, 3)
    clock = iter([10.0, 10.25])
    monkeypatch.setattr("core.lab.timing.time.perf_counter", lambda: next(clock))
    assert milliseconds(lambda: None) == 250


def test_the_machine_is_named():
    here = machine()
    assert here.cores >= 1
    assert here.threads >= 1
    assert here.memory > 10**8
    assert here.torch.startswith("2.")
    assert here.processor


def test_only_weights_are_lent(tiny):
    from core.recorded import recorded_engine

    assert local(tiny) is tiny
    with pytest.raises(Fault) as fault:
        local(recorded_engine())
    assert fault.value.code == "lab_needs_weights"
