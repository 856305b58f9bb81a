"""Whether something else was running, as repeated times tell it."""

from __future__ import annotations

from core.lab.timing import FEW, RESTLESS, Spread, unrest


def test_of_few_repeats_the_slowest_tells_and_of_many_the_median():
    few, many = Spread(10, 8, 16, 3), Spread(10, 8, 400, FEW + 1)
    assert unrest([few]) == 2
    assert unrest([many]) == 1.25
    assert unrest([few, many]) == 1.625


def test_what_was_not_repeated_tells_nothing():
    assert unrest([]) == unrest([None, Spread(10, 8, 16, 1), Spread(0, 0, 0, 0)]) == 1


def test_one_hiccup_among_several_things_is_no_other_work():
    calm = Spread(10, 9, 11, 3)
    assert unrest([calm, calm, Spread(10, 9, 90, 3)]) < RESTLESS
