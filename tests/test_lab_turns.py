"""Work in turns, put together: every turn is told once, and the result comes through."""

from dataclasses import dataclass

import pytest

from core.lab.turns import between, ended, shares, through


def work(count):
    for step in range(1, count + 1):
        yield step / count
    return "found"


def told(turns):
    seen = []
    while True:
        try:
            seen.append(next(turns))
        except StopIteration as end:
            return seen, end.value


def test_turns_go_through_and_so_does_the_result():
    assert told(through(work(2), lambda share: f"{share:.1f}")) == (["0.5", "1.0"], "found")
    assert told(between(work(4), 0.5, 0.7)) == (
        pytest.approx([0.55, 0.6, 0.65, 0.7]),
        "found",
    )
    assert ended(work(3)) == "found"
    assert told(through(work(0), str)) == ([], "found")


def test_a_record_is_told_at_each_share():
    @dataclass(frozen=True)
    class Record:
        name: str
        progress: float

    seen, _ = told(through(work(2), shares(Record("a", 0.0))))
    assert seen == [Record("a", 0.5), Record("a", 1.0)]


def test_what_stops_the_whole_stops_its_part():
    closed = []

    def part():
        try:
            yield 0.5
            yield 1.0
        finally:
            closed.append(True)

    turns = through(between(part(), 0, 1), float)
    next(turns)
    turns.close()
    assert closed == [True]

    turns = through(part(), float)
    next(turns)
    with pytest.raises(RuntimeError, match="stop"):
        turns.throw(RuntimeError("stop"))
