"""Beam search: several texts are read on at once, and the best of all continuations live.

``BeamRun`` says which prefixes it wants read and is given their logits, so that whoever runs
it decides how: one by one, as one batch, or together with other searches.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Final

from numpy.typing import ArrayLike

from core.beam_records import BeamSearch, BeamStep
from core.decode.beam_diverse import diverse_options, settle_diverse
from core.decode.beam_rules import (
    Ids,
    Option,
    Question,
    State,
    hypothesis_of,
    looked_at,
    needed,
    options,
    settle,
    worse,
)
from core.decode.beam_sampled import drawn_options, settle_sampled
from core.decode.ends import end_ids as ends_of
from core.decode.generate import Stopped
from core.engine.cost import check_prompt
from core.engine.protocol import Engine
from core.engine.work import working
from core.settings import BeamSettings

Provider = Callable[[tuple[Ids, ...]], Sequence[ArrayLike]]
"""From generated prefixes to the raw next-token logits [V] after each."""
OnBeamStep = Callable[[BeamStep], None]


def _plain(rows: Sequence[ArrayLike], state: State, question: Question) -> list[Option]:
    width, ends = question.settings.width, question.end_ids
    return needed(options(rows, state.beams, looked_at(width, len(ends))), width, ends)


def _drawn(rows: Sequence[ArrayLike], state: State, question: Question) -> list[Option]:
    return drawn_options(rows, state.beams, state.index, question.settings)


_LOOK: Final = {"plain": _plain, "sampled": _drawn, "diverse": diverse_options}
_SETTLE: Final = {"plain": settle, "sampled": settle_sampled, "diverse": settle_diverse}


class BeamRun:
    """A search between two steps. It knows no model and no clock."""

    def __init__(
        self,
        settings: BeamSettings,
        end_ids: Sequence[int],
        *,
        prompt: Sequence[int] = (),
        context: int | None = None,
    ) -> None:
        room = settings.max_new if context is None else context - len(prompt)
        self.prompt = tuple(prompt)
        self.question = Question(
            settings,
            tuple(end_ids),
            min(settings.max_new, room),
            "context_limit" if room < settings.max_new else "output_limit",
        )
        self.state = State()
        self.steps: tuple[BeamStep, ...] = ()

    @property
    def wanted(self) -> tuple[Ids, ...]:
        """Generated tokens of the beams to be read next; none once the search has ended."""
        return () if self.state.stop else tuple(beam.tokens for beam in self.state.beams)

    def advance(self, rows: Sequence[ArrayLike], ms: float = 0.0) -> BeamStep:
        """Take one step with the logits after each wanted prefix. Raises Fault for bad ones."""
        return self.decide(_LOOK[self.question.settings.kind](rows, self.state, self.question), ms)

    def decide(self, looked: Sequence[Option], ms: float = 0.0) -> BeamStep:
        """The same from the options that were looked at."""
        rule = _SETTLE[self.question.settings.kind]
        self.state, step = rule(looked, self.state, self.question)
        step = replace(step, ms=ms)
        self.steps = (*self.steps, step)
        return step

    def cut(self) -> None:
        """The user ends the search: live beams are held where there is room or they are better."""
        if self.state.stop is None:
            self.state = _cut(self.state, self.question.settings)

    def result(self) -> BeamSearch:
        """The search so far."""
        settings, state = self.question.settings, self.state
        return BeamSearch(
            prompt=self.prompt,
            settings=settings,
            end_ids=self.question.end_ids,
            limit=self.question.limit,
            steps=self.steps,
            hypotheses=state.held[: settings.best],
            others=(*state.held[settings.best :], *state.displaced),
            stop=state.stop,
        )


def _cut(state: State, settings: BeamSettings) -> State:
    alive = [
        hypothesis_of(beam, "user", settings.length_penalty) for beam in state.beams if beam.tokens
    ]
    merged = sorted([*state.held, *alive], key=lambda hypothesis: -hypothesis.score)
    held = tuple(merged[: settings.width])
    gone = (h for h in state.held if h not in held)
    displaced = tuple(replace(h, loss=worse(h.score, held[-1])) for h in gone)
    return State(state.index, state.beams, held, (*displaced, *state.displaced), "user")


def search(
    provider: Provider,
    settings: BeamSettings,
    end_ids: Sequence[int],
    *,
    prompt: Sequence[int] = (),
    context: int | None = None,
    on_step: OnBeamStep | None = None,
) -> BeamSearch:
    """The search that ``settings`` ask for: a pure function of them and of the provider.

    The provider or ``on_step`` may raise :class:`Stopped`: the search ends with the last whole
    step. Anything else they raise is passed on. Raises Fault for logits that are no
    distribution.
    """
    run = BeamRun(settings, end_ids, prompt=prompt, context=context)
    try:
        while run.wanted:
            with working() as work:
                rows = provider(run.wanted)
            step = run.advance(rows, work.ms)
            if on_step is not None:
                on_step(step)
    except Stopped:
        run.cut()
    return run.result()


def provider_of(engine: Engine, prompt: Sequence[int], run: Hashable = None) -> Provider:
    """An engine that continues ``prompt``, one batch a step; ``run`` names the question."""
    start = tuple(prompt)

    def rows(prefixes: tuple[Ids, ...]) -> Sequence[ArrayLike]:
        texts = [(*start, *prefix) for prefix in prefixes]
        return list(engine.next_logits(texts, prompt_length=len(start), run=run))

    return rows


def run_of(prompt: Sequence[int], settings: BeamSettings, end_ids: Sequence[int]) -> Hashable:
    """What decides which prefixes a search reads, step by step: its name for the engine.

    Neither the length penalty nor the stopping rule is of it, so searches that differ in these
    alone share what they read.
    """
    more: tuple[float, ...] = ()
    if settings.kind == "sampled":
        more = (settings.temperature, settings.seed)
    elif settings.kind == "diverse":
        more = (settings.groups, settings.diversity)
    return "beam", tuple(prompt), settings.width, tuple(end_ids), settings.kind, *more


def beam_search(
    engine: Engine,
    prompt_ids: Sequence[int],
    settings: BeamSettings,
    *,
    on_step: OnBeamStep | None = None,
) -> BeamSearch:
    """:func:`search` on an engine. Raises Fault for a prompt that is empty or too long, and for
    end tokens that the model has not."""
    check_prompt(engine.info, len(prompt_ids))
    end_ids = ends_of(settings, engine)
    return search(
        provider_of(engine, prompt_ids, run_of(prompt_ids, settings, end_ids)),
        settings,
        end_ids,
        prompt=prompt_ids,
        context=engine.info.context,
        on_step=on_step,
    )
