"""The table of probabilities as a model."""

import json
import math

import numpy as np
import pytest

from core.decode import choose, probabilities, run
from core.engine.toy import (
    ToyEngine,
    default_table,
    open_toy,
    parse_table,
    read_table,
    toy_from_numbers,
)
from core.engine.toy_table import DEFAULT, letters
from core.engine.toy_words import MOST_WORDS, ToyVocabulary
from core.faults import Fault
from core.settings import RunSpec, Settings
from core.trace import Capture
from tests.decoding import TABLE

GOOD = {"vocab": ["a", "b"], "end": ["b"], "next": {"": [0.5, 0.5], "*": [1, 0]}}


@pytest.fixture(scope="module")
def law():
    return ToyEngine(parse_table(TABLE["beam"][0]))


def test_the_law_table_says_what_comes_next(law):
    assert law.info.vocabulary == law.vocabulary.size == 3
    assert law.vocabulary.labels() == ("nice", "dog", "car")
    prompt = law.vocabulary.encode("The").ids
    rows = {"": [0.5, 0.4, 0.1], "nice": [0.4, 0.3, 0.3], "car": [0.34, 0.33, 0.33]}
    for history, expected in rows.items():
        ids = (*prompt, *law.vocabulary.encode(history).ids)
        forward = law.forward(ids, prompt_length=1)
        assert probabilities(forward.logits) == pytest.approx(expected)
        assert np.allclose(forward.logits, np.log(expected))


def test_greedy_on_the_law_table(law):
    settings = Settings(strategy="greedy", max_new=2)
    made = run(law, RunSpec(prompt="The", settings=settings))
    expected = TABLE["beam"][0]["greedy"]
    assert law.vocabulary.text([s.choice.id for s in made.steps]).split() == expected["tokens"]
    assert made.logprob == pytest.approx(expected["logprob"], abs=1e-4)
    assert made.stop == "output_limit"


def test_words_of_the_prompt_are_no_history(law):
    one = law.forward(law.vocabulary.encode("nice").ids)
    assert probabilities(one.logits) == pytest.approx([0.5, 0.4, 0.1])


def test_records_have_no_layers(law):
    ids = (*law.vocabulary.encode("The big").ids, 0)
    whole = law.forward(ids[:2], capture=Capture(scores=True))
    assert (whole.start, whole.embedding.shape, whole.residual.shape) == (0, (2, 0), (0, 2, 0))
    assert whole.attention.shape == whole.scores.shape == (0, 0, 2, 2)
    assert whole.change.shape == (0, 2)
    last = law.forward(ids, prompt_length=2)
    assert (last.start, last.embedding.shape, last.attention.shape) == (2, (1, 0), (0, 0, 1, 3))
    assert law.forward(ids, capture=Capture(attention=False)).attention is None
    assert not last.logits.flags.writeable


def test_next_logits_serves_a_batch(law):
    the = law.vocabulary.encode("The").ids
    rows = law.next_logits([the, (*the, 0), (*the, 1)], prompt_length=1)
    assert np.exp(rows) == pytest.approx(
        np.array([[0.5, 0.4, 0.1], [0.4, 0.3, 0.3], [0.9, 0.05, 0.05]])
    )


def test_there_are_no_layers_to_look_into(law):
    with pytest.raises(Fault, match="has no layers to look into"):
        law.unembed(np.zeros((1, 0)))


def test_zero_probability_is_minus_infinity_and_never_chosen():
    engine = ToyEngine(parse_table(GOOD))
    forward = engine.forward((0, 0), prompt_length=1)
    assert forward.logits.tolist() == [0, -math.inf]
    assert {choose(forward.logits, Settings(seed=s), step=0).id for s in range(50)} == {0}


def test_reading_faults():
    engine = ToyEngine(parse_table({"vocab": ["a", "b"], "next": {"": [0.5, 0.5]}}))
    for ids, prompt, said in [
        ((), None, "The prompt is empty"),
        ((0, 1), 1, r"no row for what was generated so far \('b'\) and no row"),
        ((0, 2), 1, "Token id 2 does not exist; this model's ids go from 0 to 1"),
        ((99,), 1, "Token id 99 does not exist"),
        ((0,) * 3000, None, "3000 tokens, but the model was built for 2048"),
    ]:
        with pytest.raises(Fault, match=said):
            engine.forward(ids, prompt_length=prompt)


# --- the tokenizer


def test_words_are_split_at_spaces_and_joined_by_them():
    words = ToyVocabulary(["nice", "dog"])
    encoded = words.encode("  dog nice  dog ")
    assert (encoded.ids, encoded.text, encoded.notes) == (
        (1, 0, 1),
        "dog nice dog",
        ("text_changed",),
    )
    assert words.encode("dog").notes == ()
    assert words.text(encoded.ids) == "dog nice dog"
    tokens = words.tokens(encoded.ids, 2)
    assert (
        "".join(t.text for t in tokens)
        == b"".join(t.bytes for t in tokens).decode()
        == encoded.text
    )
    assert [t.source for t in tokens] == ["prompt", "prompt", "generated"]
    assert [encoded.text[slice(*t.span)] for t in tokens] == ["dog", " nice", " dog"]


def test_other_words_are_prompt_only_tokens_with_the_same_ids_everywhere():
    here, there = ToyVocabulary(["dog"]), ToyVocabulary(["dog"])
    there.encode("something else first")
    ids = here.encode("The dog 法国 The").ids
    assert ids == there.encode("The dog 法国 The").ids
    assert ids[1] == 0
    assert ids[0] == ids[3] != ids[2]
    assert min(ids[0], ids[2]) >= here.size == 1
    assert here.text(ids) == "The dog 法国 The"
    assert here.label(ids[2]) == "法国"
    assert here.search("The") == ()


def test_an_end_word_in_a_prompt_is_marked_unless_it_is_meant_literally():
    words = ToyVocabulary(["dog", "<end>"], end_ids=[1])
    encoded = words.encode("a <end>")
    assert encoded.ids[1] == 1
    assert encoded.notes == ("control_in_prompt",)
    assert [(c.start, c.stop, c.id) for c in words.control_spans("a <end>")] == [(2, 7, 1)]
    literal = words.encode("a <end>", literal=True)
    assert literal.ids[1] > 1
    assert literal.notes == ()
    assert words.text(literal.ids) == "a <end>"
    assert not words.is_special(literal.ids[1])
    assert words.text([0, 1], skip_special=True) == "dog"


def test_half_characters_and_control_characters_are_visible():
    words = ToyVocabulary(["dog"])
    encoded = words.encode("\ud83d dog")
    assert encoded.text == "\ufffd dog"
    assert encoded.notes == ("surrogate_replaced",)
    assert words.label(words.encode("a\0b").ids[0]) not in ("", "a\0b")


def test_words_of_prompts_do_not_pile_up_without_end():
    words = ToyVocabulary(["dog"])
    first = words.encode("first").ids[0]
    words.encode(" ".join(f"w{i}" for i in range(MOST_WORDS)))
    with pytest.raises(Fault, match="does not exist"):
        words.text([first])
    assert words.encode("first").ids[0] == first


# --- tables


def test_the_example_is_a_good_table_on_which_greedy_is_not_best():
    table = read_table(DEFAULT)
    assert table.vocab == default_table().vocab
    engine = open_toy()
    greedy = run(engine, RunSpec(prompt="The", settings=Settings(strategy="greedy")))
    forced = Settings(strategy="greedy", forced=((0, 1),))
    moon = run(engine, RunSpec(prompt="The", settings=forced))
    assert engine.vocabulary.text(moon.ids) == "The moon shines brightly <end>"
    assert moon.logprob > greedy.logprob


def test_a_file_is_read(tmp_path):
    path = tmp_path / "two.json"
    path.write_text(json.dumps(GOOD), encoding="utf-8")
    engine = open_toy(path)
    assert engine.info.name == "toy:two.json"
    assert engine.info.end_ids == engine.vocabulary.end_ids == (1,)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"vocab": None}, '"vocab" must be a list of different words'),
        ({"vocab": ["a", "a"]}, '"vocab" must be a list of different words'),
        (
            {"vocab": ["a", "\ud800"]},
            '"vocab" must be a list of different words without spaces or br',
        ),
        ({"vocab": ["a", "b c"]}, "words without spaces"),
        ({"vocab": []}, "different words"),
        ({"end": ["c"]}, r'"end" must be a list of words of the vocabulary, but it is \[\'c\'\]'),
        ({"end": "b"}, '"end" must be a list'),
        ({"next": {}}, 'needs "vocab", a list of words, and "next"'),
        ({"next": []}, 'needs "vocab"'),
        ({"next": {"*": [1]}}, r"The row '\*' has 1 probabilities, but the vocabulary has 2 words"),
        ({"next": {"*": 1}}, "has 0 probabilities"),
        ({"next": {"a": [0.5, 0.4]}}, "of the row 'a' add up to 0.9, but they must add up to 1"),
        ({"next": {"a": [1.5, -0.5]}}, "The row 'a' holds 1.5, but a probability is a number"),
        ({"next": {"a": ["x", 1]}}, "The row 'a' holds 'x'"),
        ({"next": {"a": [True, 0]}}, "The row 'a' holds True"),
        ({"next": {"a": [math.nan, 1]}}, "The row 'a' holds nan"),
        ({"next": {"a x": [1, 0]}}, "The row 'a x' names the word 'x', which is not in"),
        ({"next": {"a  b": [1, 0]}}, "names the word ''"),
    ],
)
def test_a_wrong_table_is_answered_with_a_sentence(change, said):
    with pytest.raises(Fault, match=said):
        parse_table({**GOOD, **change})


@pytest.mark.parametrize("content", [None, [], "x", 3, {}, {"vocab": ["a"]}])
def test_what_is_no_table_is_answered_with_a_sentence(content):
    with pytest.raises(Fault, match="A toy model needs"):
        parse_table(content)


def test_rows_may_miss_one_by_a_millionth():
    parse_table({**GOOD, "next": {"*": [0.5, 0.5 + 9e-7]}})
    with pytest.raises(Fault, match="add up to"):
        parse_table({**GOOD, "next": {"*": [0.5, 0.5 + 2e-6]}})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "is not valid JSON .*line 1"),
        (b"\xff", "is not valid JSON .not UTF-8"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"", "is not valid JSON"),
    ],
)
def test_a_broken_file_is_answered_with_a_sentence(tmp_path, data, said):
    path = tmp_path / "bad.json"
    path.write_bytes(data)
    with pytest.raises(Fault, match=said):
        read_table(path)


def test_a_missing_file_or_a_folder_is_answered_with_a_sentence(tmp_path):
    with pytest.raises(Fault, match="There is no file"):
        read_table(tmp_path / "none.json")
    with pytest.raises(Fault, match="cannot be read"):
        read_table(tmp_path)


# --- numbers typed by hand


def test_typed_probabilities_are_a_model():
    engine = ToyEngine(
        toy_from_numbers(probabilities=[0.5, 0.3, 0.2], labels=["the", "the", "a b"])
    )
    assert engine.vocabulary.labels()[:2] == ("the", "the")
    made = run(engine, RunSpec(prompt="x", settings=Settings(strategy="greedy", max_new=3)))
    assert [s.choice.probability_model for s in made.steps] == pytest.approx([0.5] * 3)


def test_typed_probabilities_are_divided_by_their_sum():
    table = toy_from_numbers(probabilities=[0.333, 0.333, 0.333])
    assert np.exp(table.logits["*"]) == pytest.approx([1 / 3] * 3)
    assert table.vocab == ("a", "b", "c")


def test_typed_logits_stay_as_they_are():
    assert toy_from_numbers(logits=[3, 2, -1]).logits["*"].tolist() == [3, 2, -1]


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"probabilities": [0.5, 0.3]}, "add up to 0.8, but they must add up to 1"),
        ({"probabilities": [1.5, -0.5]}, "The probability of token 1 is -0.5"),
        ({"probabilities": [math.nan, 1]}, "The probability of token 0 is nan"),
        ({"probabilities": [math.inf, 1]}, "The probability of token 0 is inf"),
        ({"probabilities": []}, "must be one list of numbers"),
        ({"probabilities": ["x"]}, "must be one list of numbers"),
        ({"probabilities": [[1.0]]}, "must be one list of numbers"),
        ({"logits": ["x"]}, "The scores must be a list of numbers"),
    ],
)
def test_wrong_numbers_are_answered_with_a_sentence(numbers, said):
    with pytest.raises(Fault, match=said):
        toy_from_numbers(**numbers)


def test_letters_go_on_after_z():
    assert [letters(i) for i in (0, 25, 26, 27, 702)] == ["a", "z", "aa", "ab", "aaa"]


def test_a_long_list_of_end_words_takes_no_time():
    words = [f"w{i}" for i in range(40_000)]
    table = parse_table({"vocab": words, "end": words[::-1], "next": {"": [1] + [0] * 39_999}})
    assert table.end_ids == tuple(range(40_000))
