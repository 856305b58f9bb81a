"""``run --strategy beam``: a search, as JSON or for people."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from core.amounts import counted
from core.beam_records import BeamSearch, BeamStep, Hypothesis, Node
from core.cli import arguments, show
from core.cli.output import check_target, write_json
from core.cli.records import token_record
from core.decode import beam_search
from core.engine.protocol import Engine
from core.engine.store import build
from core.faults import Fault
from core.models.catalog import resolve
from core.settings import BeamSettings
from core.tokens import Vocabulary, visible

STOPS = {
    "full": "as many texts as beams are complete",
    "no_beam_can_win": "no live beam can still win",
    "no_beam_left": "every beam has ended",
    "output_limit": "the output limit is reached",
    "context_limit": "the context is full",
    "user": "you stopped it",
}


def run(typed: argparse.Namespace) -> None:
    """Search from the prompt. Raises Fault for what the reader can mend."""
    settings = arguments.beam_settings_of(typed)
    arguments.top(typed)
    check_target(typed.json)
    with show.Progress(typed.model) as progress:
        engine = build(resolve(typed.model), progress)
    ids = engine.vocabulary.read(typed.prompt, chat=typed.chat, literal=typed.literal).ids
    if not ids:
        raise Fault("empty_prompt")
    with show.Interrupt() as interrupt:
        found = beam_search(engine, ids, settings, on_step=interrupt.after(None))
    if typed.json:
        write_json(search_record(found, typed.model, engine), typed.json)
    else:
        listing(found, engine.vocabulary)


def search_record(search: BeamSearch, model: str, engine: Engine) -> dict[str, Any]:
    """Everything: the hypotheses, and the candidates kept and lost at each step."""
    vocabulary, count = engine.vocabulary, len(search.prompt)
    prompt = [token_record(token) for token in vocabulary.tokens(search.prompt, count)]
    return {
        "model": model,
        "settings": {"strategy": arguments.BEAM, **settings_record(search.settings)},
        **({"end_ids": list(search.end_ids)} if search.settings.ends else {}),
        "prompt": prompt,
        "hypotheses": [hypothesis_record(h, search, vocabulary) for h in search.hypotheses],
        "others": [hypothesis_record(h, search, vocabulary) for h in search.others],
        "steps": [step_record(step, search, vocabulary) for step in search.steps],
        "stop": search.stop,
        "forwards": search.forwards,
        "tokens_evaluated": search.tokens_evaluated,
        "ms": search.ms,
    }


def settings_record(settings: BeamSettings) -> dict[str, Any]:
    """What was asked; what belongs to another kind of search is left out."""
    every = dataclasses.asdict(settings)
    own = {"plain": (), "sampled": ("temperature", "seed"), "diverse": ("groups", "diversity")}
    apart = {"kind", "temperature", "seed", "groups", "diversity"}
    apart |= set() if settings.ends else {"ends"}
    kept = {name: value for name, value in every.items() if name not in apart}
    kind = {} if settings.kind == "plain" else {"kind": settings.kind}
    return kept | kind | {name: every[name] for name in own[settings.kind]}


def hypothesis_record(
    hypothesis: Hypothesis, search: BeamSearch, vocabulary: Vocabulary
) -> dict[str, Any]:
    return {
        **_marks(hypothesis.ranked, hypothesis.group),
        "tokens": list(hypothesis.tokens),
        "text": vocabulary.text(hypothesis.tokens, skip_special=True),
        "logprob": hypothesis.logprob,
        "score": hypothesis.score,
        "finished": hypothesis.finished,
        "end": hypothesis.end,
        "steps": [
            {"index": step, "candidate": place, **_candidate(search, (step, place), vocabulary)}
            for step, place in enumerate(hypothesis.path)
        ],
    }


def step_record(step: BeamStep, search: BeamSearch, vocabulary: Vocabulary) -> dict[str, Any]:
    rows = [
        _candidate(search, (step.index, place), vocabulary) for place in range(len(step.candidates))
    ]
    for row, candidate in zip(rows, step.candidates, strict=True):
        loss = candidate.loss
        row["kept"] = loss is None
        row["fate"] = candidate.fate
        row["reason"] = loss.reason if loss else None
        row["lost_to"] = {"step": loss.to[0], "candidate": loss.to[1]} if loss else None
        row["lost_by"] = loss.by if loss else None
    return {
        "index": step.index,
        "beams": step.beams,
        "candidates": rows,
        "live": list(step.live),
        "finished": list(step.finished),
        "displaced": [{"step": s, "candidate": c} for s, c in step.displaced],
        "hope": step.hope,
        "bar": step.bar,
        "ms": step.ms,
    }


def _candidate(search: BeamSearch, node: Node, vocabulary: Vocabulary) -> dict[str, Any]:
    candidate = search.steps[node[0]].candidates[node[1]]
    parent = search.steps[node[0] - 1].live[candidate.parent] if node[0] else None
    return {
        "id": candidate.token,
        "text": vocabulary.text([candidate.token]),
        "parent": parent,
        "probability": candidate.probability,
        "token_logprob": candidate.token_logprob,
        "logprob": candidate.logprob,
        "score": candidate.score,
        **_marks(candidate.ranked, candidate.group),
    }


def _marks(ranked: float | None, group: int | None) -> dict[str, Any]:
    """What only some kinds of search have."""
    marks = {"ranked": ranked, "group": group}
    return {name: value for name, value in marks.items() if value is not None}


def listing(search: BeamSearch, vocabulary: Vocabulary) -> None:
    """The final ranking, with what was held, what it cost and why it ended."""
    print(f"{'rank':>4}{'score':>11}{'Σ ln p':>11}  {'end':<14}text")
    for place, hypothesis in enumerate(search.hypotheses, 1):
        text = visible(vocabulary.text(hypothesis.tokens))
        end = hypothesis.end.replace("_", " ")
        print(f"{place:>4}{hypothesis.score:>11.4f}{hypothesis.logprob:>11.4f}  {end:<14}{text}")
    print(
        f"\n{counted(len(search.prompt), 'prompt token')}, {counted(len(search.steps), 'step')}; "
        f"{STOPS[search.stop or 'user']}."
    )
    print(
        f"{counted(search.forwards, 'row')} read in {len(search.steps)} passes, "
        f"{counted(search.tokens_evaluated, 'token')} evaluated, "
        f"{search.ms / 1000:.2f} s"
    )
