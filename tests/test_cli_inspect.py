"""`inspect`: tokens and merges as JSON and for people, and how it refuses."""

from functools import partial

import pytest


@pytest.fixture
def cli(cli):
    return partial(cli, "inspect")


@pytest.fixture
def as_json(as_json):
    return lambda *argv: as_json(*argv, "--model", "tiny")


def test_the_tokens_of_a_prompt(as_json):
    found = as_json("the 法<|im_end|>", "--what", "tokens")
    assert list(found) == ["model", "prompt", "text", "tokens", "notes"]
    assert found["notes"] == ["control_in_prompt"]
    rows = [(t["piece"], t["bytes"], t["span"], t["group"], t["special"]) for t in found["tokens"]]
    assert rows == [
        ("the", "74 68 65", [0, 3], [0, 1], False),
        ("Ġ", "20", [3, 4], [1, 2], False),
        ("æ³", "E6 B3", [4, 5], [2, 4], False),
        ("ķ", "95", [4, 5], [2, 4], False),
        ("<|im_end|>", "3C 7C 69 6D 5F 65 6E 64 7C 3E", [5, 15], [4, 5], True),
    ]


def test_one_token_and_the_last(as_json):
    assert [t["piece"] for t in as_json("in the", "--position", "1")["tokens"]] == ["Ġthe"]
    assert [t["piece"] for t in as_json("in the", "--position", "-1")["tokens"]] == ["Ġthe"]


def test_literal_and_chat(as_json):
    literal = as_json("<|im_end|>", "--literal")
    assert not any(t["special"] for t in literal["tokens"])
    chat = as_json("the", "--chat")
    assert chat["text"].startswith("<|im_start|>user\nthe<|im_end|>")


def test_the_merges_of_a_word(as_json):
    found = as_json("in the", "--what", "merges", "--position", "1")
    assert (found["kind"], found["rules"], found["pre_tokenizer"]) == ("bpe", 19, ["ByteLevel"])
    (word,) = found["words"]
    assert (word["text"], word["normalized"], word["positions"]) == (" the", "Ġthe", [1, 2])
    assert word["start"] == ["␣", "t", "h", "e"]
    assert [(m["left"], m["right"], m["rank"], m["at"], m["result"]) for m in word["merges"]] == [
        ("t", "h", 0, 1, "th"),
        ("th", "e", 1, 1, "the"),
        ("␣", "the", 3, 0, "␣the"),
    ]
    assert word["merges"][0]["competed"] == [
        {"at": 1, "left": "t", "right": "h", "rank": 0},
        {"at": 0, "left": "␣", "right": "t", "rank": 2},
    ]
    assert word["ids"] == [word["merges"][-1]["id"]]


def test_merges_of_every_word_for_people(cli):
    code, out, err = cli("in the<|im_end|>", "--what", "merges", "--model", "tiny")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "bpe, 19 merges; normalizer: none; cut by: ByteLevel",
        "",
        "'in', tokens 0–0: in",
        "          i n",
        "       4  in",
        "",
        "' the', tokens 1–1: ␣the",
        "          ␣ t h e",
        "       0  ␣ th e   (before ␣ t 2)",
        "       1  ␣ the",
        "       3  ␣the",
        "",
        "'<|im_end|>', tokens 2–2: <|im_end|>",
        "  nothing to merge (added)",
    ]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["a", "--what", "colour"], "There is no part 'colour' to inspect"),
        (["a", "--position", "7"], "position is 7, but it must be from 0 to 0"),
        (["a", "--position", "x"], "position must be a whole number"),
        (["a", "--what", "merges", "--position", "-2"], "position is -2"),
        ([""], "The prompt is empty"),
        (["a", "--json", "/nowhere/x.json"], "cannot be written"),
        (["a", "--model", "org/name"], "org/name is not on this machine yet"),
        (["a", "--model", "nonsense"], "There is no model 'nonsense'"),
        (["a", "--model", "toy", "--what", "merges"], "The toy takes each word"),
        ([], "The following arguments are required: PROMPT"),
    ],
)
def test_what_it_refuses_in_one_sentence(cli, argv, said):
    code, out, err = cli(*argv, *([] if "--model" in argv else ["--model", "tiny"]))
    assert (code, out) == (2, "")
    assert err.startswith(said) or said in err
    assert err.count("\n") == 1


@pytest.mark.model
def test_only_the_tokenizer_of_the_default_model_is_opened(cli, default_model, monkeypatch):
    monkeypatch.setattr("core.cli.question.build", lambda *_: pytest.fail("weights were loaded"))
    code, out, _ = cli("The capital", "--what", "merges", "--model", default_model)
    assert code == 0
    assert "48,900 merges" in out
    assert out.splitlines()[-1].endswith("␣capital")
