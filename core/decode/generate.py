"""The loop: read everything so far, choose one token, append it, again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from core.decode.choose import choose
from core.engine.cost import check_prompt
from core.engine.protocol import Engine
from core.model_info import ModelInfo
from core.settings import RunSpec, Settings
from core.trace import Capture, Choice, Forward, Generation, StepTrace, Stop

OnStep = Callable[[StepTrace], None]
Decide = Callable[[Forward, Settings, int], Choice]
"""How a step's token is chosen: ``slim_choice``, or something that remembers its answers."""


def slim_choice(forward: Forward, settings: Settings, step: int) -> Choice:
    """The choice without its stages, so that a listed run stays small."""
    return choose(forward.logits, settings, step=step, with_stages=False)


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
    yielded; whatever it raises ends the generator. Raises Fault for a prompt that is empty
    or too long.
    """
    prompt = tuple(prompt_ids)
    check_prompt(engine.info, len(prompt))
    return _turns(
        engine, prompt, settings, steps=steps, capture=capture, on_step=on_step, decide=decide
    )


def _turns(
    engine: Engine,
    prompt: tuple[int, ...],
    settings: Settings,
    *,
    steps: int | None,
    capture: Capture,
    on_step: OnStep | None,
    decide: Decide,
) -> Iterator[StepTrace]:
    generated: list[int] = []
    while steps is None or len(generated) < steps:
        if stop_reason(engine.info, settings, len(prompt), generated):
            return
        index = len(generated)
        forward = engine.forward((*prompt, *generated), prompt_length=len(prompt), capture=capture)
        choice = decide(forward, settings, index)
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
    Raises Fault for a prompt that is empty, too long or unreadable.
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
        stop=_final(engine.info, spec.settings, len(encoded.ids), made, user),
    )


def _final(
    info: ModelInfo, settings: Settings, prompt_length: int, made: Sequence[StepTrace], user: bool
) -> Stop | None:
    reason = stop_reason(info, settings, prompt_length, [step.choice.id for step in made])
    return "user" if user and reason is None else reason
