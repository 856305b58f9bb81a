"""Problems that somebody can mend, each said in one sentence.

A fault carries a message id and its values, not prose: the English sentence and the
Chinese one both live in ``locales/``. ``str(fault)`` is the English one, for the command
line and for logs; a page translates ``fault.code`` with ``fault.params``.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

LONGEST = 200
"""Characters of one value in a sentence; what was typed may be a whole book."""
CATALOGUE = Path(__file__).resolve().parent.parent / "locales" / "en" / "fault.toml"


@cache
def _sentences() -> dict[str, str]:
    with CATALOGUE.open("rb") as file:
        table = tomllib.load(file)
    return {code: text for code, text in table.items() if isinstance(text, str)}


def _short(value: object) -> object:
    """The value itself, or the beginning of its text where that is endless; a whole number
    without the ``.0`` that nobody typed."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    try:
        text = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):  # an integer, or a list, that Python refuses to print
        return "…"
    return value if len(text) <= LONGEST else text[:LONGEST] + "…"


class Fault(ValueError):  # noqa: N818 - the input is at fault, not the program
    """Bad input, or something missing that the reader can provide.

    ``code`` is a key of ``locales/*/fault.toml``; ``params`` fill the
    placeholders of its sentence. A sentence says what was wrong, what is allowed, and
    what to do.
    """

    def __init__(self, code: str, **params: object) -> None:
        self.code = code
        self.params = {name: _short(value) for name, value in params.items()}
        super().__init__(_sentences()[code].format(**self.params))


class NotReady(Fault):
    """The model is being fetched or loaded, or no recorded answer exists for this input."""
