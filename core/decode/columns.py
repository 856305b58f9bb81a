"""A strategy as one line: ``sample,top_p=0.9,seed=1``, for links and for the command line.

The name comes first (greedy, sample or beam), then ``key=value`` for what is not as usual.
A comma, a line break or a percent sign inside a value is percent-encoded (``%2C``, ``%0A``,
``%25``), and so is a space at its ends. ``banned`` and ``end`` may come several times, once a text;
lists are joined by ``+`` (``order=top_p+temperature``, ``force=0:42+3:7``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast
from urllib.parse import unquote

from core.compare_records import Column
from core.faults import Fault
from core.settings import (
    STRATEGIES,
    BeamSettings,
    FilterName,
    Settings,
    Strategy,
)

BEAM: Final = "beam"
NAMES: Final[tuple[str, ...]] = (*STRATEGIES, BEAM)
OFF: Final = "off"
MODEL: Final = "model"
BANNED: Final = "banned"
END: Final = "end"
TEXTS: Final = (BANNED, END)
"""Settings of several texts."""


class Key(NamedTuple):
    """How one setting is written."""

    field: str
    """Its name in the settings."""
    read: Callable[[str, str], Any]
    """(key, text) → value. Raises Fault."""
    write: Callable[[Any], str] = str


# ---------------------------------------------------------------- values


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Fault("setting_not_a_number", name=key.replace("_", "-"), value=text) from None


def _whole(key: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Fault("setting_not_whole", name=key.replace("_", "-"), value=text) from None


def _text(_key: str, text: str) -> str:
    return text


def _word(_key: str, text: str) -> str:
    return text.strip().lower().replace("-", "_")


def _order(_key: str, text: str) -> tuple[FilterName, ...]:
    named = [part.strip().replace("-", "_") for part in re.split("[+>:,]", text)]
    return tuple(cast(FilterName, name) for name in named)  # Settings refuses unknown ones


_NO_PAIR: Final = {"force": "force_not_a_pair", "roll": "roll_not_a_pair"}


def _pairs(key: str, text: str) -> tuple[tuple[int, int], ...]:
    found = []
    for part in text.split("+"):
        step, _, number = part.strip().partition(":")
        if not (step.isdecimal() and number.isdecimal() and len(part) < 40):
            raise Fault(_NO_PAIR[key], value=part)
        found.append((int(step), int(number)))
    return tuple(found)


def spell_number(value: float) -> str:
    """The shortest decimal that is this number again; whole ones without ``.0``."""
    return repr(value).removesuffix(".0")


def _spell_order(order: tuple[FilterName, ...]) -> str:
    """As many names as are needed: those left out follow in the usual order."""
    count = next(n for n in range(len(order) + 1) if Settings(order=order[:n]).order == order)
    return "+".join(order[:count])


def _spell_pairs(pairs: tuple[tuple[int, int], ...]) -> str:
    return "+".join(f"{step}:{number}" for step, number in pairs)


def _escape(text: str) -> str:
    """Percent-encode what would end the value, and spaces where they would be trimmed."""
    inner = text.strip()
    start = text.index(inner) if inner else len(text)
    stop = start + len(inner)
    return "".join(
        _percent(char)
        if char in "%,\x7f\x85\u2028\u2029" or char < " " or not start <= place < stop
        else char
        for place, char in enumerate(text)
    )


def _percent(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode(errors="replace"))


SAMPLE_KEYS: Final[dict[str, Key]] = {
    "temperature": Key("temperature", _number, spell_number),
    "top_k": Key("top_k", _whole),
    "top_p": Key("top_p", _number, spell_number),
    "min_p": Key("min_p", _number, spell_number),
    "typical_p": Key("typical_p", _number, spell_number),
    "repetition_penalty": Key("repetition_penalty", _number, spell_number),
    "presence_penalty": Key("presence_penalty", _number, spell_number),
    "frequency_penalty": Key("frequency_penalty", _number, spell_number),
    "no_repeat_ngram": Key("no_repeat_ngram", _whole),
    BANNED: Key("banned", _text),
    "pattern": Key("pattern", _text),
    "order": Key("order", _order, _spell_order),
    "seed": Key("seed", _whole),
    "roll": Key("rolls", _pairs, _spell_pairs),
    "force": Key("forced", _pairs, _spell_pairs),
}
BEAM_KEYS: Final[dict[str, Key]] = {
    "beams": Key("width", _whole),
    "length_penalty": Key("length_penalty", _number, spell_number),
    "stop": Key("stop", _word),
    "nbest": Key("nbest", _whole),
    END: Key("ends", _text),
    "kind": Key("kind", _word),
    "temperature": Key("temperature", _number, spell_number),
    "seed": Key("seed", _whole),
    "groups": Key("groups", _whole),
    "diversity": Key("diversity", _number, spell_number),
}
ALIASES: Final = {"width": "beams", "typical": "typical_p", "rolls": "roll", "forced": "force"}


def keys_of(name: str) -> tuple[str, ...]:
    """The keys that a strategy takes, in the order in which they are written."""
    return (*(BEAM_KEYS if name == BEAM else SAMPLE_KEYS), MODEL)


# ---------------------------------------------------------------- the line


def parse_column(text: str) -> Column:
    """The strategy that a line says. Raises Fault for whatever it gets wrong.

    ``-`` may stand for ``_`` in keys. ``off`` is a setting's default.
    """
    head, *parts = text.split(",")
    name = head.strip().lower()
    if not name:
        raise Fault("column_empty", allowed=", ".join(NAMES))
    if name not in NAMES:
        raise Fault("unknown_strategy", value=head.strip(), allowed=", ".join(NAMES))
    given: dict[str, Any] = {}
    for key, value in _read(name, parts):
        if key in TEXTS:
            given[key] = (*given.get(key, ()), value)
        elif key in given:
            raise Fault("column_twice", name=key)
        else:
            given[key] = value
    model = given.pop(MODEL, None)
    table = BEAM_KEYS if name == BEAM else SAMPLE_KEYS
    fields = {table[key].field: value for key, value in given.items() if value is not None}
    seeded = fields.get("seed") == 0
    if name == BEAM:
        return Column(BeamSettings(**fields), model, seeded)
    return Column(Settings(strategy=cast(Strategy, name), **fields), model, seeded)


def _read(name: str, parts: list[str]) -> Iterator[tuple[str, Any]]:
    """(key, value) of each part; the value is ``None`` where it says "off"."""
    table = BEAM_KEYS if name == BEAM else SAMPLE_KEYS
    for part in parts:
        typed, equals, rest = part.partition("=")
        key = typed.strip().replace("-", "_").lower()
        key = ALIASES.get(key, key)
        if not key and not equals:
            continue  # a comma too many
        if key not in keys_of(name):
            allowed = ", ".join(keys_of(name))
            raise Fault("column_unknown_key", key=typed.strip(), strategy=name, allowed=allowed)
        value = unquote(rest.strip())
        if not value:
            raise Fault("column_no_value", name=key)
        if key == MODEL:
            yield key, value
        else:
            off = value.strip().lower() == OFF and key not in (*TEXTS, "pattern")
            yield key, None if off else table[key].read(key, value)


def spell(column: Column) -> str:
    """The one line of a strategy: ``parse_column`` gives the same column again.

    The output limit is not part of it: that belongs to the question.
    """
    settings = column.settings
    beam = isinstance(settings, BeamSettings)
    usual = BeamSettings() if beam else Settings()
    parts = [name_of(column)]
    for key, (field, _, write) in (BEAM_KEYS if beam else SAMPLE_KEYS).items():
        value = getattr(settings, field)
        if value == getattr(usual, field) and not (field == "seed" and column.seeded):
            continue
        values = value if key in TEXTS else (value,)
        parts += [f"{key}={_escape(write(one))}" for one in values]
    if column.model is not None:
        parts.append(f"{MODEL}={_escape(column.model)}")
    return ",".join(parts)


def name_of(column: Column) -> str:
    """greedy, sample or beam."""
    settings = column.settings
    return BEAM if isinstance(settings, BeamSettings) else settings.strategy


# ---------------------------------------------------------------- ready ones

PRESETS: Final = MappingProxyType(
    {
        name: parse_column(line)
        for name, line in {
            "greedy": "greedy",
            "beam": "beam",
            "pure": "sample",
            "temperature": "sample,temperature=0.7",
            "top_k": "sample,top_k=40",
            "top_p": "sample,top_p=0.9",
            "min_p": "sample,min_p=0.1",
            "typical": "sample,typical_p=0.95",
            "temperature_top_p": "sample,temperature=0.7,top_p=0.9",
            "temperature_top_k": "sample,temperature=0.7,top_k=40",
            "repetition_penalty": "greedy,repetition_penalty=1.2",
            "no_repeat": "greedy,no_repeat_ngram=3",
            "frequency_penalty": "sample,top_p=0.9,frequency_penalty=0.5",
            "sampled_beam": "beam,kind=sampled",
            "diverse_beam": "beam,kind=diverse",
        }.items()
    }
)
"""Well-known strategies, by ids that a page can name."""
