"""The Tokens page's text: chips, statistics, table. Pure: records in, plain data out."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, Final

import pandas as pd
import regex

from core.tokens import Vocabulary
from core.trace import Generation, Token
from core.visible import visible
from ui.figures.strip import groups, whole
from ui.i18n import HTML_LANG, Catalog

MOST_HEAD: Final = 1000
MOST_TAIL: Final = 200
"""Chips drawn of a longer text: so many from its start and from its end."""
_CLUSTER: Final = regex.compile(r"\X")


def tokens_data(
    run: Generation, tokens: Sequence[Token], vocabulary: Vocabulary, selected: int, t: Catalog
) -> dict[str, Any]:
    """What the component draws: every token with all that is known of it.

    ``tokens`` are the prompt's and the generated ones, grouped over the whole text.
    """
    shown, gap = _shown(tokens)
    chips = [_chip(group) for group in groups(shown)]
    return {
        "lang": HTML_LANG[t.lang],
        "strings": t.area("tokens"),
        "chips": chips,
        "names": names_of("".join(chip["text"] for chip in chips)),
        "gap": gap,
        "count": len(tokens),
        "prompt": len(run.prompt),
        "selected": selected,
        "stats": statistics(run, vocabulary),
    }


def _shown(tokens: Sequence[Token]) -> tuple[list[Token], dict[str, int] | None]:
    """The tokens to draw, and where the others are left out (never inside a character)."""
    if len(tokens) <= MOST_HEAD + MOST_TAIL:
        return list(tokens), None
    head = tokens[MOST_HEAD].group[0] or MOST_HEAD
    tail = tokens[len(tokens) - MOST_TAIL].group[0]
    return [*tokens[:head], *tokens[tail:]], {"at": head, "hidden": tail - head}


def _chip(group: Sequence[Token]) -> dict[str, Any]:
    """One character or more that belong together, and the tokens that make them."""
    data = b"".join(token.bytes for token in group)
    return {
        "label": whole(group),
        "text": data.decode(errors="ignore"),
        "parts": [_part(token) for token in group],
    }


def _part(token: Token) -> dict[str, Any]:
    return {
        "position": token.position,
        "id": token.id,
        "label": token.label,
        "text": token.text,
        "piece": visible(token.piece),
        "hex": token.bytes.hex(" ").upper().split(),
        "span": list(token.span),
        "special": token.special,
        "generated": token.source == "generated",
    }


def names_of(text: str) -> dict[str, str]:
    """The Unicode name of each different character, as far as it has one."""
    return {char: unicodedata.name(char, "") for char in sorted(set(text))}


def statistics(run: Generation, vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """The counts for the prompt, the generated text, and both together.

    Characters are what a reader calls so (grapheme clusters). Control tokens are no text: they
    are counted as tokens, and left out of everything else.
    """
    prompt = tuple(token.id for token in run.prompt)
    parts = {"prompt": prompt, "generated": run.ids[len(prompt) :], "together": run.ids}
    return [{"of": name, **_counts(ids, vocabulary)} for name, ids in parts.items() if ids]


def _counts(ids: Sequence[int], vocabulary: Vocabulary) -> dict[str, Any]:
    tokens = vocabulary.tokens(ids, len(ids))
    spelled = [token for token in tokens if not token.special]
    text = vocabulary.text(ids, skip_special=True)
    characters = len(_CLUSTER.findall(text))
    return {
        "characters": characters,
        "points": len(text),
        "bytes": sum(len(token.bytes) for token in spelled),
        "tokens": len(tokens),
        "control": len(tokens) - len(spelled),
        "per_character": len(spelled) / characters if characters else None,
    }


def tokens_table(tokens: Sequence[Token], t: Catalog) -> pd.DataFrame:
    """One row a token, all of them."""
    return pd.DataFrame(
        {
            t("tokens.position"): [token.position for token in tokens],
            t("tokens.token"): [token.label for token in tokens],
            t("tokens.id"): [token.id for token in tokens],
            t("tokens.piece"): [visible(token.piece) for token in tokens],
            t("tokens.bytes"): [token.bytes.hex(" ").upper() for token in tokens],
            t("tokens.span"): [span(token.span) for token in tokens],
            t("tokens.group"): [_together(token) for token in tokens],
            t("tokens.kind"): [t(f"tokens.kind_{_kind(token)}") for token in tokens],
            t("tokens.source"): [t(f"tokens.source_{token.source}") for token in tokens],
        }
    )


def span(places: tuple[int, int]) -> str:
    """First and last place: ``3–8``, or ``3`` for one alone, nothing for none."""
    start, stop = places
    return "" if stop <= start else str(start) if stop == start + 1 else f"{start}–{stop - 1}"


def _together(token: Token) -> str:
    """The positions of the tokens that make the same character; empty for one alone."""
    start, stop = token.group
    return span(token.group) if stop - start > 1 else ""


def _kind(token: Token) -> str:
    return "control" if token.special else "text"
