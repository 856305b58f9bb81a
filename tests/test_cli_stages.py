"""The command line's further stages: typical-p, and what looks at the text so far."""

import json
import re

import pytest

from core.settings import Settings
from tests.decoding import TABLE

OLD = [
    "strategy",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "order",
    "seed",
    "max_new",
    "forced",
]
FLAGS = {
    "repetition_penalty": "--repetition-penalty",
    "presence_penalty": "--presence-penalty",
    "frequency_penalty": "--frequency-penalty",
    "no_repeat_ngram": "--no-repeat-ngram",
}


def texts(found):
    return [step["choice"]["text"] for step in found["steps"]]


def test_settings_keep_their_shape_while_the_further_ones_are_off(as_json):
    found = as_json("run", "The", "--model", "toy", "--max-new", "1")
    assert list(found["settings"]) == OLD
    assert found["settings"]["order"] == ["temperature", "top_k", "top_p", "min_p"]
    assert len(found["steps"][0]["stages"]) == 4


def test_those_that_are_on_are_named(as_json):
    argv = ["run", "The", "--model", "toy", "--max-new", "1", "--typical-p", "0.5"]
    found = as_json(*argv, "--ban", "sun", "--ban", "tonight", "--repetition-penalty", "1.5")
    settings = found["settings"]
    assert settings.keys() - set(OLD) == {"typical_p", "banned", "repetition_penalty"}
    assert settings["typical_p"] == 0.5
    assert settings["banned"] == ["sun", "tonight"]
    assert settings["order"] == ["temperature", "top_k", "top_p", "min_p", "typical_p"]
    stages = found["steps"][0]["stages"]
    assert [s["name"] for s in stages] == ["repetition_penalty", "banned", *settings["order"]]
    assert stages[1]["parameter"] == "sun\ntonight"
    assert [t["text"] for t in stages[1]["top"]] == ["moon"]
    assert texts(found) == ["moon"]


def test_every_stage_lists_its_likeliest_survivors(as_json):
    argv = ["run", "The", "--model", "toy", "--max-new", "1", "--top", "2", "--typical-p", "0.3"]
    for stage in as_json(*argv)["steps"][0]["stages"]:
        values = [t["probability"] for t in stage["top"]]
        assert values == sorted(values, reverse=True)
        assert len(values) == min(2, stage["survivors"])
        assert all(values)
    # The favourite, 0.5, tells 0.69 of the 0.94 nats that are expected; " moon" tells 0.92.
    assert [t["text"] for t in stage["top"]] == ["moon"]


def test_a_run_obeys_them(as_json):
    greedy = ["run", "The", "--model", "toy", "--strategy", "greedy"]
    assert texts(as_json(*greedy)) == ["sun", "shines", "brightly", "<end>"]
    assert texts(as_json(*greedy, "--ban", "sun"))[0] == "moon"
    found = as_json(*greedy, "--pattern", "moon( [a-z]+){2}")
    assert re.fullmatch("moon( [a-z]+){2}", found["text"])
    assert found["stop"] == "end_token"
    assert found["steps"][0]["choice"]["rank"] == 2
    assert found["steps"][0]["choice"]["probability_model"] == pytest.approx(0.4)
    assert found["steps"][0]["choice"]["probability_filtered"] == 1


def test_a_run_that_can_go_nowhere_stops_and_says_so(cli, as_json, tmp_path):
    path = tmp_path / "two.json"
    path.write_text('{"vocab": ["a", "b"], "next": {"*": [0.6, 0.4]}}', encoding="utf-8")
    argv = ["run", "x", "--model", f"toy:{path}", "--strategy", "greedy", "--no-repeat-ngram", "1"]
    found = as_json(*argv)
    assert (texts(found), found["stop"]) == (["a", "b"], "no_token_left")
    assert "2 new; the rules leave no token that could come next." in cli(*argv)[1]
    code, out, err = cli(*argv, "--ban", "a", "--ban", "b")
    assert (code, out) == (2, "")
    assert err == (
        "The rule banned leaves no token that could come next; loosen it or switch it off.\n"
    )


@pytest.mark.parametrize(
    "law", [law for law in TABLE["processors"] if "banned" not in law], ids=lambda law: law["law"]
)
def test_choose_keeps_the_laws(as_json, law):
    argv = ["choose", "--logits", json.dumps(law["logits"])]
    # The ids of --past count as generated; some laws are about a prompt before them.
    whole = {"repetition_penalty", "no_repeat_ngram"} & law.keys()
    past = law["ids"] if whole else law["ids"][law["prompt_length"] :]
    argv += ["--past", json.dumps(past)]
    for name, flag in FLAGS.items():
        if name in law:
            argv += [flag, str(law[name])]
    stages = as_json(*argv)["stages"]
    possible = [id for id, score in enumerate(law["scores"]) if score is not None]
    assert stages[-1]["keeps"] == possible
    scores = [score for score in law["scores"] if score is not None]
    p = stages[-1]["probabilities"]
    for id, score in zip(possible, scores, strict=True):
        assert p[id] / p[possible[0]] == pytest.approx(2.718281828459045 ** (score - scores[0]))


def test_choose_without_a_past_has_an_empty_one(as_json):
    for past in ([], ["--past", "[]"], ["--past", ""]):
        stages = as_json("choose", "--logits", "[2,1]", "--presence-penalty", "5", *past)["stages"]
        assert stages[0]["name"] == "presence_penalty"
        assert stages[0]["probabilities"] == stages[1]["probabilities"]


def test_choose_for_people_shows_them_in_the_same_table(cli):
    argv = ["choose", "--logits", "[2,-1]", "--repetition-penalty", "2", "--past", "[0]"]
    code, out, err = cli(*argv)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("repetition_penalty       2  keeps 2 (1.0000)  0: 0.8808")
    assert lines[1].startswith("temperature              1  keeps 2")


BAD = [
    ("run x --typical-p 0", "typical-p is 0, but it must be above 0 and at most 1"),
    ("run x --typical-p much", "typical-p must be a number, but it is 'much'"),
    ("run x --repetition-penalty 0", "repetition-penalty is 0, but it must be from 0.01 to 10"),
    ("run x --presence-penalty 11", "presence-penalty is 11, but"),
    ("run x --frequency-penalty nan", "frequency-penalty is nan, but"),
    ("run x --no-repeat-ngram 0", "no-repeat-ngram is 0, but it must be from 1 to 100"),
    ("run x --no-repeat-ngram 1.5", "no-repeat-ngram must be a whole number"),
    (f"run x --pattern {'a' * 501}", "The pattern may have at most 500 characters"),
    (f"run x --ban {'a' * 501}", "At most 50 banned texts of 500 characters"),
    (
        "run x --model toy --pattern [",
        "here (unclosed character class); correct it",
    ),
    ("run x --model toy --pattern \udce9", "The rule pattern leaves no token"),
    ("run x --model toy --pattern nothing", "The rule pattern leaves no token"),
    ("run x --strategy beam --ban a", "--ban would change them"),
    ("run x --strategy beam --typical-p 0.5", "--typical-p would change them"),
    ("run x --strategy beam --repetition-penalty 2", "--repetition-penalty would change them"),
    ("run x --pattern=--", ""),
    ("run x --ban=--", ""),
    ("choose --probs 1 --pattern a", "--pattern needs the tokens of a model"),
    ("choose --probs 1 --ban a", "--ban needs the tokens of a model"),
    ("choose --probs 1 --past a", "--past must be a list of numbers, such as [2, 0]"),
    ("choose --probs 1 --past [-1]", "--past must be a list of numbers, such as [2, 0]"),
    ("choose --probs 1 --past [0.5]", "--past must be a list of numbers, such as [2, 0]"),
    ("choose --probs 1 --past [1e99]", "--past must be a list of numbers, such as [2, 0]"),
    ("choose --probs 1 --past [inf]", "--past must be a list of numbers, such as [2, 0]"),
    ("choose --probs 1 --past [0] --no-repeat-ngram 1", "The rule no-repeat-ngram leaves no token"),
]


@pytest.mark.parametrize(("line", "expected"), BAD, ids=[line[:60] for line, _ in BAD])
def test_what_the_reader_can_mend_is_one_sentence(cli, line, expected):
    code, out, err = cli(*line.split(" "))
    assert (code, out) == (2, "")
    assert expected in err
    assert err.count("\n") == 1


def test_every_further_setting_can_be_typed(as_json):
    values = {
        "--typical-p": "0.9",
        "--repetition-penalty": "1.1",
        "--presence-penalty": "0.1",
        "--frequency-penalty": "-0.1",
        "--no-repeat-ngram": "9",
        "--ban": "tonight",
        "--pattern": ".*",
    }
    argv = [part for pair in values.items() for part in pair]
    found = as_json("run", "The", "--model", "toy", "--max-new", "1", *argv)["settings"]
    missing = set(Settings.__dataclass_fields__) - found.keys()
    assert missing == {"rolls"}
