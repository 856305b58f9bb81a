"""How the tokenizer got there, as data for its component. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from core.bpe import MOST_SYMBOLS, Cutting, Lattice, Replay, Rules, Story, Word, story
from core.tokens import Vocabulary
from core.visible import visible
from ui.figures.tokens import span
from ui.i18n import HTML_LANG, Catalog

MOST_WORDS: Final = 160
"""Words offered for choosing: those around the chosen one."""
MOST_TEXT: Final = 600
"""Code points drawn of the text before and after normalisation."""
MOST_LABEL: Final = 120
"""Code points of a word in its label."""
MOST_PAIRS: Final = 12
"""Competing pairs sent for each merge; of the others only how many there are."""


def chosen_word(cutting: Cutting, at: int) -> int | None:
    """The word of token ``at``; for -1 the longest word that can be played whole."""
    if at >= 0:
        return cutting.word_at(at)
    sizes = [
        (len(word.normal or ""), -index)
        for index, word in enumerate(cutting.words)
        if len(word.normal or "") <= MOST_SYMBOLS
    ]
    return -max(sizes)[1] if sizes else 0 if cutting.words else None


def merges_data(
    cutting: Cutting, rules: Rules, vocabulary: Vocabulary, at: int, t: Catalog
) -> dict[str, Any]:
    """What the component draws for the word of token ``at`` (-1: an example)."""
    chosen = chosen_word(cutting, at)
    first = max(0, min((chosen or 0) - MOST_WORDS // 2, len(cutting.words) - MOST_WORDS))
    words = cutting.words[first : first + MOST_WORDS]
    return {
        "lang": HTML_LANG[t.lang],
        "strings": t.area("tokens"),
        "text": _capped(cutting.text),
        "normal": None if cutting.normal == cutting.text else _capped(cutting.normal),
        "normalizer": list(steps(cutting.normalizer, t)),
        "cutter": list(steps(cutting.pre_tokenizer, t)),
        "pieces": not all(word.whole for word in cutting.words),
        "words": [_word(word, first + i == chosen) for i, word in enumerate(words)],
        "first": first,
        "count": len(cutting.words),
        "opening": [vocabulary.label(id) for id in cutting.opening],
        "rules": rules.merges,
        "table": rules.kind,
        "chosen": {"why": t(_no_word(cutting, at))}
        if chosen is None
        else _told(cutting.words[chosen], rules, vocabulary, t),
    }


def _no_word(cutting: Cutting, at: int) -> str:
    """Why token ``at`` belongs to no word."""
    return "tokens.why_opening" if 0 <= at < len(cutting.opening) else "tokens.why_generated"


def steps(names: Iterable[str], t: Catalog) -> Iterable[dict[str, str]]:
    """The library's names of the steps with a sentence for those that are known."""
    for name in names:
        key = f"tokens.step_{name}"
        yield {"name": name, "about": t(key) if key in t.messages else ""}


def _capped(text: str) -> dict[str, Any]:
    return {"label": visible(text[:MOST_TEXT], whole=True), "more": max(0, len(text) - MOST_TEXT)}


def _label(text: str) -> str:
    """A word in a readable form, shortened."""
    shown = visible(text[:MOST_LABEL], whole=True) or "‹empty›"
    return shown + "…" * (len(text) > MOST_LABEL)


def _word(word: Word, chosen: bool) -> dict[str, Any]:
    return {
        "label": _label(word.text),
        "at": word.positions[0],
        "tokens": len(word.ids),
        "added": word.added,
        "chosen": chosen,
    }


def _told(word: Word, rules: Rules, vocabulary: Vocabulary, t: Catalog) -> dict[str, Any]:
    told = story(rules, word)
    base = {
        "label": _label(word.text),
        "normal": _label(word.normal or ""),
        "positions": span(word.positions),
        "at": word.positions[0],
        "ids": list(told.ids),
        "entries": entries(vocabulary, told.ids),
        "why": None,
        "capped": _note(told, t),
    }
    if told.replay is not None:
        ids = [*told.replay.start, *(merge.won.result for merge in told.replay.merges)]
        pairs = [pair for merge in told.replay.merges for pair in merge.pairs[:MOST_PAIRS]]
        ids += [id for pair in pairs for id in (pair.left, pair.right, pair.result)]
        return {**base, "entries": entries(vocabulary, ids), **_replay(told.replay)}
    if told.lattice is not None:
        return {**base, **_lattice(told.lattice)}
    return {**base, "why": t(f"tokens.why_{told.why_not}", percent=f"{100 * rules.dropout:g}")}


def _note(told: Story, t: Catalog) -> str | None:
    if not told.capped:
        return None
    return t("tokens.capped", told=len(told.told), all=len(told.word.normal or ""))


def entries(vocabulary: Vocabulary, ids: Iterable[int]) -> dict[str, dict[str, str]]:
    """Label and raw piece of each id, by the id as text (JSON has no other keys)."""
    piece = vocabulary.tokenizer.id_to_token
    return {
        str(id): {"label": vocabulary.label(id), "piece": visible(piece(id) or "")}
        for id in sorted(set(ids))
    }


def _replay(made: Replay) -> dict[str, Any]:
    return {
        "kind": "merges",
        "start": list(made.start),
        "whole": made.whole,
        "merges": [
            {
                "at": merge.won.at,
                "rank": merge.won.rank,
                "result": merge.won.result,
                "pairs": [
                    [pair.at, pair.rank, pair.left, pair.right, pair.result]
                    for pair in merge.pairs[:MOST_PAIRS]
                ],
                "more": max(0, len(merge.pairs) - MOST_PAIRS),
                "ranks": [[pair.at, pair.rank] for pair in merge.pairs],
            }
            for merge in made.merges
        ],
    }


def _lattice(made: Lattice) -> dict[str, Any]:
    return {
        "kind": "lattice",
        "score": made.score,
        "pieces": [
            {
                "start": piece.start,
                "stop": piece.stop,
                "label": visible(made.word[piece.start : piece.stop]),
                "score": piece.score,
                "best": piece.best,
                "taken": piece.on_path,
                "known": piece.id is not None,
            }
            for piece in made.pieces
        ],
    }
