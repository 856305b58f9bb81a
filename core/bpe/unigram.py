"""The unigram model: of all ways to cut a word into pieces, the one with the highest sum."""

from __future__ import annotations

from dataclasses import dataclass

from core.bpe.rules import Rules


@dataclass(frozen=True)
class Piece:
    """An entry that fits the word at one place: an edge of the lattice."""

    start: int
    stop: int
    """Code points within the word."""
    id: int | None
    """``None``: no entry covers this character."""
    score: float
    """ln p of the entry, as learned."""
    best: float
    """The highest sum of scores of a way from the start of the word through this piece."""
    on_path: bool


@dataclass(frozen=True)
class Lattice:
    """All pieces that fit a word, by start and length, and the way that was taken."""

    word: str
    pieces: tuple[Piece, ...]
    score: float
    """Sum of the scores along the way."""
    ids: tuple[int, ...]
    """The tokens; a character that no entry covers is its bytes, or the unknown entry."""


def best_path(rules: Rules, word: str) -> Lattice:
    """The cut of ``word`` with the highest sum (Viterbi). ``rules`` must be of kind "unigram"."""
    size = len(word)
    sums: list[float | None] = [0.0, *[None] * size]
    edges: list[tuple[int, int, int | None, float, float]] = []
    came: dict[int, tuple[int, int | None]] = {}

    def offer(start: int, stop: int, id: int | None, score: float, total: float) -> None:
        edges.append((start, stop, id, score, total))
        best = sums[stop]
        if best is None or total > best:
            sums[stop] = total
            came[stop] = (start, id)

    for start in range(size):
        here = sums[start] or 0.0
        single = False
        for stop in range(start + 1, min(size, start + rules.longest) + 1):
            piece = word[start:stop]
            score = rules.scores.get(piece)
            if score is not None:
                offer(start, stop, rules.id_of(piece), score, score + here)
                single |= stop == start + 1
        if not single:
            offer(start, start + 1, None, rules.unknown_score, rules.unknown_score + here)
    path = _path(came, size)
    taken = {(start, stop) for start, stop, _ in path}
    pieces = tuple(Piece(*edge, (edge[0], edge[1]) in taken) for edge in edges)
    return Lattice(word, pieces, sums[size] or 0.0, tuple(_ids(rules, word, path)))


def _path(came: dict[int, tuple[int, int | None]], size: int) -> list[tuple[int, int, int | None]]:
    path: list[tuple[int, int, int | None]] = []
    stop = size
    while stop > 0:
        start, id = came[stop]
        path.append((start, stop, id))
        stop = start
    return path[::-1]


def _ids(rules: Rules, word: str, path: list[tuple[int, int, int | None]]) -> list[int]:
    made: list[int] = []
    run = ""
    for start, stop, id in [*path, (0, 0, -1)]:
        if id is None or (id == rules.unknown and start < stop):
            run += word[start:stop]
            if rules.fuse_unknown:
                continue
        if run:
            fallen = rules.fallback(run)
            made += fallen if fallen is not None else [rules.unknown or 0]
            run = ""
        if id is not None and id >= 0 and id != rules.unknown:
            made.append(id)
    return made
