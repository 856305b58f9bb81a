"""Typed numbers: every way to write them, and one sentence for each mistake."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.faults import Fault
from ui.typed import MAX_CHARACTERS, Typed, can_rescale, pack, parse, rescaled, unpack

THREE = Typed("probabilities", ("a", "b", "c"), (0.5, 0.3, 0.2))


@pytest.mark.parametrize(
    "text",
    [
        "a 0.5, b 0.3, c 0.2",
        "a: 0.5; b = .3; c:2e-1",
        "a 50%\nb 30 %\nc 20%",
        "a\t0.5\r\n\r\nb 0.3\n  c   0.2  ,",
        '[["a", 0.5], ["b", 0.3], ["c", 0.2]]',
        '{"a": 0.5, "b": 0.3, "c": 0.2}',
        "a：0.5，b：0.3、c ＝ ０．２",
    ],
)
def test_every_way_of_writing_gives_the_same_numbers(text):
    assert parse("probabilities", text) == THREE


@pytest.mark.parametrize("text", ["0.5, 0.3, 0.2", "0.5 0.3 0.2", "[0.5, 0.3, 0.2]", ".5\n.3\n.2"])
def test_labels_may_be_left_out(text):
    typed = parse("probabilities", text)
    assert typed.labels == ("A", "B", "C")
    assert typed.numbers == (0.5, 0.3, 0.2)


def test_labels_go_on_after_z():
    assert parse("logits", " ".join(["1"] * 28)).labels[24:] == ("Y", "Z", "AA", "AB")


def test_labels_may_hold_spaces_signs_and_hostile_text():
    typed = parse("probabilities", "New York: 0.5\n<img src=x onerror=alert(1)> 0.25\n=1+1 0.25")
    assert typed.labels == ("New␣York", "<img␣src=x␣onerror=alert(1)>", "=1+1")


def test_probabilities_become_logarithms_and_zero_is_impossible():
    logits = parse("probabilities", "0.75 0.25 0").logits
    assert logits == pytest.approx([math.log(0.75), math.log(0.25), -math.inf])


def test_three_thirds_are_meant():
    logits = parse("probabilities", "0.333 0.333 0.333").logits
    assert np.exp(logits) == pytest.approx([1 / 3] * 3, abs=1e-12)


def test_logits_may_be_negative_or_impossible():
    assert parse("logits", "a -1, b 2.5, c -inf").numbers == (-1, 2.5, -math.inf)
    assert parse("logits", "a −1, b -∞, c 0").numbers == (-1, -math.inf, 0)


@pytest.mark.parametrize(
    ("kind", "text", "code"),
    [
        ("probabilities", "  \n ", "typed_empty"),
        ("probabilities", "a, b 0.5", "typed_item"),
        ("probabilities", "a0.5, b 0.5", "typed_item"),
        ("probabilities", "[0.5, 0.5", "typed_json"),
        ("probabilities", "[" * 5000, "typed_json"),
        ("probabilities", "[true, 0.5]", "typed_item"),
        ("probabilities", '[[1, 0.5], ["a", 0.5]]', "typed_item"),
        ("probabilities", "a 1", "typed_count"),
        ("probabilities", " ".join(["0.01"] * 51), "typed_count"),
        ("probabilities", "a -0.5, b 1.5", "typed_negative"),
        ("probabilities", "a inf, b 1", "typed_negative"),
        ("probabilities", "0 0 0", "logits_all_impossible"),
        ("probabilities", "0.5 0.4", "typed_sum"),
        ("logits", "[NaN, 1]", "typed_logit"),
        ("logits", "1 inf", "typed_logit"),
        ("logits", "1 1e999", "typed_logit"),
        ("logits", "-inf -inf", "logits_all_impossible"),
    ],
)
def test_each_mistake_has_its_sentence(kind, text, code):
    with pytest.raises(Fault) as caught:
        parse(kind, text)
    assert caught.value.code == code


def test_the_sentence_names_what_was_found():
    with pytest.raises(Fault, match=r"add up to 1\.1, but they must add up to 1"):
        parse("probabilities", "a 0.5, b 0.6")


def test_rescaling_mends_a_wrong_sum_and_keeps_the_labels():
    text = "a 3, b 1"
    assert can_rescale("probabilities", text)
    assert rescaled(text) == "a 0.75, b 0.25"
    assert rescaled('{"a, b": 3, "c": 1}') == '[["a, b", 0.75], ["c", 0.25]]'
    assert parse("probabilities", rescaled("2 2 2")).numbers == pytest.approx([1 / 3] * 3, abs=1e-5)


@pytest.mark.parametrize("text", ["", "a", "a -1, b 3", "0 0", "a inf, b 1", "1"])
def test_rescaling_is_not_offered_where_it_cannot_help(text):
    assert not can_rescale("probabilities", text)


def test_rescaling_is_not_offered_for_logits():
    assert not can_rescale("logits", "1 2")


@given(st.sampled_from(["probabilities", "logits"]), st.text(max_size=80))
def test_packing_is_undone_by_unpacking(kind, text):
    assert unpack(pack(kind, text)) == (kind, text)


def test_a_stored_text_is_capped_and_a_strange_one_is_read_as_probabilities():
    assert len(unpack(pack("logits", "x" * 9999))[1]) == MAX_CHARACTERS
    assert unpack("0.5 0.5") == ("probabilities", "0.5 0.5")


@given(st.sampled_from(["probabilities", "logits"]), st.text(max_size=60))
def test_any_text_gives_a_distribution_or_a_sentence(kind, text):
    try:
        typed = parse(kind, text)
    except Fault:
        return
    assert np.exp(typed.logits - typed.logits.max()).sum() >= 1


def test_numbers_beyond_all_bounds_are_refused_in_words():
    with pytest.raises(Fault) as caught:
        parse("probabilities", "1e308, 1e308")
    assert caught.value.code == "typed_sum"
    assert not can_rescale("probabilities", "1e308, 1e308")
