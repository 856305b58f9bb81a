"""A beam search in tables and sentences: what it cost, all its candidates, a classic's lesson."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from core.beam_records import BeamSearch, Hypothesis, Loss
from core.decode import Exhaustive
from core.decode.beam_replay import Verdict
from core.tokens import Vocabulary
from ui.figures.beam import shown_fate
from ui.figures.words import in_time, signed
from ui.i18n import Catalog, plain

CLOSE = 1e-9
"""Scores that differ by less come from the order of a sum, not from another text."""


@dataclass(frozen=True)
class Cost:
    """One way of searching, and what it took."""

    name: str
    forwards: int
    """Rows read: texts whose next token was predicted."""
    passes: int
    """Batches that read them, one a step."""
    tokens: int
    ms: float
    timed: int
    """Passes of which ``ms`` tells: the results of the others were remembered."""
    best: Hypothesis | None


def costs(
    search: BeamSearch,
    greedy: BeamSearch | None,
    every: tuple[Exhaustive, float] | None,
    t: Catalog,
) -> list[Cost]:
    """This search beside greedy decoding, and beside trying everything where that was done."""

    def of(name: str, found: BeamSearch) -> Cost:
        best = found.hypotheses[0] if found.hypotheses else None
        return Cost(
            t(f"beam_search.{name}"),
            found.forwards,
            len(found.steps),
            found.tokens_evaluated,
            found.ms,
            found.timed,
            best,
        )

    rows = [of("cost_beam", search)]
    if greedy is not None:
        rows.append(of("cost_greedy", greedy))
    if every is not None:
        all_, ms = every
        tokens = len(search.prompt) + all_.forwards - 1
        best = all_.hypotheses[0] if all_.hypotheses else None
        name = t("beam_search.cost_exhaustive")
        rows.append(Cost(name, all_.forwards, all_.passes, tokens, ms, all_.passes, best))
    return rows


def cost_table(rows: Sequence[Cost], vocabulary: Vocabulary, t: Catalog) -> pd.DataFrame:
    """The costs with the best text of each."""

    def column(key: str) -> str:
        return t(f"beam_search.{key}")

    best = [row.best for row in rows]
    return pd.DataFrame(
        {
            column("cost_search"): [row.name for row in rows],
            column("cost_forwards"): [row.forwards for row in rows],
            column("cost_passes"): [row.passes for row in rows],
            column("cost_tokens"): [row.tokens for row in rows],
            column("cost_ms"): [_time(row, t) for row in rows],
            column("cost_best"): [
                vocabulary.text(h.tokens, skip_special=True) if h else "" for h in best
            ],
            column("cost_sum"): [signed(h.logprob, 4) if h else "" for h in best],
            column("cost_score"): [signed(h.score, 4) if h else "" for h in best],
        }
    )


def _time(row: Cost, t: Catalog) -> str:
    """How long the work took, and how much of it there was: memory takes no time."""
    if not row.timed:
        return t("beam_search.cost_remembered")
    if row.timed == row.passes:
        return in_time(row.ms)
    key = "beam_search.cost_some"
    return t(key, time=in_time(row.ms), timed=row.timed, passes=row.passes)


def true_best(
    search: BeamSearch, every: Exhaustive, vocabulary: Vocabulary, t: Catalog
) -> str | None:
    """Whether the search found the best text that there is, as Markdown."""
    if not search.hypotheses or not every.hypotheses:
        return None
    best, found = every.hypotheses[0], search.hypotheses[0]
    if found.score >= best.score - CLOSE:
        return t("beam_search.true_best_found", n=f"{every.texts:,}")
    return t(
        "beam_search.true_best_missed",
        n=f"{every.texts:,}",
        text=plain(vocabulary.text(best.tokens, skip_special=True)),
        best=signed(best.score),
        found=signed(found.score),
    )


def twins_sentence(search: BeamSearch, t: Catalog) -> str | None:
    """That groups have found the same text, where the ranking holds one twice."""
    counts = Counter(h.tokens for h in search.hypotheses)
    same = [(rank, h) for rank, h in enumerate(search.hypotheses, 1) if counts[h.tokens] > 1]
    if not same:
        return None
    ranks = ", ".join(str(rank) for rank, _ in same)
    return t("beam_search.twins", ranks=ranks, different=len(counts), n=len(search.hypotheses))


def verdict_sentence(verdict: Verdict, search: BeamSearch, stored: BeamSearch, t: Catalog) -> str:
    """What other rules would have done to the search itself."""
    alpha = signed(search.settings.length_penalty, 2)
    n = len(search.steps)
    return t(f"beam_search.verdict_{verdict}", alpha=alpha, n=n, stored=len(stored.steps))


def candidates_table(search: BeamSearch, vocabulary: Vocabulary, t: Catalog) -> pd.DataFrame:
    """Every candidate of every step, kept or lost; steps and places are counted from 1."""
    rows = []
    for index, step in enumerate(search.steps):
        for place, candidate in enumerate(step.candidates):
            before = search.tokens_at((index, place))[:-1]
            rows.append(
                (
                    index + 1,
                    place + 1,
                    " ".join(map(vocabulary.label, before)),
                    vocabulary.label(candidate.token),
                    candidate.token,
                    candidate.probability,
                    candidate.logprob,
                    candidate.score,
                    candidate.ranked,
                    None if candidate.group is None else candidate.group + 1,
                    t(f"beam_search.fate_{shown_fate(step, place)}"),
                    *_lost(search, candidate.loss, vocabulary, t),
                )
            )
    names = ["step", "place", "parent", "token", "id", "p", "sum", "score"]
    names += ["ranked", "group", "fate", "reason", "to", "by"]
    frame = pd.DataFrame(rows, columns=[t(f"beam_search.col_{name}") for name in names])
    unused = {"plain": ("ranked", "group"), "sampled": ("group",), "diverse": ()}
    return frame.drop(
        columns=[t(f"beam_search.col_{name}") for name in unused[search.settings.kind]]
    )


def _lost(
    search: BeamSearch, loss: Loss | None, vocabulary: Vocabulary, t: Catalog
) -> tuple[str, str, float | None]:
    if loss is None:
        return "", "", None
    winner = " ".join(map(vocabulary.label, search.tokens_at(loss.to)))
    return t(f"beam_search.reason_{loss.reason}"), winner, loss.by


def lesson_sentence(
    name: str, searches: Sequence[BeamSearch], vocabulary: Vocabulary, t: Catalog
) -> str:
    """What a classic teaches, with the numbers of its searches, as Markdown."""
    values: dict[str, object] = {}
    best = [search.hypotheses[0] for search in searches]
    for letter, hypothesis in zip("abc", best, strict=False):
        values[letter] = plain(vocabulary.text(hypothesis.tokens, skip_special=True))
        values[f"p{letter}"] = f"{math.exp(hypothesis.logprob):.4g}"
        values[f"s{letter}"] = signed(hypothesis.score)
    values["factor"] = f"{math.exp(best[1].logprob - best[0].logprob):.2g}"
    return t(f"beam_search.lesson_{name}", **values)
