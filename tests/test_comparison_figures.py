"""What is said about a text in numbers, worked out by hand."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.compare_records import Column, Text, Written
from core.decode import figures
from core.decode.bleu import self_bleu
from core.decode.figures import distinct, longest_repeat, perplexity, repeated, zipf
from core.settings import Settings
from core.trace import Choice
from tests.comparing import ask, last, toy

ids = st.lists(st.integers(0, 3), max_size=40)


def test_distinct_by_hand():
    # a b a b c: 3 of 5 words; ab ba ab bc: 3 of 4 pairs; aba bab abc: 3 of 3
    text = [0, 1, 0, 1, 2]
    assert [distinct([text], n) for n in (1, 2, 3)] == [0.6, 0.75, 1]
    # over two texts together: 3 of 7, and of their pairs 3 of 5; none spans both
    assert distinct([text, [0, 1]], 1) == 3 / 7
    assert distinct([text, [0, 1]], 2) == 3 / 5
    assert distinct([[0, 1]], 3) is None
    assert distinct([], 1) is None


def test_repeated_by_hand():
    # abcabcab: abca bcab cabc abca bcab, so 2 of 5 came before
    assert repeated([[0, 1, 2, 0, 1, 2, 0, 1]], 4) == pytest.approx(0.4)
    # a second text has its own memory
    assert repeated([[0, 1, 2, 0, 1, 2, 0, 1], [0, 1, 2, 0]], 4) == pytest.approx(2 / 6)
    assert repeated([[5] * 10], 4) == pytest.approx(6 / 7)
    assert repeated([[0, 1, 2]], 4) is None


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("", 0),
        ("a", 0),
        ("abc", 0),
        ("abca", 1),
        ("abcab", 2),
        ("aaaa", 3),  # at places 0 and 1, which overlap
        ("banana", 3),  # ana
        ("mississippi", 4),  # issi
        ("abcdexabcdy", 4),
    ],
)
def test_longest_repeat_by_hand(text, length):
    assert longest_repeat([ord(char) for char in text]) == length


@given(ids)
def test_longest_repeat_is_what_looking_everywhere_finds(text):
    def twice(n):
        grams = [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]
        return len(set(grams)) < len(grams)

    assert longest_repeat(text) == max((n for n in range(1, len(text) + 1) if twice(n)), default=0)


def test_longest_repeat_takes_linear_time():
    assert longest_repeat([7] * 20_000) == 19_999
    drawn = random.Random(1)
    assert 2 < longest_repeat([drawn.randrange(50) for _ in range(20_000)]) < 20


def test_zipf_by_hand():
    # frequencies 4, 2: ln 4 - ln 2 over ln 2 - ln 1 is a slope of -1
    assert zipf([[0, 0, 0, 0, 1, 1]]) == pytest.approx(1)
    assert zipf([[0, 0, 0, 0], [1, 1]]) == pytest.approx(1)
    assert zipf([[0] * 9 + [1]]) == pytest.approx(math.log(9) / math.log(2))
    assert zipf([[0, 1, 2, 3]]) == 0
    assert zipf([[0, 0]]) is None
    assert zipf([]) is None
    exact = [token for token in range(8) for _ in range(round(840 / (token + 1)))]
    assert zipf([exact]) == pytest.approx(1, abs=1e-3)


@given(st.lists(ids, min_size=1, max_size=4))
def test_zipf_is_numpys_line(texts):
    counts = sorted(np.unique([t for text in texts for t in text], return_counts=True)[1])[::-1]
    if len(counts) > 1:
        slope, _ = np.polyfit(np.log(np.arange(1, len(counts) + 1)), np.log(counts), 1)
        assert zipf(texts) == pytest.approx(-slope, abs=1e-9)


def test_self_bleu_by_hand():
    # equal texts
    assert self_bleu([[0, 1, 2, 3, 4]] * 3) == pytest.approx(1)
    # nothing in common
    assert self_bleu([[0, 1, 2, 3], [4, 5, 6, 7]]) == 0
    assert self_bleu([[0, 1]]) is None
    assert self_bleu([]) is None
    # abcde against abcdf: 4/5 words, 3/4 pairs, 2/3, 1/2, so their product is 1/5
    assert self_bleu([[0, 1, 2, 3, 4], [0, 1, 2, 3, 5]]) == pytest.approx(0.2**0.25)
    # ab against ba: 2/2 words, no pair (.1 of 1), no longer ones (.1 of 1 each)
    assert self_bleu([[0, 1], [1, 0]]) == pytest.approx((0.1**3) ** 0.25)


def test_self_bleu_counts_no_more_than_another_text_has():
    # aaaa against aa: 2/4, 1/3, .1/2, .1/1; the other way 2/2, 1/1, .1/1, .1/1, and brevity
    long = (1 / 2 * 1 / 3 * 0.1 / 2 * 0.1) ** 0.25
    short = math.exp(1 - 4 / 2) * (1 * 1 * 0.1 * 0.1) ** 0.25
    assert self_bleu([[0] * 4, [0] * 2]) == pytest.approx((long + short) / 2)


def slow_bleu(texts, index):
    """The definition, without any short cut."""
    own, others = texts[index], [t for i, t in enumerate(texts) if i != index]

    def grams(text, n):
        return [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]

    total = 0.0
    for n in range(1, 5):
        mine = grams(own, n)
        found = sum(
            min(mine.count(g), max(grams(other, n).count(g) for other in others)) for g in set(mine)
        )
        if n == 1 and found == 0:
            return 0.0
        total += math.log((found or 0.1) / max(1, len(mine))) / 4
    near = min((abs(len(o) - len(own)), len(o)) for o in others)[1]
    return (1 if len(own) > near else math.exp(1 - near / len(own))) * math.exp(total)


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), min_size=2, max_size=6))
def test_self_bleu_is_its_definition(texts):
    expected = sum(slow_bleu(texts, i) for i in range(len(texts))) / len(texts)
    assert self_bleu(texts) == pytest.approx(expected, rel=1e-9)


def choice(token, p, rank=1, entropy=1.0):
    return Choice(token, "sample", p, p, rank, 0.5, entropy, entropy)


def written(*texts, ms=0.0):
    made = tuple(Text(i, tuple(text), "output_limit") for i, text in enumerate(texts))
    return Written(Column(Settings()), made, forwards=sum(map(len, texts)), ms=ms)


def test_figures_by_hand():
    engine = toy()
    found = figures(
        written(
            [choice(0, 0.5, 1, 0.5), choice(1, 0.25, 3, 1.5)],
            [choice(0, 0.125, 2, 1.0)],
            ms=600.0,
        ),
        engine.vocabulary,
    )
    assert found.tokens == 3
    # 2 and 4 and 8: together 2^6, a mean of -3 ln 2 for two texts, and 4 for each token
    assert found.logprob == pytest.approx(-3 * math.log(2))
    assert found.perplexity == pytest.approx(4)
    assert (found.entropy, found.rank) == (1.0, 2.0)
    size = len(b"".join(engine.vocabulary.bytes_of(i) for i in (0, 1, 0)))
    assert found.bits_per_byte == pytest.approx(6 / size)
    assert found.distinct == (2 / 3, 1.0, None)
    assert (found.longest_repeat, found.repeated_4grams) == (0, None)
    assert found.zipf == pytest.approx(1)
    assert found.forwards == 3
    assert found.tokens_per_second == pytest.approx(5)


def test_nothing_written_yet():
    found = figures(written(), toy().vocabulary)
    assert (found.tokens, found.logprob, found.longest_repeat) == (0, 0.0, 0)
    for name in ("perplexity", "bits_per_byte", "entropy", "rank", "zipf", "self_bleu"):
        assert getattr(found, name) is None
    assert found.distinct == (None, None, None)
    waiting = figures(written([choice(0, 0.5)], []), toy().vocabulary)
    assert (waiting.tokens, waiting.logprob) == (1, pytest.approx(math.log(0.5)))
    assert waiting.self_bleu is None


def test_an_end_token_has_no_bytes():
    engine = toy()
    found = figures(written([choice(4, 0.5)]), engine.vocabulary)
    assert found.bits_per_byte is None
    assert found.perplexity == 2


def test_an_impossible_forced_token():
    found = figures(written([choice(0, 0.0)]), toy().vocabulary)
    assert (found.logprob, found.perplexity) == (-math.inf, math.inf)
    assert perplexity(-2000.0, 1) == math.inf


def test_figures_of_a_real_comparison():
    engine = toy()
    found = last(engine, ask("greedy", "beam,beams=2", "sample", samples=50))
    greedy, beam, pure = (figures(w, engine.vocabulary) for w in found.columns)
    # a (.4), then the end (1): two tokens
    assert [greedy.logprob, beam.logprob] == pytest.approx([math.log(0.4)] * 2)
    assert greedy.perplexity == pytest.approx((1 / 0.4) ** 0.5)
    assert greedy.rank == 1
    assert pure.tokens == 100
    assert 0 < pure.self_bleu < 1
    assert greedy.self_bleu is None
