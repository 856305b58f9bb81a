"""Beam search against transformers' ``generate(num_beams=…)``: sequences and scores."""

from itertools import product

import numpy as np
import pytest

from core.decode import beam_search, search
from core.decode.beam import provider_of
from core.settings import BeamSettings
from tests.beams import remembering, theirs

PROMPTS = ("the", "the 国 é", "of the in", "a")
WIDTHS = (2, 3, 4, 5, 8)
PENALTIES = (-1.0, 0.0, 0.6, 1.0, 2.0)


@pytest.fixture(scope="module")
def tiny_model():
    from core.models.load import load

    return load("tiny", device="cpu", dtype="float32").model


def agree(found, expected, tolerance):
    assert expected is not None, "a ghost"
    assert [h.tokens for h in found.hypotheses] == [tokens for tokens, _ in expected]
    scores = [score for _, score in expected]
    # theirs are sums in float32
    assert [h.score for h in found.hypotheses] == pytest.approx(scores, rel=tolerance, abs=1e-5)


def remembered(provider):
    known = {}

    def rows(prefixes):
        for prefix in prefixes:
            if prefix not in known:
                (known[prefix],) = provider((prefix,))
        return [known[prefix] for prefix in prefixes]

    return rows


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("ends", ["many", "few", "none"])
def test_sequences_and_scores(tiny, tiny_model, prompt, ends):
    ids = tiny.vocabulary.encode(prompt).ids
    # The model's own end token is too rare to finish anything; its favourites do.
    liked = np.argsort(-tiny.forward(ids).logits)
    end_ids = {"many": liked[1::3], "few": liked[4:90:30], "none": ()}[ends]
    end_ids = tuple(int(token) for token in end_ids)
    provider = remembered(provider_of(tiny, ids))
    reasons = set()
    for number, (width, penalty) in enumerate(product(WIDTHS, PENALTIES)):
        settings = BeamSettings(
            width=width,
            length_penalty=penalty,
            stop=("full", "best")[(number + len(prompt)) % 2],
            nbest=None if number % 3 else 1,
            max_new=8,
        )
        found = search(provider, settings, end_ids, prompt=ids)
        agree(found, theirs(tiny_model, ids, settings, end_ids), 2e-6)
        reasons.add(found.stop)
    assert reasons >= {"many": {"full", "no_beam_can_win"}}.get(ends, {"output_limit"})


def test_one_beam(tiny, tiny_model):
    import torch

    ids = tiny.vocabulary.encode("the").ids
    expected = tiny_model.generate(
        torch.tensor([ids]), num_beams=1, do_sample=False, max_new_tokens=9
    )
    found = beam_search(tiny, ids, BeamSettings(width=1, max_new=9))
    assert list(found.hypotheses[0].tokens) == expected[0, len(ids) :].tolist()


REAL = [
    ("The capital of France is", 2, 1.0, "best"),
    ("The capital of France is", 5, 0.0, "full"),
    ("Once upon a time", 3, 2.0, "full"),
    ("<|im_start|>user\nSay hi.<|im_end|>\n<|im_start|>assistant\n", 4, -1.0, "best"),
]


@pytest.mark.model
@pytest.mark.parametrize("case", REAL)
def test_on_the_default_model(smollm2, real_model, case):
    prompt, width, penalty, stop = case
    ids = smollm2.vocabulary.encode(prompt).ids
    settings = BeamSettings(width=width, length_penalty=penalty, stop=stop, max_new=8)
    found = beam_search(smollm2, ids, settings)
    agree(found, theirs(real_model, ids, settings, smollm2.info.end_ids), 1e-4)


@pytest.mark.model
@pytest.mark.parametrize(
    ("name", "prompt", "widths"),
    [("smollm2", "Once upon a time", (3, 8)), ("gemma3", "法国的首都是", (4,))],
)
def test_a_sample_of_the_grid(name, prompt, widths, request):
    """All penalties and both rules; the whole grid is ``python -m bench.beams``."""
    engine = request.getfixturevalue(name)
    model = request.getfixturevalue({"smollm2": "real_model", "gemma3": "real_gemma"}[name])
    ids = engine.vocabulary.encode(prompt).ids
    with remembering(model):
        for width, penalty, stop in product(widths, PENALTIES, ("full", "best")):
            settings = BeamSettings(width=width, length_penalty=penalty, stop=stop, max_new=5)
            found = beam_search(engine, ids, settings)
            agree(found, theirs(model, ids, settings, engine.info.end_ids), 1e-4)


@pytest.fixture(scope="module")
def real_model(default_model):
    from core.models.load import load

    return load(default_model, device="cpu", dtype="float32").model


@pytest.fixture(scope="module")
def real_gemma(gemma3_name):
    from core.models.load import load

    return load(gemma3_name, device="cpu", dtype="float32").model
