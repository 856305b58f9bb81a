"""`inspect --what merges`: how the tokenizer got from the prompt to its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from core.bpe import Lattice, Pair, Replay, Story, cut, rules_of, story
from core.cli.question import Question
from core.tokens import Vocabulary


def merges(question: Question) -> dict[str, Any]:
    """The words of the prompt, each with its merges; ``--position``: the word of that token."""
    vocabulary, spec = question.vocabulary, question.spec
    cutting = cut(vocabulary, spec.prompt, chat=spec.chat, literal=spec.literal)
    at = question.place("position", question.position, len(question.ids))
    chosen = [
        word for word in cutting.words if at is None or word.positions[0] <= at < word.positions[1]
    ]
    rules = rules_of(vocabulary.tokenizer)
    return {
        "model": spec.model,
        "kind": rules.kind,
        "rules": rules.merges,
        "text": cutting.text,
        "normalizer": list(cutting.normalizer),
        "normalized": cutting.normal,
        "pre_tokenizer": list(cutting.pre_tokenizer),
        "words": [_word(story(rules, word), vocabulary) for word in chosen],
    }


def _word(told: Story, vocabulary: Vocabulary) -> dict[str, Any]:
    word = told.word
    return {
        "text": word.text,
        "span": list(word.span),
        "positions": list(word.positions),
        "normalized": word.normal,
        "whole": word.whole,
        "ids": list(word.ids),
        "labels": [vocabulary.label(id) for id in word.ids],
        "told": told.told,
        "not_told": told.why_not,
        **({} if told.replay is None else _replay(told.replay, vocabulary)),
        **({} if told.lattice is None else _lattice(told.lattice, vocabulary)),
    }


def _replay(made: Replay, vocabulary: Vocabulary) -> dict[str, Any]:
    def pair(found: Pair) -> dict[str, Any]:
        left, right = vocabulary.label(found.left), vocabulary.label(found.right)
        return {"at": found.at, "left": left, "right": right, "rank": found.rank}

    return {
        "start": [vocabulary.label(id) for id in made.start],
        "merges": [
            {
                **pair(merge.won),
                "result": vocabulary.label(merge.won.result),
                "id": merge.won.result,
                "competed": [pair(found) for found in merge.pairs],
            }
            for merge in made.merges
        ],
    }


def _lattice(made: Lattice, vocabulary: Vocabulary) -> dict[str, Any]:
    return {
        "score": made.score,
        "pieces": [
            {
                "start": piece.start,
                "stop": piece.stop,
                "id": piece.id,
                "text": made.word[piece.start : piece.stop],
                "score": piece.score,
                "best": piece.best,
                "taken": piece.on_path,
            }
            for piece in made.pieces
        ],
    }


def merge_lines(record: dict[str, Any]) -> Iterator[str]:
    names = ", ".join(record["normalizer"]) or "none"
    cuts = ", ".join(record["pre_tokenizer"]) or "none"
    yield f"{record['kind']}, {record['rules']:,} merges; normalizer: {names}; cut by: {cuts}"
    for word in record["words"]:
        start, stop = word["positions"]
        end = " ".join(word["labels"])
        yield ""
        yield f"{word['text']!r}, tokens {start}–{stop - 1}: {end}"
        if word["not_told"]:
            yield f"  nothing to merge ({word['not_told']})"
        elif "pieces" in word:
            yield from _piece_lines(word)
        else:
            yield from _step_lines(word)


def _step_lines(word: dict[str, Any]) -> Iterator[str]:
    symbols = list(word["start"])
    yield f"  {'':>6}  {' '.join(symbols)}"
    for merge in word["merges"]:
        symbols[merge["at"] : merge["at"] + 2] = [merge["result"]]
        others = ", ".join(
            f"{pair['left']} {pair['right']} {pair['rank']}" for pair in merge["competed"][1:4]
        )
        more = len(merge["competed"]) - 4
        rest = f" and {more} more" if more > 0 else ""
        beaten = f"   (before {others}{rest})" if others else ""
        yield f"  {merge['rank']:>6}  {' '.join(symbols)}{beaten}"
    if word["told"] != word["normalized"]:
        yield "  (the beginning only: the word is long)"


def _piece_lines(word: dict[str, Any]) -> Iterator[str]:
    for piece in word["pieces"]:
        mark = "→" if piece["taken"] else " "
        yield f"  {mark} {piece['start']:>3}  {piece['text']:<16}{piece['score']:>9.3f}"
    yield f"  sum {word['score']:.3f}"
