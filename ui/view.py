"""Where a reader stands in a run, and how each part of it is written in a link."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from core.settings import MAX_BEAMS, MAX_PENALTY, STOP_RULES
from core.text.reader import repair
from ui import branches

TEXT_CAP: Final = 500
"""Characters of a prompt (or of typed numbers) that a link carries; proxies cut longer lines."""
PAIRS_CAP: Final = 100
MODEL_CAP: Final = 200
OFF_CAP: Final = 64
WHYS: Final = ("gradient", "integrated")
ORDERS: Final = ("none", "shuffled")
WORDS_CAP: Final = 200
CELLS: Final = ("norm", "attention", "feed_forward", "cosine")
ENDS_CAP: Final = (17, 40)
"""End tokens of a beam search in a link, and characters of each."""
KINDS: Final = ("sampled", "diverse")
DICE: Final = ("own",)
TABLE_CAP: Final = 2000
"""Characters of a toy table that a link carries."""
COLUMNS_CAP: Final = 6
COLUMN_CAP: Final = 300
"""Characters of one column's strategy."""
SAMPLES_CAP: Final = 100
DRAWS: Final = (100, 1000, 10_000)
"""How many draws of one step a reader can ask for at once."""
OPTIONS_CAP: Final = 300
"""Characters of what is set on one page of the laboratory."""
ROUNDS_CAP: Final = 10_000
NOWHERE: Final = 2**20


@dataclass(frozen=True)
class View:
    """Where the reader stands in a run, and what each page shows of it."""

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
    beams: int = 4
    """Width of the beam search."""
    alpha: float = 0.0
    """Its length penalty."""
    rule: str = "best"
    """Its stopping rule: a name of STOP_RULES."""
    nbest: int = 0
    """Hypotheses wanted of it; 0: all that are held."""
    ends: tuple[str, ...] = ()
    """What else ends its texts, as ``core.decode.ends`` reads it."""
    kind: str = ""
    """Another kind of beam search: a name of KINDS; empty: the usual one."""
    groups: int = 2
    """Groups of the diverse kind."""
    diversity: float = 0.5
    """What a token costs that an earlier group took at the same step."""
    node: tuple[int, int] = (-1, -1)
    """Candidate in view on the Beam search page: (step, place); (-1, -1): none."""
    table: str = ""
    """Toy table searched instead of the model: the name of a classic, or the table as JSON."""
    columns: tuple[str, ...] = ()
    """Strategies compared, as ``core.decode.columns`` spells them; empty: the page's first set."""
    samples: int = 1
    """Texts drawn for each of them."""
    dice: str = ""
    """"own": every column throws its own dice; empty: all share them."""
    sweep: str = ""
    """A parameter and its values on the Compare page; empty: the page chooses."""
    reference: int = 0
    """The column that the others are compared with."""
    sample: int = 0
    """Which of the texts of each column is in view."""
    branches: tuple[str, ...] = ()
    """Other ways that the run could have gone, as ``ui.branches`` spells them."""
    draws: tuple[int, int] = (0, 0)
    """(draws of the step in view, how often that many were thrown before); 0 draws: none."""
    kv: str = ""
    """What the reader set on the KV cache page, as ``ui.lab_options`` spells it; empty: nothing."""
    precision: str = ""
    """The same of the Precision page,"""
    pruning: str = ""
    """of the Pruning page,"""
    parallel: str = ""
    """of the Parallel page,"""
    limits: str = ""
    """of the Limits page,"""
    training: str = ""
    """and of the Training page."""


# ---------------------------------------------------------------- from text, and back

Parse = Callable[[str], Any]
Spell = Callable[[Any], str]


def place(text: str) -> int:
    """A layer, head or position; whether the model has it is the page's business."""
    number = int(text)
    if not -1 <= number < NOWHERE:
        raise ValueError(text)
    return number


def within(low: int, high: int) -> Parse:
    def parse(text: str) -> int:
        number = int(text)
        if not low <= number <= high:
            raise ValueError(text)
        return number

    return parse


def real(low: float, high: float) -> Parse:
    def parse(text: str) -> float:
        number = float(text)
        if not (math.isfinite(number) and low <= number <= high):
            raise ValueError(text)
        return number

    return parse


def pairs(text: str) -> tuple[tuple[int, int], ...]:
    """``step:number`` pairs, separated by commas."""
    parts = [part.split(":") for part in text.split(",") if part]
    if len(parts) > PAIRS_CAP:
        raise ValueError(text)
    return tuple((int(step), int(number)) for step, number in parts)


def off(text: str) -> tuple[tuple[int, int], ...]:
    """Pairs layer:head, each once, in their order."""
    parts = [part.split(":") for part in text.split(",") if part]
    found = {(int(layer), place(head)) for layer, head in parts}
    if len(parts) > OFF_CAP or any(not 0 <= layer < NOWHERE for layer, _ in found):
        raise ValueError(text)
    return tuple(sorted(found))


def node(text: str) -> tuple[int, int]:
    step, _, number = text.partition(":")
    return place(step), place(number)


def draws(text: str) -> tuple[int, int]:
    count, _, before = text.partition(":")
    if int(count) not in DRAWS or not 0 <= int(before or 0) < ROUNDS_CAP:
        raise ValueError(text)
    return int(count), int(before or 0)


def one_of(names: tuple[str, ...]) -> Parse:
    def parse(text: str) -> str:
        if text not in names:
            raise ValueError(text)
        return text

    return parse


def capped(most: int) -> Parse:
    """Any text, cut; broken characters are replaced."""
    return lambda text: repair(text)[:most]


def lines(count: int, most: int) -> Parse:
    """Texts, one a line; none of them empty."""

    def parse(text: str) -> tuple[str, ...]:
        found = tuple(part for part in repair(text).split("\n") if part)
        if len(found) > count or any(len(part) > most for part in found):
            raise ValueError(text)
        return found

    return parse


def spelled(value: object) -> str:
    """A setting as text: "off" for None, pairs as a:b, lists with commas."""
    if value is None:
        return "off"
    if isinstance(value, tuple):
        return ",".join(":".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in value)
    return repr(value) if isinstance(value, float) else str(value)


def joined(value: tuple[str, ...]) -> str:
    return "\n".join(value)


def colon(value: tuple[int, int]) -> str:
    return ":".join(map(str, value))


# field of View → (query parameter, parser, how it is written); made, step and lang are apart
FIELDS: Final[dict[str, tuple[str, Parse, Spell]]] = {
    "layer": ("layer", place, spelled),
    "head": ("head", place, spelled),
    "at": ("at", place, spelled),
    "key": ("key", place, spelled),
    "pair": ("pair", place, spelled),
    "off": ("off", off, spelled),
    "why": ("why", one_of(WHYS), str),
    "words": ("words", capped(WORDS_CAP), capped(WORDS_CAP)),
    "other": ("other", capped(MODEL_CAP), capped(MODEL_CAP)),
    "order": ("place", one_of(ORDERS), str),
    "cell": ("cell", one_of(CELLS), str),
    "own": ("own", capped(TEXT_CAP), capped(TEXT_CAP)),
    "beams": ("beams", within(1, MAX_BEAMS), spelled),
    "alpha": ("alpha", real(-MAX_PENALTY, MAX_PENALTY), spelled),
    "rule": ("rule", one_of(STOP_RULES), str),
    "nbest": ("nbest", within(0, MAX_BEAMS), spelled),
    "ends": ("end", lines(*ENDS_CAP), joined),
    "kind": ("kind", one_of(KINDS), str),
    "groups": ("groups", within(1, MAX_BEAMS), spelled),
    "diversity": ("diversity", real(0, 100), spelled),
    "node": ("node", node, colon),
    "table": ("table", capped(TABLE_CAP), capped(TABLE_CAP)),
    "columns": ("columns", lines(COLUMNS_CAP, COLUMN_CAP), joined),
    "samples": ("samples", within(1, SAMPLES_CAP), spelled),
    "dice": ("dice", one_of(DICE), str),
    "sweep": ("sweep", capped(COLUMN_CAP), capped(COLUMN_CAP)),
    "reference": ("ref", within(0, COLUMNS_CAP - 1), spelled),
    "sample": ("text", within(0, SAMPLES_CAP - 1), spelled),
    "branches": ("branches", branches.from_link, branches.to_link),
    "draws": ("draws", draws, colon),
    **{
        page: (page, capped(OPTIONS_CAP), capped(OPTIONS_CAP))
        for page in ("kv", "precision", "pruning", "parallel", "limits", "training")
    },
}
