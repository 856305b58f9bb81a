"""A finished search judged again under other rules, without the model.

Which beams live never depends on α or on the stopping rule: only which hypotheses are held,
and when the search ends. So a stored search can be played again up to its last step, and
what would have come after it is the only thing that is not known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from core.beam_records import BeamSearch
from core.decode.beam import BeamRun
from core.decode.beam_rules import Option, settle
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

    Raises ValueError for another width or output limit: those need the model.
    """
    stored = search.settings
    if (settings.width, settings.max_new) != (stored.width, stored.max_new):
        raise ValueError("another width or output limit is another search")
    context = len(search.prompt) + search.limit if search.limit < stored.max_new else None
    run = BeamRun(settings, search.end_ids, prompt=search.prompt, context=context)
    for step in search.steps:
        looked = [Option(c.parent, c.token, c.token_logprob, c.logprob) for c in step.candidates]
        run.state, again = settle(looked, run.state, run.question)
        run.steps = (*run.steps, replace(again, ms=step.ms))
        if run.state.stop:
            break
    if search.stop == "user":
        run.cut()
    found = run.result()
    if len(found.steps) < len(search.steps):
        return Replay(found, "earlier")
    return Replay(found, "same" if found.stop or search.stop is None else "further")
