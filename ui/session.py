"""One reader's place in a run, and what each click does to it. Pure: no screen in here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from core.faults import Fault
from core.settings import PROCESSOR_NAMES, STAGE_NAMES, RunSpec
from core.trace import Stop
from ui.view import View

HISTORY: Final = 50
MAX_COUNT: Final = 8
TUNED: Final = (*STAGE_NAMES, *PROCESSOR_NAMES, "order", "strategy")
"""What a component may set: the stages, their order, and the strategy."""
LISTS: Final = {"order", "banned"}


Fork = tuple[tuple[tuple[int, int], ...], int, int]
"""Before a fork: (forced tokens, steps made, step in view)."""


@dataclass(frozen=True)
class Place:
    """A run, a view of it, and the forks that "back" can undo (newest last)."""

    spec: RunSpec
    view: View
    history: tuple[Fork, ...] = ()

    def ask(self, spec: RunSpec) -> Place:
        """Another question. A new text starts anew; new settings keep the steps made."""
        if spec == self.spec:
            return self
        same_text = (spec.model, spec.prompt, spec.literal, spec.chat) == (
            self.spec.model,
            self.spec.prompt,
            self.spec.literal,
            self.spec.chat,
        )
        if not same_text:
            fresh = replace(spec, settings=replace(spec.settings, forced=()))
            return Place(fresh, replace(self.view, made=1, step=0))
        made = min(self.view.made, spec.settings.max_new)
        view = replace(self.view, made=made, step=min(self.view.step, made - 1))
        return replace(self, spec=spec, view=view)

    def step(self, count: int, stop: Stop | None) -> Place:
        """Forward: through the steps already made, then up to ``count`` new ones."""
        view = self.view
        if view.step < view.made - 1:
            return replace(self, view=replace(view, step=view.step + 1))
        if stop is not None:
            return self
        made = min(view.made + count, self.spec.settings.max_new)
        return replace(self, view=replace(view, made=made, step=made - 1))

    def back(self) -> Place:
        """Undo the fork made here, or go one step back."""
        view = self.view
        if self.history and view.step == view.made - 1:
            forced, made, step = self.history[-1]
            if step == view.step and self.spec.settings.forced_at(step) is not None:
                settings = replace(self.spec.settings, forced=forced)
                spec, before = replace(self.spec, settings=settings), replace(view, made=made)
                return Place(spec, before, self.history[:-1])
        return self.goto(view.step - 1)

    def goto(self, step: int) -> Place:
        step = min(max(step, 0), self.view.made - 1)
        return replace(self, view=replace(self.view, step=step))

    def force(self, step: int, token: int) -> Place:
        """Take ``token`` at ``step``: the run forks from there, and back undoes it."""
        if not 0 <= step < self.view.made:
            return self
        kept = tuple(pair for pair in self.spec.settings.forced if pair[0] < step)
        settings = replace(self.spec.settings, forced=(*kept, (step, token)))
        here = (self.spec.settings.forced, self.view.made, step)
        return Place(
            replace(self.spec, settings=settings),
            replace(self.view, made=step + 1, step=step),
            (*self.history, here)[-HISTORY:],
        )

    def restart(self) -> Place:
        """The first step again, without what was forced."""
        settings = replace(self.spec.settings, forced=())
        return Place(replace(self.spec, settings=settings), replace(self.view, made=1, step=0))

    def tune(self, changes: Mapping[str, Any]) -> Place:
        """New decoding settings; illegal values raise Fault, unknown names are ignored."""
        known = {k: v for k, v in changes.items() if k in TUNED}
        for name in LISTS & known.keys():
            known[name] = _texts(known[name])
        if not isinstance(known.get("pattern", ""), str):
            raise TypeError("pattern")
        return self.ask(replace(self.spec, settings=replace(self.spec.settings, **known)))


def _texts(value: object) -> tuple[str, ...]:
    """A list of texts from the browser; a text alone is none. Raises TypeError."""
    if not isinstance(value, list | tuple) or not all(isinstance(part, str) for part in value):
        raise TypeError(type(value).__name__)
    return tuple(value)


def act(place: Place, event: object, stop: Stop | None) -> Place:
    """What a click in the browser asks for. The browser is not trusted: nonsense changes nothing.

    Events: ``{do: "step", count?}``, ``back``, ``{do: "goto", step}``, ``{do: "force", step,
    id}``, ``restart``, ``{do: "settings", order?, strategy?, temperature?, …}`` (any stage).
    """
    if not isinstance(event, Mapping):
        return place
    moves: dict[object, Callable[[], Place]] = {
        "step": lambda: place.step(min(max(int(event.get("count", 1)), 1), MAX_COUNT), stop),
        "back": place.back,
        "goto": lambda: place.goto(int(event["step"])),
        "force": lambda: place.force(int(event["step"]), int(event["id"])),
        "restart": place.restart,
        "settings": lambda: place.tune(event),
    }
    try:
        move = moves.get(event.get("do"))
        return move() if move else place
    except (Fault, KeyError, TypeError, ValueError, OverflowError):
        return place
