"""Beam search beside transformers' own: sequences and scores over a whole grid.

Widths 1 to 8, penalties -1 to 2, both stopping rules, ten prompts, both packaged models.
transformers reads its texts whole and in a batch of its own, ours goes on from stacked KV
caches, so logits differ by rounding (1e-5 to 1e-4), which can turn a near tie. A search that
differs is told with the narrowest decision that it made: how far apart the last candidate that
lived and the first that did not were, or two hypotheses next to each other in the ranking.
"""

from __future__ import annotations

import argparse
import os

os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

import time
from collections import Counter
from dataclasses import replace
from itertools import pairwise, product

import torch
from transformers import AutoModelForCausalLM

from core.beam_records import BeamSearch
from core.decode import beam_search
from core.engine.local import LocalEngine
from core.models.catalog import DEFAULT, folder_of, resolve
from core.models.load import load
from core.models.loaded import settle_end
from core.settings import STOP_RULES, BeamSettings
from tests.beams import remembering, theirs, trimmed

MODELS = (DEFAULT, "gemma3-270m")
PROMPTS = (
    "The capital of France is",
    "Once upon a time",
    "def add(a, b):",
    "Water boils at",
    "She opened the door and",
    "1, 2, 3, 4,",
    "法国的首都是",
    "Yes",
    "The best way to learn is to",
    "<|im_start|>user\nSay hi.<|im_end|>\n<|im_start|>assistant\n",
)
PENALTIES = (-1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
SCORES = 2e-4
"""How far two scores may differ: sums of logarithms in float32, from other batches."""
TIE = 5e-4
"""A decision as narrow as this (in nats) can turn by rounding."""


def greedy(model, ids: tuple[int, ...], settings: BeamSettings, ends: tuple[int, ...]):
    """transformers' greedy text; with one beam it gives no score."""
    out = model.generate(
        torch.tensor([list(ids)]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        num_beams=1,
        do_sample=False,
        max_new_tokens=settings.max_new,
        eos_token_id=list(ends) or None,
        pad_token_id=0,
    )
    return [(trimmed(out[0, len(ids) :].tolist(), ends), None)]


def narrowest(search: BeamSearch) -> float:
    """The least distance, in nats, that decided who went on or which hypothesis ranks higher."""
    gaps = [a.score - b.score for a, b in pairwise((*search.hypotheses, *search.others))]
    for step in search.steps:
        if step.hope is not None and step.bar is not None:
            gaps.append(abs(step.hope - step.bar))
        ranked = [c.logprob for c in step.candidates]
        gaps += [a - b for a, b in pairwise(ranked[: 2 * search.settings.width])]
    return min(map(abs, gaps), default=float("inf"))


def verdict(found: BeamSearch, expected) -> str:
    """ "equal", "a ghost", "a near tie", or "different"."""
    if expected is None:
        return "a ghost among theirs"
    tokens = [h.tokens for h in found.hypotheses] == [tokens for tokens, _ in expected]
    scores = len(found.hypotheses) == len(expected) and all(
        value is None or abs(h.score - value) <= SCORES * max(1, abs(value))
        for h, (_, value) in zip(found.hypotheses, expected, strict=True)
    )
    if tokens and scores:
        return "equal"
    return "a near tie turned" if narrowest(found) < TIE else "different"


def of_model(name: str, prompts: tuple[str, ...], widths: range, steps: int) -> Counter[str]:
    engine = LocalEngine(load(name, device="cpu", dtype="float32"))
    folder = folder_of(resolve(name))
    untouched = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    settle_end(untouched)
    ends, counts, began = engine.info.end_ids, Counter[str](), time.perf_counter()
    for prompt in prompts:
        ids = tuple(engine.vocabulary.encode(prompt).ids)
        with remembering(untouched):
            for width, penalty, stop in product(widths, PENALTIES, STOP_RULES):
                settings = BeamSettings(
                    width=width, length_penalty=penalty, stop=stop, max_new=steps
                )
                expected = (
                    greedy(untouched, ids, settings, ends)
                    if width == 1
                    else theirs(untouched, ids, settings, ends)
                )
                found = beam_search(engine, ids, settings)
                told = verdict(found, expected)
                counts[told] += 1
                if told in ("different", "a near tie turned"):
                    case = f"{prompt!r} width {width} penalty {penalty:g} {stop}"
                    print(f"  {told}: {case}; narrowest decision {narrowest(found):.1e}")
                assert found == beam_search(engine, ids, replace(settings)), "not the same twice"
        spent = time.perf_counter() - began
        print(f"  {prompt!r:60} {dict(counts)} {spent:.0f} s", flush=True)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", action="append", help="may be given twice (default: both)")
    parser.add_argument("--prompts", type=int, default=len(PROMPTS))
    parser.add_argument("--skip", type=int, default=0, help="of these, leave the first out")
    parser.add_argument("--widths", type=int, default=8, help="from 1 to this")
    parser.add_argument("--steps", type=int, default=8)
    choice = parser.parse_args()
    for name in choice.model or MODELS:
        print(f"\n{name}: widths 1 to {choice.widths}, penalties {PENALTIES}, both rules")
        widths = range(1, choice.widths + 1)
        counts = of_model(name, PROMPTS[choice.skip : choice.prompts], widths, choice.steps)
        print(f"{name}: {sum(counts.values())} searches: {dict(counts)}")


if __name__ == "__main__":
    main()
