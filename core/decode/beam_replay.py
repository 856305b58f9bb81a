"""A finished search judged again under other rules, without the model.

Which beams live never depends on α or on the stopping rule: only which hypotheses are held,
and when the search ends. So a stored search can be played again up to its last step, and
what would have come after it is the only thing that is not known.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from core.beam_records import BeamCandidate, BeamSearch
from core.decode.beam import BeamRun
from core.decode.beam_rules import Option
from core.settings import BeamSettings

Verdict = Literal["same", "earlier", "further"]


@dataclass(frozen=True)
class Replay:
    search: BeamSearch
    """The stored steps under the other rules, as many as it would have made."""
    verdict: Verdict
    """"same" and "earlier": a search under these rules gives exactly ``search``, after as many
    steps as the stored one or fewer. "further": it would have gone on, so there may be better
    hypotheses than these; ``search.stop`` is then ``None``."""


def replay(search: BeamSearch, settings: BeamSettings) -> Replay:
    """``search`` under another penalty, stopping rule or n-best.

    Raises ValueError for anything else that differs, such as the width: that needs the model.
    """
    stored = search.settings
    if _kept(settings) != _kept(stored):
        raise ValueError("what differs here makes another search")
    context = len(search.prompt) + search.limit if search.limit < stored.max_new else None
    run = BeamRun(settings, search.end_ids, prompt=search.prompt, context=context)
    for step in search.steps:
        run.decide([_option(c) for c in step.candidates], step.ms)
        if run.state.stop:
            break
    if search.stop == "user":
        run.cut()
    found = run.result()
    if len(found.steps) < len(search.steps):
        return Replay(found, "earlier")
    return Replay(found, "same" if found.stop or search.stop is None else "further")


def _option(candidate: BeamCandidate) -> Option:
    c = candidate
    return Option(c.parent, c.token, c.token_logprob, c.logprob, ranked=c.ranked, group=c.group)


def _kept(settings: BeamSettings) -> dict[str, object]:
    free = ("length_penalty", "stop", "nbest")
    return {name: value for name, value in asdict(settings).items() if name not in free}
