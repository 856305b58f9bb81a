"""Messages: one plain table per language, stable ids, the language passed explicitly.

``locales/<lang>/<area>.toml`` holds the messages of one area; the id of a message is
``area.key``. There is no current language in the process: threads of all users share it.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from core.faults import Fault

LOCALES: Final = Path(__file__).resolve().parent.parent / "locales"
LANGUAGES: Final = {"en": "English", "zh": "简体中文"}
"""Language code → its name in itself. The code is also the value of the page's lang."""
HTML_LANG: Final = {"en": "en", "zh": "zh-Hans"}
UNITS: Final = (
    r"[%×]|(?:[kMGT]?B|[mµ]?s|(?:[kMGT][ \u00a0])?FLOPs?|GB/s|tokens/s)\b|[\u4e00-\u9fff]"
)
"""What follows a number as its unit; in Chinese, any word that counts."""


def plain(text: str) -> str:
    """Text that Streamlit's Markdown shows as it is: no picture, link, colour, formula or icon."""
    # (A dot inside a number makes neither a list nor an address.)
    return re.sub(r"([\\`*_{}\[\]<>()#+\-!|$~:]|(?<!\d)\.|\.(?!\d))", r"\\\1", text)


def bound(text: str) -> str:
    """The same with a number and its unit on one line: a space that does not break between them."""
    return re.sub(rf"(?<=[\d}}]) (?={UNITS})|(?<=\d[ \u00a0][kMGT]) (?=FLOP)", "\u00a0", text)


class _Typed(str):
    """Text of a reader on its way into a sentence, quoted or not."""

    __slots__ = ()

    def __repr__(self) -> str:
        return plain(super().__repr__())

    def __format__(self, spec: str) -> str:
        return plain(super().__format__(spec))


@dataclass(frozen=True)
class Catalog:
    """``t("home.title")``: the message of that id in this language, placeholders filled."""

    lang: str
    messages: dict[str, str]

    def __call__(self, key: str, /, **params: object) -> str:
        text = self.messages[key]
        return bound(text.format(**params)) if params else text

    def fault(self, fault: Fault) -> str:
        """The sentence as Markdown; whatever was typed stands in it as it was typed."""
        params = {n: _Typed(v) if isinstance(v, str) else v for n, v in fault.params.items()}
        return self("fault." + fault.code, **params)

    def area(self, area: str) -> dict[str, str]:
        """All messages of one area, without the prefix: the strings for a component."""
        prefix = area + "."
        return {k[len(prefix) :]: v for k, v in self.messages.items() if k.startswith(prefix)}


@cache
def catalog(lang: str) -> Catalog:
    """The messages of ``lang``; unknown languages read English."""
    folder = LOCALES / (lang if lang in LANGUAGES else "en")
    messages: dict[str, str] = {}
    for path in sorted(folder.glob("*.toml")):
        with path.open("rb") as file:
            for key, text in tomllib.load(file).items():
                messages[f"{path.stem}.{key}"] = bound(text)
    return Catalog(folder.name, messages)


def guess(locale: str | None) -> str:
    """The language for a browser's locale (``zh-CN`` → ``zh``)."""
    return "zh" if (locale or "").lower().startswith("zh") else "en"
