"""The loop: read everything so far, choose one token, append it, again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from core.decode.choose import choose
from core.decode.past import Past
from core.decode.rules import Rules, rules_for
from core.engine.cost import check_prompt
from core.engine.protocol import Engine
from core.faults import Fault
from core.model_info import ModelInfo
from core.settings import RunSpec, Settings
from core.trace import Capture, Choice, Forward, Generation, StepTrace, Stop

OnStep = Callable[[StepTrace], None]
Decide = Callable[[Forward, Settings, int, Rules], Choice]
"""How a step's token is chosen: ``slim_choice``, or something that remembers its answers."""


def slim_choice(forward: Forward, settings: Settings, step: int, rules: Rules) -> Choice:
    """The choice without its stages, so that a listed run stays small."""
    past = Past.at(forward.ids, step)
    return choose(forward.logits, settings, step=step, past=past, rules=rules, with_stages=False)


class Stopped(Exception):  # noqa: N818  (the reader's wish is no error)
    """Raised by ``on_step`` to end a run after the step it was told of."""


def stop_reason(
    info: ModelInfo, settings: Settings, prompt_length: int, generated: Sequence[int]
) -> Stop | None:
    """Why a run ends after these *generated* tokens; ``None``: it can go on.

    An end token in the prompt ends nothing. The text, prompt included, holds at most
    ``info.context`` tokens.
    """
    if generated and generated[-1] in info.end_ids:
        return "end_token"
    if len(generated) >= settings.max_new:
        return "output_limit"
    if prompt_length + len(generated) >= info.context:
        return "context_limit"
    return None


def generate(
    engine: Engine,
    prompt_ids: Sequence[int],
    settings: Settings,
    *,
    steps: int | None = None,
    capture: Capture = Capture(),
    on_step: OnStep | None = None,
    decide: Decide = slim_choice,
) -> Iterator[StepTrace]:
    """One StepTrace a turn, until the run stops or ``steps`` are made.

    The choices come without their stages, so that a listed run stays small; ``choose`` makes
    them again. ``on_step`` is called once a token, after it is chosen and before it is
    yielded; whatever it raises ends the generator, and so does a step at which the processors
    leave no token. Raises Fault for a prompt that is empty or too long, for a pattern that is
    not understood, and when there is no token even for the first step.
    """
    prompt = tuple(prompt_ids)
    check_prompt(engine.info, len(prompt))
    rules = rules_for(settings, engine.vocabulary)

    def chosen(forward: Forward, index: int) -> Choice:
        return decide(forward, settings, index, rules)

    return _turns(
        engine, prompt, settings, steps=steps, capture=capture, on_step=on_step, chosen=chosen
    )


def _turns(
    engine: Engine,
    prompt: tuple[int, ...],
    settings: Settings,
    *,
    steps: int | None,
    capture: Capture,
    on_step: OnStep | None,
    chosen: Callable[[Forward, int], Choice],
) -> Iterator[StepTrace]:
    generated: list[int] = []
    while steps is None or len(generated) < steps:
        if stop_reason(engine.info, settings, len(prompt), generated):
            return
        index = len(generated)
        forward = engine.forward((*prompt, *generated), prompt_length=len(prompt), capture=capture)
        try:
            choice = chosen(forward, index)
        except Fault as fault:
            # What was written stays; with nothing written yet the sentence is all there is.
            if fault.code == "no_token_left" and generated:
                return
            raise
        generated.append(choice.id)
        step = StepTrace(index, forward, choice)
        if on_step is not None:
            on_step(step)
        yield step


def run(
    engine: Engine,
    spec: RunSpec,
    *,
    steps: int | None = None,
    capture: Capture = Capture(),
    on_step: OnStep | None = None,
    decide: Decide = slim_choice,
) -> Generation:
    """The run that ``spec`` asks for; the first ``steps`` of it, if given.

    ``on_step`` may raise :class:`Stopped`: the run ends with that step, stopped by the user.
    Raises Fault as :func:`generate`, and for a prompt that is unreadable.
    """
    encoded = engine.vocabulary.read(spec.prompt, chat=spec.chat, literal=spec.literal)
    made: list[StepTrace] = []
    user = False

    def note(step: StepTrace) -> None:
        made.append(step)
        if on_step is not None:
            on_step(step)

    turns = generate(
        engine,
        encoded.ids,
        spec.settings,
        steps=steps,
        capture=capture,
        on_step=note,
        decide=decide,
    )
    try:
        for _ in turns:
            pass
    except Stopped:
        user = True
    return Generation(
        spec=spec,
        prompt=engine.vocabulary.tokens(encoded.ids, len(encoded.ids)),
        steps=tuple(made),
        stop=_final(engine.info, spec.settings, len(encoded.ids), made, user=user, wanted=steps),
    )


def _final(
    info: ModelInfo,
    settings: Settings,
    prompt_length: int,
    made: Sequence[StepTrace],
    *,
    user: bool,
    wanted: int | None,
) -> Stop | None:
    reason = stop_reason(info, settings, prompt_length, [step.choice.id for step in made])
    if reason is None and user:
        return "user"
    if reason is None and (wanted is None or len(made) < wanted):
        return "no_token_left"
    return reason
