"""The edges of a beam search's rules by hand: ties, what a live beam can reach, why it ends."""

import math

import numpy as np
import pytest

from core.decode import search
from core.settings import BeamSettings

END, A, B = 0, 1, 2


def found(rows, width, max_new, *, ends=(END,), usual=(0.0, 1.0, 0.0), **more):
    """The search in a table of probabilities by history; ``usual`` answers for the rest."""

    def provider(prefixes):
        with np.errstate(divide="ignore"):
            return [np.log(np.array(rows.get(prefix, usual))) for prefix in prefixes]

    return search(provider, BeamSettings(width=width, max_new=max_new, **more), ends)


def test_of_two_equal_texts_the_older_one_comes_first():
    # Both have probability 0.25; the longer one is complete a step later.
    search = found({(): (0.25, 0.5, 0.25), (A,): (0.5, 0.5, 0)}, 2, 3, usual=(0.0, 0.5, 0.5))
    assert [h.tokens for h in search.hypotheses] == [(END,), (A, END)]
    assert search.hypotheses[0].score == pytest.approx(search.hypotheses[1].score, abs=1e-15)


def test_with_a_reward_for_length_a_beam_hopes_for_the_longest_text():
    # After two steps ln 0.4 ÷ 2 and ln 0.297 ÷ 2 are held. The live beam has ln 0.004, which
    # loses at its present length and wins over twenty tokens.
    rows = {(): (0.3, 0.4, 0.3), (A,): (0.99, 0.01, 0), (B,): (0.99, 0.01, 0)}
    search = found(rows, 2, 20, length_penalty=1.0, stop="best")
    assert search.hypotheses[0].tokens == (A,) * 20
    assert search.hypotheses[0].score == pytest.approx(math.log(0.004) / 20)
    # Without it a sum of logarithms only falls.
    assert len(found(rows, 2, 20, stop="best").steps) == 2


def test_a_live_beam_that_can_only_draw_level_cannot_win():
    rows = {(): (0.25,) * 4, (A,): (1.0, 0, 0, 0), (B,): (0, 0, 1.0, 0)}
    search = found(rows, 2, 9, usual=(0.0, 0, 1.0, 0))
    assert (search.stop, len(search.steps)) == ("no_beam_can_win", 2)
    assert search.steps[-1].hope == search.steps[-1].bar
    assert [h.tokens for h in search.hypotheses] == [(END,), (A, END)]


def test_why_it_ends():
    even = (0.0, 0.5, 0.5)
    cut = found({}, 2, 2, usual=even, stop="full")
    assert cut.stop == "output_limit"  # as many texts as beams, but none of them is complete
    ended = found({(): (1.0, 0, 0)}, 2, 1)
    assert ended.stop == "no_beam_left"  # at the limit, but nothing was cut off
    one = found({(): (1.0, 0, 0)}, 1, 1)
    assert one.stop == "full"
