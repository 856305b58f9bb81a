"""Where published numbers come from, in the reader's language. Pure."""

from __future__ import annotations

import re
from typing import Final

from ui.figures.words import unbroken
from ui.i18n import Catalog

PACKAGED: Final = "configuration of the packaged model"
FORMS: Final = {
    "source_text_copied": r"text part of the config\.json of (?P<of>\S+), as copied in (?P<at>\S+)",
    "source_copied_others": r"config\.json of (?P<of>\S+), as copied in (?P<at>\S+) and others",
    "source_copied": r"config\.json of (?P<of>\S+), as copied in (?P<at>\S+)",
    "source_two": r"config of (?P<of>\S+) in (?P<at>\S+) and (?P<also>\S+)",
    "source_own": r"config\.json of (?P<of>\S+)",
}
"""Sentences of the files with the figures, and their names in the catalogue."""


def source_words(source: str, t: Catalog) -> str:
    """A title stays as it is; the sentence around the name of a file is the reader's."""
    if source == PACKAGED:
        return t("limits.source_packaged")
    for key, form in FORMS.items():
        found = re.fullmatch(form, source)
        if found:
            return t(f"limits.{key}", **found.groupdict())
    return source


def dated(source: str, date: str, t: Catalog) -> str:
    """Who says so, and when it was read."""
    return t("limits.source_dated", source=source_words(source, t), date=unbroken(date))
