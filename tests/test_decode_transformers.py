"""Each stage against transformers' own warper, away from ties and rounding."""

import numpy as np
import pytest
import torch
from transformers import (
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

from core.decode import apply_stages, probabilities
from core.settings import Settings

CASES = [
    (Settings(temperature=0.3), [TemperatureLogitsWarper(0.3)]),
    (Settings(temperature=1.7), [TemperatureLogitsWarper(1.7)]),
    (Settings(top_k=1), [TopKLogitsWarper(1)]),
    (Settings(top_k=40), [TopKLogitsWarper(40)]),
    (Settings(top_p=0.2), [TopPLogitsWarper(0.2)]),
    (Settings(top_p=0.9), [TopPLogitsWarper(0.9)]),
    (Settings(top_p=0.99), [TopPLogitsWarper(0.99)]),
    (Settings(typical_p=0.05), [TypicalLogitsWarper(0.05)]),
    (Settings(typical_p=0.5), [TypicalLogitsWarper(0.5)]),
    (Settings(typical_p=0.95), [TypicalLogitsWarper(0.95)]),
    (
        Settings(temperature=1.5, typical_p=0.3, top_p=0.5, order=("temperature", "typical_p")),
        [TemperatureLogitsWarper(1.5), TypicalLogitsWarper(0.3), TopPLogitsWarper(0.5)],
    ),
    (Settings(min_p=0.05), [MinPLogitsWarper(0.05)]),
    (Settings(min_p=0.5), [MinPLogitsWarper(0.5)]),
    (
        Settings(temperature=0.8, top_k=100, top_p=0.9, min_p=0.02),
        [
            TemperatureLogitsWarper(0.8),
            TopKLogitsWarper(100),
            TopPLogitsWarper(0.9),
            MinPLogitsWarper(0.02),
        ],
    ),
    (
        Settings(
            temperature=3.0, min_p=0.3, top_p=0.8, order=("min_p", "top_p", "temperature", "top_k")
        ),
        [MinPLogitsWarper(0.3), TopPLogitsWarper(0.8), TemperatureLogitsWarper(3.0)],
    ),
]


def far_from_any_line(row):
    """A vocabulary in which no token stands within 1e-5 of a cut-off of any case."""
    p = np.sort(probabilities(row))[::-1]
    return np.diff(p[p > 1e-5]).max(initial=-1) < 0


@pytest.mark.parametrize(("settings", "warpers"), CASES, ids=[str(i) for i in range(len(CASES))])
@pytest.mark.parametrize("seed", range(5))
def test_stages_agree(settings, warpers, seed):
    row = np.random.default_rng(seed).normal(0, 3, 2000)
    assert far_from_any_line(row)
    scores = torch.from_numpy(row)[None]
    for warper in warpers:
        scores = warper(None, scores)
    theirs = scores[0].numpy()
    ours = apply_stages(row, settings)[-1].logits
    assert np.array_equal(ours > -np.inf, theirs > -np.inf)
    assert probabilities(ours) == pytest.approx(probabilities(theirs), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_whole_vocabulary_agrees(seed):
    row = np.random.default_rng(seed).normal(0, 2, 49_152)
    scores = TopPLogitsWarper(0.9)(
        None, TemperatureLogitsWarper(2.0)(None, torch.from_numpy(row)[None])
    )
    stage = apply_stages(row, Settings(temperature=2.0, top_p=0.9))[2]
    # The sums of 40,000 terms differ in their last digits, and our line forgives 1e-6.
    differing = np.count_nonzero((scores[0].numpy() > -np.inf) != stage.keeps)
    assert differing <= 1 + 1e-6 / probabilities(stage.logits)[stage.keeps].min()
    assert stage.survivors > 10_000
