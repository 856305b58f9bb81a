"""The other ways that a run could have gone: kept where a fork leaves a path. Pure.

A branch is a path through the same prompt: the tokens forced, the dice thrown again, the seed.
The other settings are the run's own, so a slider changes all branches alike. Spelled
``made;seed;force;rolls;name`` in the link, as ``5;0;2:345+4:12;3:1;Paris``.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from core.faults import Fault
from core.settings import MAX_NEW_LIMIT, Settings
from core.text.reader import repair

Pairs = tuple[tuple[int, int], ...]

BRANCHES_CAP: Final = 12
"""Branches kept; the oldest without a name of the reader's own goes first."""
BRANCH_CAP: Final = 300
"""Characters of one branch in a link."""
LINK_CAP: Final = 1500
"""Characters of all branches in a link."""
NAME_CAP: Final = 40


@dataclass(frozen=True)
class Branch:
    """One path. Raises Fault for forced tokens, rolls or seeds that no run can have."""

    name: str = ""
    forced: Pairs = ()
    rolls: Pairs = ()
    seed: int = 0
    made: int = 1
    """Steps made when the path was left."""

    def __post_init__(self) -> None:
        checked = Settings(forced=self.forced, rolls=self.rolls, seed=self.seed)
        object.__setattr__(self, "forced", checked.forced)
        object.__setattr__(self, "rolls", checked.rolls)
        object.__setattr__(self, "name", clean(self.name))
        if not 1 <= self.made <= MAX_NEW_LIMIT:
            raise Fault("setting_out_of_range", name="made", value=self.made, low=1, high=1024)

    @classmethod
    def of(cls, settings: Settings, made: int, name: str = "") -> Branch:
        """The path that a run takes under ``settings``."""
        return cls(name, settings.forced, settings.rolls, settings.seed, made)

    @property
    def path(self) -> tuple[Pairs, Pairs, int]:
        """What tells two branches apart."""
        return self.forced, self.rolls, self.seed

    def settings(self, base: Settings) -> Settings:
        """The run's settings on this path."""
        return replace(base, forced=self.forced, rolls=self.rolls, seed=self.seed)


def clean(name: str) -> str:
    """A name on one line, cut; broken and control characters become spaces."""
    shown = "".join(char if char.isprintable() else " " for char in repair(name))
    return " ".join(shown.split())[:NAME_CAP].strip()


# ---------------------------------------------------------------- spelled


def _pairs(pairs: Pairs) -> str:
    return "+".join(f"{step}:{number}" for step, number in pairs)


def _read_pairs(text: str) -> Pairs:
    parts = [part.split(":") for part in text.split("+") if part]
    return tuple((int(step), int(number)) for step, number in parts)


def spell(branch: Branch) -> str:
    head = (str(branch.made), str(branch.seed), _pairs(branch.forced), _pairs(branch.rolls))
    return ";".join((*head, branch.name))


def parse(text: str) -> Branch:
    """Raises ValueError for what no branch is spelled like."""
    made, seed, forced, rolls, name = text.split(";", 4)
    try:
        return Branch(name, _read_pairs(forced), _read_pairs(rolls), int(seed), int(made))
    except Fault as fault:
        raise ValueError(text) from fault


def read(lines: Sequence[str]) -> tuple[Branch, ...]:
    """The branches of a place; what cannot be read is left out."""
    found = []
    for line in lines:
        try:
            found.append(parse(line))
        except ValueError:
            continue
    return tuple(found)


def from_link(text: str) -> tuple[str, ...]:
    """The lines of a link. Raises ValueError for any that is no branch, or too many."""
    lines = [line for line in repair(text).split("\n") if line]
    if len(lines) > BRANCHES_CAP or any(len(line) > BRANCH_CAP for line in lines):
        raise ValueError(text)
    return tuple(dict.fromkeys(spell(parse(line)) for line in lines))


def fitting(lines: Sequence[str]) -> tuple[str, ...]:
    """Those that a link carries: the newest, up to its size."""
    kept: list[str] = []
    room = LINK_CAP
    for line in reversed(lines):
        if len(line) > BRANCH_CAP:
            continue
        room -= len(line) + 1
        if room < 0:
            break
        kept.insert(0, line)
    return tuple(kept)


def to_link(lines: Sequence[str]) -> str:
    return "\n".join(fitting(lines))


# ---------------------------------------------------------------- kept, renamed, dropped


def _is_given(name: str) -> bool:
    """Whether the name is one of :func:`free_name`, and not the reader's own."""
    return name == "" or (name[0] in string.ascii_uppercase and (name[1:] or "0").isdecimal())


def free_name(branches: Sequence[Branch]) -> str:
    """The first letter that names no branch yet."""
    used = {branch.name for branch in branches}
    for round_ in range(BRANCHES_CAP + 1):
        for letter in string.ascii_uppercase:
            name = f"{letter}{round_ or ''}"
            if name not in used:
                return name
    return ""


def keep(lines: Sequence[str], branch: Branch) -> tuple[str, ...]:
    """With ``branch`` among them; a path that is there already only grows longer.

    Without room the oldest goes whose name nobody chose, else the oldest.
    """
    found = list(read(lines))
    for i, other in enumerate(found):
        if other.path == branch.path:
            found[i] = replace(other, made=max(other.made, branch.made))
            return tuple(map(spell, found))
    found.append(branch if branch.name else replace(branch, name=free_name(found)))
    while len(found) > BRANCHES_CAP:
        unnamed = [i for i, other in enumerate(found[:-1]) if _is_given(other.name)]
        del found[unnamed[0] if unnamed else 0]
    return tuple(map(spell, found))


def changed(
    lines: Sequence[str], index: int, change: Callable[[Branch], Branch | None]
) -> tuple[str, ...]:
    """One branch renamed or, where ``change`` gives ``None``, dropped."""
    found: list[Branch | None] = list(read(lines))
    if not 0 <= index < len(found):
        return tuple(lines)
    here = found[index]
    found[index] = change(here) if here else None
    return tuple(spell(branch) for branch in found if branch is not None)
