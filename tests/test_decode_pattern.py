"""The pattern: which tokens it allows, against Python's own regular expressions; its limits."""

import dataclasses
import itertools
import re
import time

import numpy as np
import pytest
import regex

from core.decode import Past, choose, rules_for, run
from core.decode.pattern import Pattern
from core.engine.toy import ToyEngine, ToyVocabulary, open_toy, parse_table
from core.faults import Fault
from core.models.catalog import resolve
from core.settings import RunSpec, Settings
from core.text.opened import open_vocabulary
from tests.vocabularies import byte_level, sentencepiece, words

WORDS = ("a", "b", "abc", "c.", "日本")
END = 5
GREEDY = Settings(strategy="greedy")
PATTERNS = (
    "a b",
    "(a |b )*c\\.",
    ".*",
    "",
    "a?",
    "(a b ){2}c\\.",
    "[ab ]+",
    "\\p{Han}+( a)?",
    "[^a]*",
    "日.",
    "a|b|a b c\\.",
    "/|a",
    " a b",
    "^a b$",
    "^a$|^b a$",
    " ?a .*",
)


@pytest.fixture(scope="module")
def toy_words():
    return ToyVocabulary((*WORDS, "<end>"), (END,))


@pytest.fixture(scope="module")
def vocabulary(default_model):
    return open_vocabulary(resolve(default_model))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_token_is_allowed_when_the_text_with_it_can_still_match(pattern, toy_words):
    compiled = Pattern(pattern, toy_words)
    for count in range(4):
        for ids in itertools.product(range(END), repeat=count):
            allowed = compiled.allowed(ids)
            texts = [toy_words.text([*ids, token]) for token in range(END)]
            expected = [bool(regex.fullmatch(pattern, text, partial=True)) for text in texts]
            assert allowed[:END].tolist() == expected, ids
            # The end, exactly where the text matches.
            matches = regex.fullmatch(pattern, toy_words.text(ids)) is not None
            assert allowed[END] == matches, ids


def test_what_broke_the_pattern_leaves_nothing(toy_words):
    compiled = Pattern("a b", toy_words)
    assert not compiled.allowed([1]).any()
    assert not compiled.allowed([0, 1, 0]).any()
    assert not compiled.allowed([0, 0]).any()


def test_answers_do_not_depend_on_what_was_asked_before(toy_words):
    pattern = Pattern("(a |b ){3}c\\.", toy_words)
    asked = [(), (0,), (0, 1), (1, 1, 1), (0, 3), (4,)]
    first = [pattern.allowed(ids).tolist() for ids in asked]
    assert [pattern.allowed(ids).tolist() for ids in asked[::-1]] == first[::-1]


@pytest.mark.parametrize(
    ("vocabulary", "text"),
    [
        (byte_level(), "a hi 法 é"),
        (sentencepiece(), " a hi 法国"),
        (sentencepiece(), "hi a 法x"),
        (sentencepiece(prefixed=True), "hi a 法国"),
        (words(), "the cat sat the cat"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_the_pattern_reads_what_every_family_of_tokenizers_writes(vocabulary, text):
    ids = [id for id in vocabulary.encode(text).ids if not vocabulary.is_special(id)]
    assert vocabulary.text(ids) == text
    compiled = Pattern(re.escape(text), vocabulary)
    end = vocabulary.end_ids[0]
    for count, token in enumerate(ids):
        allowed = compiled.allowed(ids[:count])
        assert allowed[token]
        assert not allowed[end]
    assert np.flatnonzero(compiled.allowed(ids)).tolist() == [end]


# --- the real vocabulary


@pytest.mark.model
def test_every_way_to_write_a_text_is_possible(vocabulary):
    allowed = np.flatnonzero(Pattern("Paris|London", vocabulary).allowed([]))
    texts = {vocabulary.text([id]) for id in allowed}
    assert {"P", "Pa", "Par", "Paris", "L", "Lo", "London"} <= texts
    assert all("Paris".startswith(text) or "London".startswith(text) for text in texts)


@pytest.mark.model
def test_tokens_that_are_parts_of_a_character(vocabulary):
    ids = vocabulary.encode("都").ids
    compiled = Pattern("[\\u4e00-\\u9fff]+", vocabulary)
    for count in range(len(ids)):
        allowed = compiled.allowed(ids[:count])
        assert allowed[ids[count]]
        assert not allowed[vocabulary.end_ids[0]]
    assert compiled.allowed(ids)[vocabulary.end_ids[0]]
    assert not compiled.allowed(())[vocabulary.encode("a").ids[0]]


def test_control_tokens_in_the_text_are_skipped(toy_words):
    compiled = Pattern("a b", toy_words)
    assert np.flatnonzero(compiled.allowed([END])).tolist() == [0]
    assert np.flatnonzero(compiled.allowed([END, 0, END])).tolist() == [1]


@pytest.mark.model
def test_control_tokens_are_no_text(vocabulary):
    allowed = np.flatnonzero(Pattern("[\\s\\S]+", vocabulary).allowed([]))
    assert allowed.size > 48_000
    assert not any(vocabulary.is_special(int(id)) for id in allowed)


@pytest.mark.model
def test_random_walks_end_in_a_match(vocabulary):
    pattern = " ?[A-Z][a-z]{2,6}, [0-9]{1,3}(st|nd|th)\\."
    compiled = Pattern(pattern, vocabulary)
    for seed in range(10):
        rng, ids = np.random.default_rng(seed), []
        while (possible := np.flatnonzero(compiled.allowed(ids))).size:
            token = int(rng.choice(possible))
            if token in vocabulary.end_ids:
                break
            ids.append(token)
        assert re.fullmatch(pattern, vocabulary.text(ids)), vocabulary.text(ids)


@pytest.mark.model
def test_a_step_over_a_whole_vocabulary_is_quick(vocabulary):
    compiled = Pattern("([a-z]+[ ,.]?)*", vocabulary)
    ids = vocabulary.encode("it was a dark and stormy night " * 60).ids
    compiled.allowed(ids)
    times = []
    for _ in range(5):
        start = time.thread_time()
        compiled.allowed(ids)
        times.append(time.thread_time() - start)
    assert min(times) < 0.02


# --- hostile ones


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("[", "unclosed character class"),
        ("a(", "unclosed group"),
        ("*", "repetition operator missing expression"),
        ("(?=a)", "look-around"),
        ("\\q", "unrecognized escape sequence"),
        ("\\bfoo", "lookarounds not supported"),
        ("(a)\\1", "backreferences are not supported"),
    ],
)
def test_what_is_no_regular_expression_is_refused_in_words(pattern, reason, toy_words):
    with pytest.raises(Fault, match="is not a regular expression that can be used here") as caught:
        Pattern(pattern, toy_words)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "pattern", ["a/b", "/", "\\/", "/ start: x", "a\nb", '"', "\\n", "(?i)A", "a{0}", "{", "}"]
)
def test_no_pattern_breaks_out_of_the_grammar(pattern, toy_words):
    try:
        expected = bool(re.fullmatch(pattern, "a"))
    except re.error:
        expected = False
    try:
        allowed = Pattern(pattern, toy_words).allowed([0])
    except Fault as fault:
        refused = fault.code
    else:
        refused = None
        assert allowed[END] == expected
    assert refused in (None, "pattern_not_understood")


@pytest.mark.model
@pytest.mark.parametrize(
    "pattern",
    [
        "(a{1000}){1000}",
        "(?s:.{0,500}){0,500}",
        "(.{0,60}a.{0,60}b){0,60}",
        "((.*a){20}b){20}",
        "(.*(a|b).{30}){2}",
        "(((((((((a*)*)*)*)*)*)*)*)*)*",
        "(a|aa|aaa)*b" * 30,
        "(" * 200 + "a" + ")*" * 200,
        "\\p{L}{0,200}" * 20,
        "(a?){200}(b?){200}(c?){200}",
        "|".join("ab" * i for i in range(1, 30))[:500],
    ],
)
def test_hostile_patterns_end_soon(pattern, vocabulary):
    ids = vocabulary.encode("abaabab" * 20).ids
    start = time.thread_time()
    codes = set()
    try:
        compiled = Pattern(pattern[:500], vocabulary)
        for count in range(0, len(ids), 4):
            compiled.allowed(ids[:count])
    except Fault as fault:
        codes.add(fault.code)
    assert codes <= {"pattern_too_heavy", "pattern_not_understood"}
    assert time.thread_time() - start < 5


# --- whole runs


def written(engine, **settings):
    made = run(engine, RunSpec("toy", "The", dataclasses.replace(GREEDY, **settings)))
    return engine.vocabulary.text([s.choice.id for s in made.steps], skip_special=True), made


def test_a_run_matches_as_a_whole_and_ends_where_it_must():
    toy = open_toy()
    text, made = written(toy, pattern="moon( [a-z]+){2}")
    assert re.fullmatch("moon( [a-z]+){2}", text)
    assert made.stop == "end_token"
    assert made.steps[0].choice.rank == 2
    # The end token is the only one left, whatever the model thinks of it.
    assert made.steps[-1].choice.probability_filtered == 1
    assert made.steps[-1].choice.probability_model < 1
    text, made = written(toy, strategy="sample", pattern="sun.*", seed=3)
    assert text.startswith("sun")


def test_where_the_vocabulary_has_no_end_token_the_run_stops_behind_the_match():
    engine = ToyEngine(parse_table({"vocab": ["a", "b"], "next": {"*": [0.6, 0.4]}}))
    text, made = written(engine, pattern="a b")
    assert (text, made.stop) == ("a b", "no_token_left")
    text, made = written(engine, pattern="a c")
    assert (text, made.stop) == ("a", "no_token_left")
    with pytest.raises(Fault, match="The rule pattern leaves no token"):
        written(engine, pattern="c")


def test_a_forced_token_may_break_the_pattern_and_ends_the_run():
    text, made = written(open_toy(), pattern="sun .*", forced=((1, 1),))
    assert text == "sun moon"
    text, made = written(open_toy(), pattern="sun shines", forced=((0, 1), (1, 2)))
    assert [s.choice.rule for s in made.steps] == ["forced", "forced"]
    assert (text, made.stop) == ("moon shines", "no_token_left")


def test_the_stage_is_recorded(toy_words):
    settings = Settings(pattern="b.*", top_k=2)
    rules = rules_for(settings, toy_words)
    row = np.log([0.4, 0.2, 0.1, 0.1, 0.1, 0.1])
    choice = choose(row, settings, step=0, past=Past((0,), 1), rules=rules)
    stage = choice.stages[0]
    assert (stage.name, stage.parameter, stage.survivors) == ("pattern", "b.*", 1)
    assert stage.mass == pytest.approx(0.2)
    assert choice.id == 1


def test_a_bad_pattern_is_one_sentence_for_the_whole_run():
    with pytest.raises(Fault, match="The pattern is not a regular"):
        written(open_toy(), pattern="a(")


@pytest.mark.model
def test_a_real_run_matches(smollm2):
    settings = Settings(pattern=" (Paris|London|Rome), [a-z ]{5,40}\\.", seed=1, max_new=40)
    made = run(smollm2, RunSpec("smollm2-135m", "The capital of France is", settings))
    text = smollm2.vocabulary.text([s.choice.id for s in made.steps], skip_special=True)
    assert made.stop == "end_token"
    assert re.fullmatch(settings.pattern, text)
