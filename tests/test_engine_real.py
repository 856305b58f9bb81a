"""Both packaged models against transformers' ``generate``."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from core.decode.generate import generate, run
from core.models.catalog import folder_of, resolve
from core.settings import RunSpec, Settings

pytestmark = pytest.mark.model

PROMPTS = (
    "The capital of France is",
    "法国的首都是",
    "Once upon a time, there was a little",
    "def fibonacci(n):\n    ",
    "Столица Франции —",
    "عاصمة فرنسا هي",
    "フランスの首都は",
    "1, 2, 3, 4,",
    "👨‍👩‍👧‍👦 means",
    "The cat sat on the mat. The cat sat on the",
)
STEPS = 8


def plain(name):
    """The same weights in transformers' own hands, with its default attention."""
    return AutoModelForCausalLM.from_pretrained(
        folder_of(resolve(name)), dtype=torch.float32
    ).eval()


def greedy_tokens(model, ids):
    with torch.inference_mode():
        found = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=STEPS)
    return found[0, len(ids) :].tolist()


@pytest.mark.parametrize("name", ["smollm2", "gemma3"])
def test_greedy_equals_generate_token_for_token(name, request):
    engine = request.getfixturevalue(name)
    model = plain(engine.info.name)
    settings = Settings(strategy="greedy", max_new=STEPS)
    for prompt in PROMPTS:
        ids = engine.vocabulary.encode(prompt).ids
        ours = [step.choice.id for step in generate(engine, ids, settings)]
        assert ours == greedy_tokens(model, ids), prompt


@pytest.mark.parametrize("name", ["smollm2", "gemma3"])
def test_cached_and_uncached_logits_agree(name, request):
    engine = request.getfixturevalue(name)
    ids = engine.vocabulary.encode(PROMPTS[2]).ids
    for step in generate(engine, ids, Settings(strategy="greedy", max_new=12)):
        whole = engine.forward(step.forward.ids)
        assert np.abs(step.forward.logits - whole.logits).max() < 5e-4
        assert step.forward.attention == pytest.approx(
            whole.attention[:, :, step.forward.start :], abs=1e-4
        )


def test_paris(smollm2):
    made = run(smollm2, RunSpec(prompt=PROMPTS[0], settings=Settings(max_new=1)))
    step = made.steps[0]
    assert smollm2.vocabulary.label(step.choice.id) == "␣Paris"
    assert step.choice.probability_model == pytest.approx(0.77, abs=0.01)
    assert step.choice.rank == 1
    assert made.stop == "output_limit"


def test_chinese_on_the_multilingual_model(gemma3):
    ids = gemma3.vocabulary.encode(PROMPTS[1]).ids
    labels = [token.label for token in gemma3.vocabulary.tokens(ids, len(ids))]
    assert labels == ["<bos>", "法国", "的首", "都是"]
