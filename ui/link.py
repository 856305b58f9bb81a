"""The address bar: a run and a point of view ↔ query parameters. Pure, and total.

Ids are stable (never a localized label); every value is validated; what is wrong falls back
to its default and is named in ``notes``, so that an old or damaged link still opens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from core.faults import Fault
from core.settings import RunSpec, Settings
from core.text.reader import repair
from ui.i18n import LANGUAGES

PROMPT_CAP: Final = 500
"""Characters of a prompt (or of typed numbers) that a link carries; proxies cut longer lines."""
FORCED_CAP: Final = 100
MODEL_CAP: Final = 200
STEPS_CAP: Final = 512
"""Most steps of a run on the pages: more would not stay in memory, and be computed anew."""
OFF_CAP: Final = 64
WHYS: Final = ("gradient", "integrated")
ORDERS: Final = ("none", "shuffled")
WORDS_CAP: Final = 200
CELLS: Final = ("norm", "attention", "feed_forward", "cosine")


@dataclass(frozen=True)
class View:
    """Where the reader stands in a run."""

    lang: str = "en"
    made: int = 1
    """Steps made so far."""
    step: int = 0
    """Index of the step in view; below ``made``."""
    own: str = ""
    """Numbers typed on the Probabilities page; empty: the model's own step is shown."""
    layer: int = -1
    """Layer in view; -1: the page chooses."""
    head: int = -1
    """Head in view; -1: the mean of all heads, or the page chooses."""
    at: int = -1
    """Position in view; -1: the last one that the step has read."""
    key: int = -1
    """Position attended to, whose weight is worked out; -1: none."""
    off: tuple[tuple[int, int], ...] = ()
    """Heads switched off, as (layer, head); head -1: the whole layer."""
    why: str = ""
    """How the token is attributed to the prompt: a name of WHYS; empty: not at all."""
    pair: int = -1
    """Pair of numbers of a head that RoPE turns together; -1: the page chooses."""
    other: str = ""
    """One more tokenizer to compare with: a model's name; empty: none."""
    words: str = ""
    """Three words for a sum, one a line; empty: the page's example."""
    order: str = ""
    """What is done to the order of the tokens: a name of ORDERS; empty: nothing."""
    cell: str = ""
    """What a cell of the layer × position map shows: a name of CELLS; empty: the logit lens."""


DEFAULT: Final = RunSpec(prompt="The capital of France is", settings=Settings(top_p=0.9))


@dataclass(frozen=True)
class Opened:
    """What a link says, and the names of the parameters that could not be read."""

    spec: RunSpec
    view: View
    notes: tuple[str, ...] = ()


def _number(text: str) -> float:
    return float(text)


def _optional(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: None if text == "off" else kind(text)


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(text)
    return text == "1"


def _place(text: str) -> int:
    """A layer, head or position; whether the model has it is the page's business."""
    number = int(text)
    if not -1 <= number < 2**20:
        raise ValueError(text)
    return number


def _pairs(text: str) -> tuple[tuple[int, int], ...]:
    pairs = [part.split(":") for part in text.split(",") if part]
    if len(pairs) > FORCED_CAP:
        raise ValueError(text)
    return tuple((int(step), int(token)) for step, token in pairs)


def _off(text: str) -> tuple[tuple[int, int], ...]:
    """Pairs layer:head, each once, in their order."""
    pairs = [part.split(":") for part in text.split(",") if part]
    found = {(int(layer), _place(head)) for layer, head in pairs}
    if len(pairs) > OFF_CAP or any(not 0 <= layer < 2**20 for layer, _ in found):
        raise ValueError(text)
    return tuple(sorted(found))


def _one_of(names: tuple[str, ...]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in names:
            raise ValueError(text)
        return text

    return parse


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _steps(text: str) -> int:
    number = int(text)
    if number > STEPS_CAP:
        raise ValueError(text)
    return number


# field of Settings → (query parameter, parser)
_SETTINGS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "strategy": ("strategy", str),
    "temperature": ("t", _number),
    "top_k": ("k", _optional(int)),
    "top_p": ("p", _optional(_number)),
    "min_p": ("m", _optional(_number)),
    "order": ("order", _names),
    "seed": ("seed", int),
    "max_new": ("max", _steps),
    "forced": ("force", _pairs),
}
_PLACES: Final = ("layer", "head", "at", "key", "pair")
PARAMETERS: Final = (
    "lang", "model", "prompt", "literal", "chat", "made", "step", "own", "layer", "head", "at",
    "key", "off", "why", "pair", "words", "place", "cell", "other",
    *(name for name, _ in _SETTINGS.values()),
)  # fmt: skip


def _text(value: object) -> str:
    if value is None:
        return "off"
    if isinstance(value, tuple):
        return ",".join(":".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in value)
    return repr(value) if isinstance(value, float) else str(value)


def encode(spec: RunSpec, view: View) -> dict[str, str]:
    """The parameters that differ from the defaults; the language is always said."""
    query = {"lang": view.lang}
    if spec.model != DEFAULT.model:
        query["model"] = spec.model
    if spec.prompt != DEFAULT.prompt:
        query["prompt"] = repair(spec.prompt)[:PROMPT_CAP]
    if spec.literal:
        query["literal"] = "1"
    if spec.chat:
        query["chat"] = "1"
    for field in fields(Settings):
        value = getattr(spec.settings, field.name)
        if value != getattr(DEFAULT.settings, field.name):
            query[_SETTINGS[field.name][0]] = _text(value)
    if view.made != 1:
        query["made"] = str(view.made)
    if view.step != 0:
        query["step"] = str(view.step)
    for name in _PLACES:
        if getattr(view, name) != -1:
            query[name] = str(getattr(view, name))
    texts = {
        "off": _text(view.off),
        "why": view.why,
        "words": repair(view.words)[:WORDS_CAP],
        "other": repair(view.other)[:MODEL_CAP],
        "place": view.order,
        "cell": view.cell,
        "own": repair(view.own)[:PROMPT_CAP],
    }
    return query | {name: text for name, text in texts.items() if text}


def too_long(spec: RunSpec, view: View) -> bool:
    """Whether the link cannot carry the whole text."""
    return len(spec.prompt) > PROMPT_CAP or len(view.own) > PROMPT_CAP


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
    for field, (name, parse) in _SETTINGS.items():
        value = read(name, parse, getattr(settings, field))
        try:
            settings = replace(settings, **{field: value})
        except (Fault, TypeError):
            notes.append(name)
    spec = RunSpec(
        model=query.get("model", DEFAULT.model)[:MODEL_CAP] or DEFAULT.model,
        prompt=repair(query.get("prompt", DEFAULT.prompt))[:PROMPT_CAP],
        literal=read("literal", _flag, False),
        chat=read("chat", _flag, False),
        settings=settings,
    )
    made = min(max(read("made", int, 1), 1), settings.max_new)
    view = View(
        lang=query.get("lang", "") if query.get("lang") in LANGUAGES else lang,
        made=made,
        step=min(max(read("step", int, 0), 0), made - 1),
        own=repair(query.get("own", ""))[:PROMPT_CAP],
        off=read("off", _off, ()),
        why=read("why", _one_of(WHYS), ""),
        words=repair(query.get("words", ""))[:WORDS_CAP],
        other=repair(query.get("other", ""))[:MODEL_CAP],
        order=read("place", _one_of(ORDERS), ""),
        cell=read("cell", _one_of(CELLS), ""),
        **{name: read(name, _place, -1) for name in _PLACES},
    )
    return Opened(spec, view, tuple(dict.fromkeys(notes)))
