"""The address bar: a run and a point of view ↔ query parameters. Pure, and total.

Ids are stable (never a localized label); every value is validated; what is wrong falls back
to its default and is named in ``notes``, so that an old or damaged link still opens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from core.edits.spec import join, parse_edit, respelled, spell, split
from core.engine.toy_classics import CLASSICS, limit_of
from core.faults import Fault
from core.settings import RunSpec, Settings
from core.text.reader import repair
from ui.i18n import LANGUAGES
from ui.view import FIELDS, MODEL_CAP, TEXT_CAP, Parse, View, capped, lines, pairs, spelled

STEPS_CAP: Final = 512
"""Most steps of a run on the pages: more would not stay in memory, and be computed anew."""
BANNED_CAP: Final = (20, 60)
"""Banned texts in a link, and characters of each."""
PATTERN_CAP: Final = 300

DEFAULT: Final = RunSpec(prompt="The capital of France is", settings=Settings(top_p=0.9))
_VIEW: Final = View()


@dataclass(frozen=True)
class Opened:
    """What a link says, and the names of the parameters that could not be read."""

    spec: RunSpec
    view: View
    notes: tuple[str, ...] = ()


def _optional(kind: Parse) -> Parse:
    return lambda text: None if text == "off" else kind(text)


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(text)
    return text == "1"


def _edit(text: str) -> str:
    """What is done to the weights, as it is always spelled."""
    try:
        return spell(parse_edit(text))
    except Fault:
        raise ValueError(text) from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _steps(text: str) -> int:
    number = int(text)
    if number > STEPS_CAP:
        raise ValueError(text)
    return number


# field of Settings → (query parameter, parser)
_SETTINGS: Final[dict[str, tuple[str, Parse]]] = {
    "strategy": ("strategy", str),
    "temperature": ("t", float),
    "top_k": ("k", _optional(int)),
    "top_p": ("p", _optional(float)),
    "min_p": ("m", _optional(float)),
    "typical_p": ("typical", _optional(float)),
    "repetition_penalty": ("repeat", _optional(float)),
    "presence_penalty": ("presence", _optional(float)),
    "frequency_penalty": ("frequency", _optional(float)),
    "no_repeat_ngram": ("ngram", _optional(int)),
    "banned": ("ban", lines(*BANNED_CAP)),
    "pattern": ("pattern", capped(PATTERN_CAP)),
    "order": ("order", _names),
    "seed": ("seed", int),
    "rolls": ("rolls", pairs),
    "max_new": ("max", _steps),
    "forced": ("force", pairs),
}
PARAMETERS: Final = (
    "lang", "model", "prompt", "literal", "chat", "made", "step",
    *(name for name, _, _ in FIELDS.values()),
    *(name for name, _ in _SETTINGS.values()),
)  # fmt: skip


def encode(spec: RunSpec, view: View) -> dict[str, str]:
    """The parameters that differ from the defaults; the language is always said."""
    query = {"lang": view.lang}
    model, edit = split(spec.model)
    if model != DEFAULT.model:
        query["model"] = model
    if edit:
        query["edit"] = edit
    if spec.prompt != DEFAULT.prompt:
        query["prompt"] = repair(spec.prompt)[:TEXT_CAP]
    if spec.literal:
        query["literal"] = "1"
    if spec.chat:
        query["chat"] = "1"
    for field in fields(Settings):
        value = getattr(spec.settings, field.name)
        # A classic has a limit of its own, so that of the link is always said.
        said = field.name == "max_new" and view.table in CLASSICS
        if said or value != getattr(DEFAULT.settings, field.name):
            text = "\n".join(value) if field.name == "banned" else spelled(value)
            query[_SETTINGS[field.name][0]] = text
    if view.made != 1:
        query["made"] = str(view.made)
    if view.step != 0:
        query["step"] = str(view.step)
    for name, (parameter, _, write) in FIELDS.items():
        value = getattr(view, name)
        # Branches that are too long for a link spell nothing.
        if value != getattr(_VIEW, name) and (text := write(value)):
            query[parameter] = text
    return query


def too_long(spec: RunSpec, view: View) -> bool:
    """Whether the link cannot carry the whole text."""
    return len(spec.prompt) > TEXT_CAP or len(view.own) > TEXT_CAP


def decode(query: Mapping[str, str], lang: str) -> Opened:
    """Read a link; ``lang`` is used where it names none. Never raises."""
    notes: list[str] = []

    def read(name: str, parse: Callable[[str], Any], default: Any) -> Any:
        if name not in query:
            return default
        try:
            return parse(query[name])
        except (ValueError, TypeError, OverflowError):
            notes.append(name)
            return default

    settings = DEFAULT.settings
    if query.get("table") in CLASSICS:
        settings = replace(settings, max_new=limit_of(query["table"]))
    for field, (name, parse) in _SETTINGS.items():
        value = read(name, parse, getattr(settings, field))
        try:
            settings = replace(settings, **{field: value})
        except (Fault, TypeError):
            notes.append(name)
    spec = RunSpec(
        model=join(
            respelled(query.get("model", DEFAULT.model)[:MODEL_CAP] or DEFAULT.model),
            read("edit", _edit, ""),
        ),
        prompt=repair(query.get("prompt", DEFAULT.prompt))[:TEXT_CAP],
        literal=read("literal", _flag, False),
        chat=read("chat", _flag, False),
        settings=settings,
    )
    made = min(max(read("made", int, 1), 1), settings.max_new)
    parts = {
        name: read(parameter, parse, getattr(_VIEW, name))
        for name, (parameter, parse, _) in FIELDS.items()
    }
    view = View(
        lang=query.get("lang", "") if query.get("lang") in LANGUAGES else lang,
        made=made,
        step=min(max(read("step", int, 0), 0), made - 1),
        **parts,
    )
    return Opened(spec, view, tuple(dict.fromkeys(notes)))
