"""Quality and diversity of decoding strategies, after Holtzman et al. 2020 (their table 1).

Long continuations of fixed prompts by the default model, each strategy on all of them. Control
tokens are taken out of the distribution, so that every text has the same length. What has to
come out is the paper's *ordering*: greedy and beam search repeat themselves most and have the
lowest perplexity, pure sampling the reverse, and nucleus sampling lies between.

Perplexity, repetition, distinct-n and Zipf are of all texts together; self-BLEU is of the texts
of different prompts, a mean over the samples. Repetition is judged by "repeats": 1 minus the
diversity of Su et al. 2022, the product of 1 - rep-n for n = 2, 3, 4. The share of repeated
4-grams alone (rep-4) stands beside it: below 1 % it rests on a handful of 4-grams, too few to
tell pure from nucleus sampling. Typical sampling has the 0.2 that its authors take for stories;
at 0.95 it keeps nearly always the same tokens as a nucleus of 0.95.
"""

from __future__ import annotations

import argparse
import os

os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

import math
import time
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.compare_records import Question, Text
from core.decode import compare, parse_column
from core.decode.bleu import self_bleu
from core.decode.figures import distinct, logprob, longest_repeat, perplexity, repeated, zipf
from core.engine.local import LocalEngine
from core.models.catalog import DEFAULT
from core.models.load import load

STRATEGIES = {
    "greedy": "greedy",
    "beam of 4": "beam,beams=4",
    "pure sampling": "sample",
    "top-k 40": "sample,top_k=40",
    "nucleus .95": "sample,top_p=0.95",
    "nucleus .9": "sample,top_p=0.9",
    "typical .2": "sample,typical_p=0.2",
}
JUDGED = ("greedy", "beam of 4", "pure sampling", "top-k 40", "nucleus .9")
"""Those of the paper. At 0.95 a nucleus of so small a model holds nearly all that is ever
drawn, and its texts cannot be told from pure sampling by their repetition; typical sampling is
younger than the paper. Both stand in the table."""
RESAMPLES = 200
PROMPTS = (
    "The lighthouse keeper wrote down the weather every morning, and on the first day of winter",
    "In the spring of 1847 a small group of farmers left their village and",
    "Scientists who study the deep sea have long been puzzled by",
    "The old woman opened the letter, read the first line, and",
    "When the city council met on Tuesday to discuss the new bridge,",
    "Bread is one of the oldest foods that people make. At first",
    "My grandfather never talked about the war, but once, when we were fishing,",
    "The history of the bicycle began with",
    "At the edge of the forest there was a house in which nobody had lived for years.",
    "Many people believe that learning a language is only a matter of",
)


class Endless:
    """The model without its control tokens: a text goes on until the limit."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self.vocabulary = engine.vocabulary
        self.info = replace(engine.info, end_ids=())
        size = engine.info.vocabulary
        self._control = [id for id in range(size) if engine.vocabulary.is_special(id)]

    def next_logits(
        self,
        prefixes: Sequence[Sequence[int]],
        *,
        prompt_length: int | None = None,
        run: Hashable = None,
    ) -> np.ndarray:
        rows = self._engine.next_logits(prefixes, prompt_length=prompt_length, run=run).copy()
        rows[:, self._control] = -np.inf
        return rows


@dataclass(frozen=True)
class Line:
    """One strategy over all prompts."""

    perplexity: float
    repetition: float
    rep_4: float
    loops: float
    """Share of texts whose second half is mostly a repetition of something in them."""
    distinct: tuple[float, ...]
    zipf: float
    self_bleu: float


def line_of(texts: Sequence[Text], *, whole: bool = True) -> Line:
    """``whole=False`` leaves out what costs time and is not judged."""
    ids = [text.ids for text in texts]
    samples: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for text in texts if whole else ():
        samples[text.sample].append(text.ids)
    bleu = [found for own in samples.values() if (found := self_bleu(own)) is not None]
    return Line(
        perplexity=perplexity(sum(map(logprob, texts)), sum(map(len, ids))) or 0.0,
        repetition=1 - math.prod(1 - (repeated(ids, n) or 0.0) for n in (2, 3, 4)),
        rep_4=repeated(ids, 4) or 0.0,
        loops=sum(longest_repeat(t) >= len(t) / 4 for t in ids) / len(ids) if whole else 0.0,
        distinct=tuple(distinct(ids, n) or 0.0 for n in (1, 2, 3)) if whole else (),
        zipf=(zipf(ids) or 0.0) if whole else 0.0,
        self_bleu=sum(bleu) / len(bleu) if bleu else 0.0,
    )


def written(engine: Endless, model: str, prompts: Sequence[str], tokens: int, samples: int):
    """Strategy → all its texts."""
    columns = tuple(map(parse_column, STRATEGIES.values()))
    texts: dict[str, list[Text]] = {name: [] for name in STRATEGIES}
    for number, prompt in enumerate(prompts):
        began = time.perf_counter()
        # Dice of their own for each prompt, and the same for all strategies.
        seeded = tuple(
            c if name in ("greedy", "beam of 4") else parse_column(f"{line},seed={number + 1}")
            for (name, line), c in zip(STRATEGIES.items(), columns, strict=True)
        )
        question = Question(prompt, model, seeded, samples=samples, max_new=tokens)
        *_, found = compare({model: engine}, question)
        for name, column in zip(STRATEGIES, found.columns, strict=True):
            if column.fault is not None:
                raise column.fault
            texts[name] += column.texts
        print(f"  prompt {number + 1}: {time.perf_counter() - began:.0f} s", flush=True)
    return texts


def table(lines: dict[str, Line]) -> None:
    heads = (
        "perplexity",
        "repeats",
        "rep-4",
        "loops",
        "dist-1",
        "dist-2",
        "dist-3",
        "Zipf",
        "self-BLEU",
    )
    print(f"\n{'':16}" + "".join(f"{head:>11}" for head in heads))
    for name, line in lines.items():
        numbers = (
            f"{line.perplexity:.2f}",
            f"{line.repetition:.3f}",
            f"{line.rep_4:.3f}",
            f"{line.loops:.0%}",
            *(f"{value:.3f}" for value in line.distinct),
            f"{line.zipf:.2f}",
            f"{line.self_bleu:.3f}",
        )
        print(f"{name:16}" + "".join(f"{number:>11}" for number in numbers))


def ordering(lines: dict[str, Line]) -> dict[str, bool]:
    """What the paper found, sentence by sentence, about the strategies that it compares."""
    greedy, beam, pure, top_k, nucleus = (lines[name] for name in JUDGED)
    low = max(greedy.perplexity, beam.perplexity)
    least = min(greedy.repetition, beam.repetition)
    drawn = (pure, top_k, nucleus)
    return {
        "greedy and beam search have the lowest perplexity": all(
            low < line.perplexity for line in drawn
        ),
        "greedy and beam search repeat most": all(least > line.repetition for line in drawn),
        "pure sampling has the highest perplexity": all(
            line.perplexity < pure.perplexity for line in (greedy, beam, top_k, nucleus)
        ),
        "pure sampling repeats least": all(
            line.repetition > pure.repetition for line in (greedy, beam, top_k, nucleus)
        ),
        "nucleus sampling lies between in both": (
            low < nucleus.perplexity < pure.perplexity
            and pure.repetition < nucleus.repetition < least
        ),
    }


def resampled(texts: dict[str, list[Text]], prompts: int) -> dict[str, float]:
    """In which share of RESAMPLES each sentence holds, each over prompts drawn with putting back:
    how much the answer hangs on these very prompts."""
    dice = np.random.default_rng(0)
    held: dict[str, int] = defaultdict(int)
    of_prompt: dict[str, list[list[Text]]] = {}
    for name in JUDGED:
        each = len(texts[name]) // prompts
        of_prompt[name] = [texts[name][p * each : (p + 1) * each] for p in range(prompts)]
    for _ in range(RESAMPLES):
        drawn = dice.integers(prompts, size=prompts)
        lines = {
            name: line_of([text for p in drawn for text in own[p]], whole=False)
            for name, own in of_prompt.items()
        }
        for sentence, holds in ordering(lines).items():
            held[sentence] += holds
    return {sentence: count / RESAMPLES for sentence, count in held.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--prompts", type=int, default=len(PROMPTS))
    parser.add_argument("--tokens", type=int, default=150)
    parser.add_argument("--samples", type=int, default=3)
    choice = parser.parse_args()
    engine = Endless(LocalEngine(load(choice.model, device="cpu", dtype="float32")))
    prompts = PROMPTS[: choice.prompts]
    print(
        f"{choice.model}: {len(prompts)} prompts, {choice.tokens} tokens, "
        f"{choice.samples} samples of each strategy that throws dice"
    )
    texts = written(engine, choice.model, prompts, choice.tokens, choice.samples)
    lines = {name: line_of(own) for name, own in texts.items()}
    table(lines)
    print("\nThe paper's ordering, and how often it holds when the prompts are drawn again:")
    found, often = ordering(lines), resampled(texts, len(prompts))
    for sentence, holds in found.items():
        print(f"  {'yes' if holds else 'NO '}  {often[sentence]:4.0%}  {sentence}")
    raise SystemExit(0 if all(found.values()) else 1)


if __name__ == "__main__":
    main()
