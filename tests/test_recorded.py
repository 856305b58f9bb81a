"""The stored run: it opens, it is what the model says, and it says nothing else."""

import dataclasses

import numpy as np
import pytest

from core.decode.generate import run
from core.faults import NotReady
from core.lens import logit_lens
from core.recorded import RecordedEngine, record, recorded_engine
from core.trace import nbytes
from ui.link import DEFAULT


def test_the_default_link_is_stored_to_its_first_steps():
    made = run(recorded_engine(), DEFAULT, steps=2)
    labels = [recorded_engine().vocabulary.label(step.choice.id) for step in made.steps]
    assert labels == ["␣Paris", "."]
    assert made.steps[0].forward.attention.shape == (30, 9, 5, 5)
    assert made.steps[0].choice.probability_model == pytest.approx(0.7725, abs=1e-3)


def test_other_settings_on_the_same_tokens_are_answered_too():
    hot = dataclasses.replace(DEFAULT.settings, temperature=1.3, top_k=5)
    made = run(recorded_engine(), dataclasses.replace(DEFAULT, settings=hot), steps=1)
    assert made.steps[0].choice.probability_filtered != made.steps[0].choice.probability_model


def test_anything_else_is_not_ready():
    engine = recorded_engine()
    with pytest.raises(NotReady):
        engine.forward((1, 2, 3))
    forward = run(engine, DEFAULT, steps=1).steps[0].forward
    with pytest.raises(NotReady):
        engine.unembed(forward.residual[-1])
    with pytest.raises(NotReady):
        engine.lens(forward, 0)


@pytest.mark.model
def test_the_stored_run_is_what_the_model_says_today(smollm2):
    stored = run(recorded_engine(), DEFAULT, steps=2)
    live = run(smollm2, DEFAULT, steps=2)
    assert [t.id for t in stored.prompt] == [t.id for t in live.prompt]
    assert recorded_engine().info.parameters == smollm2.info.parameters
    for old, new in zip(stored.steps, live.steps, strict=True):
        assert old.choice.id == new.choice.id
        assert old.forward.logits == pytest.approx(new.forward.logits, abs=5e-4)
        assert old.forward.attention == pytest.approx(new.forward.attention, abs=1e-4)
        lens = logit_lens(smollm2, new.forward, new.choice.id)
        kept = recorded_engine().lens(old.forward, old.choice.id)
        assert kept.followed_probability == pytest.approx(lens.followed_probability, abs=1e-4)


def test_recording_and_opening_loses_nothing(tiny, tmp_path):
    first = tiny.forward((5, 6, 7))
    second = tiny.forward((5, 6, 7, 9), prompt_length=3)
    tokenizer = tiny.vocabulary._entries.tokenizer.to_str()
    record(
        tiny,
        [(first, 9), (second, 11)],
        tokenizer_json=tokenizer,
        chat_template=None,
        about={"date": "2026-01-01"},
        folder=tmp_path,
    )
    opened = RecordedEngine(tmp_path)
    assert opened.info == tiny.info
    for ids, original in (((5, 6, 7), first), ((5, 6, 7, 9), second)):
        found = opened.forward(ids, prompt_length=3)
        for name in ("embedding", "residual", "normed", "logits", "attention"):
            assert (getattr(found, name) == getattr(original, name)).all()
        assert nbytes(found) == nbytes(original)
        assert not found.logits.flags.writeable
    assert np.isclose(
        opened.lens(opened.forward((5, 6, 7)), 9).followed_probability[-1],
        np.exp(first.logits[9]) / np.exp(first.logits).sum(),
        atol=1e-5,
    )
