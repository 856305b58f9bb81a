"""The columns of a comparison as rows of tokens, step by step. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.compare_records import Difference, Text, Written
from core.tokens import Vocabulary
from core.trace import Choice, Token
from ui.edit_words import model_words
from ui.figures.compare_words import LETTERS, Part, fault_text, reason
from ui.figures.strip import groups, whole
from ui.i18n import HTML_LANG, Catalog

LOOK_BACK: Final = 8
"""Prompt tokens that may share a character with the first generated one."""


@dataclass(frozen=True)
class Scene:
    """A comparison column by column, those that cannot be read included, as it is shown."""

    names: tuple[str, ...]
    written: tuple[Written, ...]
    vocabularies: tuple[Vocabulary | None, ...]
    """``None`` where the model of a column is not here."""
    prompts: tuple[tuple[int, ...], ...]
    """The prompt as each column's model reads it."""
    differences: tuple[Difference | None, ...]
    """From the reference, of the sample in view; ``None`` where nothing can be said."""
    reference: int = 0
    sample: int = 0
    samples: int = 1
    running: bool = False

    def text(self, column: int) -> Text | None:
        """The text in view of a column; a strategy without dice has only one."""
        return chosen(self.written[column], self.sample)

    def title(self, column: int) -> str:
        """How a column is named wherever it stands alone."""
        return f"{LETTERS[column]} · {self.names[column]}"


def chosen(written: Written, sample: int) -> Text | None:
    """The text number ``sample``, or the only one there is."""
    texts = written.texts
    found = next((text for text in texts if text.sample == sample), None)
    return found or (texts[0] if len(texts) == 1 else None)


def rows_data(scene: Scene, t: Catalog) -> dict[str, Any]:
    """What the component draws."""
    return {
        "lang": HTML_LANG[t.lang],
        "strings": {**_strings(t), "lang": t.lang},
        "running": scene.running,
        "samples": scene.samples,
        "sample": scene.sample,
        "rows": [_row(scene, index, t) for index in range(len(scene.written))],
    }


def _strings(t: Catalog) -> dict[str, str]:
    """Those of the component begin with ``rows_``."""
    found = t.area("compare")
    return {key[5:]: text for key, text in found.items() if key.startswith("rows_")}


def _row(scene: Scene, index: int, t: Catalog) -> dict[str, Any]:
    written, vocabulary = scene.written[index], scene.vocabularies[index]
    text = scene.text(index)
    found = scene.differences[index] if index != scene.reference else None
    return {
        "letter": LETTERS[index],
        "colour": index,
        "name": scene.names[index],
        "model": model_words(t, written.column.model) if written.column.model else None,
        "reference": index == scene.reference,
        "cells": _cells(text, vocabulary, scene.prompts[index]) if text and vocabulary else [],
        "stop": _stop(text, t),
        "stop_help": t(f"compare.stop_{text.stop}_help") if text and text.stop else "",
        "fault": fault_text(written.fault, t) if written.fault else None,
        "first": None if found is None else found.step,
        "why": why(scene, index, t),
        "open": bool(text and text.choices) and written.fault is None,
        "texts": _texts(scene, index, t) if vocabulary else [],
    }


def _stop(text: Text | None, t: Catalog) -> str:
    return t(f"compare.stop_{text.stop}") if text and text.stop else ""


def why(scene: Scene, index: int, t: Catalog) -> list[Part]:
    """The sentence about the first difference of a column; none for the reference."""
    found = scene.differences[index]
    here, there = scene.vocabularies[index], scene.vocabularies[scene.reference]
    if index == scene.reference or found is None or here is None or there is None:
        return []
    both = (scene.written[index], scene.written[scene.reference])
    return reason(
        found,
        (both[0].column, both[1].column),
        scene.reference,
        (here.label, there.label),
        (_u(scene.text(index), found.step), _u(scene.text(scene.reference), found.step)),
        t=t,
        done=all(ended(each) for each in both),
    )


def _u(text: Text | None, step: int | None) -> float | None:
    if text is None or step is None or step >= len(text.choices):
        return None
    return text.choices[step].u


def _cells(text: Text, vocabulary: Vocabulary, prompt: Sequence[int]) -> list[dict[str, Any]]:
    before = tuple(prompt[-LOOK_BACK:])
    tokens = vocabulary.tokens((*before, *text.ids), len(before))
    cells = []
    for group in groups(tokens):
        made = [token for token in group if token.position >= len(before)]
        if made:
            cells.append(_cell(group, made, len(before), text.choices))
    return cells


def _cell(
    group: Sequence[Token], made: Sequence[Token], start: int, choices: Sequence[Choice]
) -> dict[str, Any]:
    return {
        "label": whole(group),
        "step": made[0].position - start,
        "special": any(token.special for token in made),
        "parts": [_part(token, choices[token.position - start]) for token in made],
    }


def _part(token: Token, choice: Choice) -> dict[str, Any]:
    return {
        "id": token.id,
        "label": token.label,
        "p": choice.probability_model,
        "after": choice.probability_filtered,
        "rank": choice.rank,
        "u": choice.u,
        "rule": choice.rule,
    }


def _texts(scene: Scene, index: int, t: Catalog) -> list[dict[str, Any]]:
    """The texts in full; while they are being written only the one in view."""
    shown = scene.written[index].texts
    if scene.running:
        shown = tuple(filter(None, (scene.text(index),)))
    return [
        {"sample": text.sample, "text": plain_text(scene, index, text), "stop": _stop(text, t)}
        for text in shown
    ]


def plain_text(scene: Scene, index: int, text: Text) -> str:
    """What a column wrote, without control tokens and without an unfinished character."""
    vocabulary = scene.vocabularies[index]
    if vocabulary is None:
        return ""
    made = vocabulary.text if text.stop else vocabulary.settled
    return made(text.ids, skip_special=True)


def ended(written: Written) -> bool:
    """Whether every text came to its own end, and not to the reader's Stop."""
    return written.done and all(text.stop != "user" for text in written.texts)
