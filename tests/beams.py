"""transformers' own beam search, its answer in the shape of ours."""

from contextlib import contextmanager

import numpy as np
import torch
from transformers.modeling_outputs import CausalLMOutput

NO_GHOST = -1e8
"""transformers marks what no real beam stands for with -1e9."""


def theirs(model, prompt, settings, end_ids, *, early_stopping=None):
    """[(tokens, score)] of ``generate(num_beams=…)``; ``None`` where a ghost is among them."""
    rule = {"full": True, "best": "never"}[settings.stop]
    output = model.generate(
        torch.tensor([list(prompt)]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        num_beams=settings.width,
        num_return_sequences=settings.best,
        length_penalty=settings.length_penalty,
        early_stopping=rule if early_stopping is None else early_stopping,
        max_new_tokens=settings.max_new,
        do_sample=False,
        eos_token_id=list(end_ids) or None,
        pad_token_id=0,
        output_scores=True,
        return_dict_in_generate=True,
    )
    scores = output.sequences_scores.tolist()
    if min(scores) < NO_GHOST:
        return None
    texts = [trimmed(row[len(prompt) :], end_ids) for row in output.sequences.tolist()]
    longest = max(map(len, texts))
    # A text that the limit cut off is padded only if it is not among the longest.
    assert all(len(t) == longest or t[-1] in end_ids for t in texts)
    return list(zip(texts, scores, strict=True))


@contextmanager
def remembering(model):
    """While this lasts, ``generate`` reads every batch of texts once, and without a KV cache.

    Which beams live depends neither on the penalty nor on the stopping rule, so searches that
    differ only in them read the same batches.
    """
    known, real, config = {}, model.forward, model.generation_config
    cached = config.use_cache

    def forward(input_ids, **_):
        key = input_ids.shape, input_ids.numpy().tobytes()
        if key not in known:
            known[key] = real(input_ids, use_cache=False, logits_to_keep=1).logits
        return CausalLMOutput(logits=known[key])

    model.forward, config.use_cache = forward, False
    try:
        with torch.inference_mode():
            yield known
    finally:
        model.forward, config.use_cache = real, cached


def trimmed(ids, end_ids):
    for place, token in enumerate(ids):
        if token in end_ids:
            return tuple(ids[: place + 1])
    return tuple(ids)


def random_provider(seed, vocabulary, *, zeros=0.3):
    """A language model of random rows: as logits, with impossible tokens among them."""

    def row(prefix):
        dice = np.random.default_rng([seed, len(prefix), *prefix])
        p = dice.dirichlet(np.full(vocabulary, 0.7)) + 1e-3
        gone = dice.random(vocabulary) < zeros
        gone[dice.integers(vocabulary)] = False
        p[gone] = 0
        with np.errstate(divide="ignore"):
            return np.log(p / p.sum())

    return lambda prefixes: [row(prefix) for prefix in prefixes]


def table_provider(table):
    """A toy table as a provider."""
    return lambda prefixes: [table.row(prefix) for prefix in prefixes]
