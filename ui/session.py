"""One reader's place in a run, and what each click does to it. Pure: no screen in here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from core.compare_records import Column
from core.decode.columns import spell
from core.faults import Fault
from core.settings import PROCESSOR_NAMES, STAGE_NAMES, RunSpec, Settings
from core.trace import Stop
from ui.branches import Branch, Pairs, changed, keep, read
from ui.view import COLUMNS_CAP, View

HISTORY: Final = 50
MAX_COUNT: Final = 8
TUNED: Final = (*STAGE_NAMES, *PROCESSOR_NAMES, "order", "strategy")
"""What a component may set: the stages, their order, and the strategy."""
LISTS: Final = {"order", "banned"}


@dataclass(frozen=True)
class Fork:
    """What a fork left behind, for "back"."""

    forced: Pairs
    rolls: Pairs
    made: int
    step: int
    branches: tuple[str, ...]
    """Those before the fork …"""
    kept: tuple[str, ...]
    """… and with the path that it left."""


@dataclass(frozen=True)
class Place:
    """A run, a view of it, and the forks that "back" can undo (newest last)."""

    spec: RunSpec
    view: View
    history: tuple[Fork, ...] = ()

    def ask(self, spec: RunSpec) -> Place:
        """Another question. A new text starts anew; new settings keep the steps made, and a
        new seed throws every step's dice once."""
        if spec == self.spec:
            return self
        same_text = (spec.model, spec.prompt, spec.literal, spec.chat) == (
            self.spec.model,
            self.spec.prompt,
            self.spec.literal,
            self.spec.chat,
        )
        if not same_text:
            fresh = replace(spec, settings=replace(spec.settings, forced=(), rolls=()))
            return Place(fresh, replace(self.view, made=1, step=0, branches=()))
        if spec.settings.seed != self.spec.settings.seed:
            spec = replace(spec, settings=replace(spec.settings, rolls=()))
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
        view, settings = self.view, self.spec.settings
        last = self.history[-1] if self.history else None
        if last and view.step == view.made - 1 == last.step and _forked(settings, last.step):
            before = replace(settings, forced=last.forced, rolls=last.rolls)
            # Only what the fork added goes: branches may have been named or dropped since.
            added = {line for line in last.kept if line not in last.branches}
            rest = tuple(line for line in view.branches if line not in added)
            same = view.branches == last.kept
            there = replace(view, made=last.made, branches=last.branches if same else rest)
            return Place(replace(self.spec, settings=before), there, self.history[:-1])
        return self.goto(view.step - 1)

    def goto(self, step: int) -> Place:
        step = min(max(step, 0), self.view.made - 1)
        return replace(self, view=replace(self.view, step=step))

    def force(self, step: int, token: int) -> Place:
        """Take ``token`` at ``step``: the run forks from there, and back undoes it."""
        if not 0 <= step < self.view.made:
            return self
        settings = self.spec.settings
        forced = (*_before(settings.forced, step), (step, token))
        return self._fork(step, forced, _before(settings.rolls, step + 1))

    def reroll(self, step: int) -> Place:
        """Throw the dice of ``step`` again: a fork as well, and back undoes it."""
        settings = self.spec.settings
        if settings.is_greedy or not 0 <= step < self.view.made:
            return self
        again = (step, settings.roll_at(step) + 1)
        return self._fork(
            step, _before(settings.forced, step), (*_before(settings.rolls, step), again)
        )

    def _fork(self, step: int, forced: Pairs, rolls: Pairs) -> Place:
        """The path that is left is kept as a branch."""
        settings = replace(self.spec.settings, forced=forced, rolls=rolls)
        if settings == self.spec.settings and step == self.view.made - 1:
            return self
        left, view = self.spec.settings, self.view
        kept = keep(view.branches, Branch.of(left, view.made))
        here = Fork(left.forced, left.rolls, view.made, step, view.branches, kept)
        return Place(
            replace(self.spec, settings=settings),
            replace(view, made=step + 1, step=step, branches=kept),
            (*self.history, here)[-HISTORY:],
        )

    def reseed(self, seed: int) -> Place:
        """Other dice at every step; none of them thrown again yet."""
        return self.ask(replace(self.spec, settings=replace(self.spec.settings, seed=seed)))

    def restart(self) -> Place:
        """The first step again, without what was forced and thrown again; that is kept."""
        settings = replace(self.spec.settings, forced=(), rolls=())
        kept = self if settings == self.spec.settings else self.keep()
        view = replace(kept.view, made=1, step=0)
        return Place(replace(self.spec, settings=settings), view)

    def keep(self) -> Place:
        """Have the path in view among the branches."""
        now = Branch.of(self.spec.settings, self.view.made)
        return self._with(keep(self.view.branches, now))

    def open(self, index: int, step: int) -> Place:
        """Go to a branch, at one of its steps; the path that is left is kept."""
        wanted = read(self.view.branches)[index]
        lines = self.view.branches
        if wanted.path != Branch.of(self.spec.settings, 1).path:
            lines = self.keep().view.branches
        made = min(wanted.made, self.spec.settings.max_new)
        view = replace(self.view, made=made, step=min(max(step, 0), made - 1), branches=lines)
        return Place(replace(self.spec, settings=wanted.settings(self.spec.settings)), view)

    def rename(self, index: int, name: str) -> Place:
        return self._with(changed(self.view.branches, index, lambda b: replace(b, name=name)))

    def drop(self, index: int) -> Place:
        return self._with(changed(self.view.branches, index, lambda _: None))

    def drop_all(self) -> Place:
        return self._with(())

    def compare(self, indices: Sequence[int]) -> Place:
        """The path in view and branches as columns of the Compare page, each told once."""
        settings = self.spec.settings
        branches = read(self.view.branches)
        paths = [settings, *(branches[i].settings(settings) for i in indices)]
        # Paths of different seeds keep them, a 0 as well, or they would not be these paths.
        mixed = len({path.seed for path in paths}) > 1
        lines = (spell(Column(path, seeded=mixed and path.seed == 0)) for path in paths)
        columns = tuple(dict.fromkeys(lines))[:COLUMNS_CAP]
        return replace(self, view=replace(self.view, columns=columns, samples=1, dice=""))

    def _with(self, branches: tuple[str, ...]) -> Place:
        return replace(self, view=replace(self.view, branches=branches))

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


def _before(pairs: Pairs, step: int) -> Pairs:
    return tuple(pair for pair in pairs if pair[0] < step)


def _forked(settings: Settings, step: int) -> bool:
    return settings.forced_at(step) is not None or settings.roll_at(step) > 0


def _index(value: Any) -> int:
    """Of a branch; a negative one would count from the end. Raises ValueError."""
    index = int(value)
    if index < 0:
        raise ValueError(index)
    return index


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value


def act(place: Place, event: object, stop: Stop | None) -> Place:
    """What a click in the browser asks for. The browser is not trusted: nonsense changes nothing.

    Events: ``{do: "step", count?}``, ``back``, ``{do: "goto", step}``, ``{do: "force", step,
    id}``, ``{do: "reroll", step}``, ``{do: "seed", seed}`` (a text, for browsers round large
    numbers), ``restart``, ``{do: "settings", order?, strategy?, temperature?, …}`` (any stage);
    of branches: ``keep``, ``{do: "open", branch, step?}``, ``{do: "rename", branch, name}``,
    ``{do: "drop", branch}``, ``drop_all``, ``{do: "compare", branches}``.
    """
    if not isinstance(event, Mapping):
        return place
    moves: dict[object, Callable[[], Place]] = {
        "step": lambda: place.step(min(max(int(event.get("count", 1)), 1), MAX_COUNT), stop),
        "back": place.back,
        "goto": lambda: place.goto(int(event["step"])),
        "force": lambda: place.force(int(event["step"]), int(event["id"])),
        "reroll": lambda: place.reroll(int(event["step"])),
        "seed": lambda: place.reseed(int(_text(event["seed"]))),
        "keep": place.keep,
        "open": lambda: place.open(_index(event["branch"]), int(event.get("step", 0))),
        "rename": lambda: place.rename(_index(event["branch"]), _text(event["name"])),
        "drop": lambda: place.drop(_index(event["branch"])),
        "compare": lambda: place.compare([_index(i) for i in event["branches"]]),
        "drop_all": place.drop_all,
        "restart": place.restart,
        "settings": lambda: place.tune(event),
    }
    try:
        move = moves.get(event.get("do"))
        return move() if move else place
    except (Fault, LookupError, TypeError, ValueError, OverflowError):
        return place
