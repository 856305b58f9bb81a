"""``run --strategy beam``: what it prints, and how it refuses."""

import json
import math

import pytest

from core.engine.toy_classics import classic_path
from tests.decoding import TABLE

EARLY = f"toy:{classic_path('early_stopping')}"


@pytest.fixture
def as_json(as_json):
    return lambda *argv: as_json("run", *argv, "--strategy", "beam")


def test_the_promised_shape(as_json):
    found = as_json("once", "--model", EARLY, "--beams", "2", "--stop", "full", "--max-new", "5")
    assert list(found) == [
        "model",
        "settings",
        "prompt",
        "hypotheses",
        "others",
        "steps",
        "stop",
        "forwards",
        "tokens_evaluated",
        "ms",
    ]
    assert found["settings"] == {
        "strategy": "beam",
        "width": 2,
        "length_penalty": 0,
        "stop": "full",
        "nbest": None,
        "max_new": 5,
    }
    assert (found["stop"], found["forwards"], found["tokens_evaluated"]) == ("full", 5, 5)
    best, second = found["hypotheses"]
    for hypothesis in (best, second):
        assert list(hypothesis) == [
            "tokens",
            "text",
            "logprob",
            "score",
            "finished",
            "end",
            "steps",
        ]
        steps = hypothesis["steps"]
        assert [s["id"] for s in steps] == hypothesis["tokens"]
        total = math.fsum(s["token_logprob"] for s in steps)
        assert hypothesis["logprob"] == pytest.approx(total)
    assert (best["text"], best["tokens"], best["finished"]) == ("we", [0, 4], True)
    assert best["score"] == pytest.approx(math.log(0.24))
    assert [s["text"] for s in second["steps"]] == ["we", "walk", "<end>"]


def test_candidates_kept_and_lost_at_each_step(as_json):
    found = as_json("once", "--model", EARLY, "--beams", "2", "--stop", "full")
    step = found["steps"][1]
    assert [(c["text"], c["parent"], c["kept"], c["fate"]) for c in step["candidates"]] == [
        ("walk", 0, True, "live"),
        ("<end>", 0, True, "finished"),
        ("<end>", 1, False, "lost"),
        ("far", 1, True, "live"),
    ]
    lost = step["candidates"][2]
    assert (lost["reason"], lost["lost_to"]) == ("end_outside_beam", {"step": 1, "candidate": 1})
    assert lost["lost_by"] == pytest.approx(math.log(0.24 / 0.18))
    assert [c["probability"] for c in step["candidates"]] == pytest.approx([0.7, 0.3, 0.9, 0.1])
    assert step["beams"] == 2


def test_the_law(as_json, tmp_path):
    (law,) = TABLE["beam"]
    path = tmp_path / "law.json"
    path.write_text(json.dumps(law), encoding="utf-8")
    for width, expected in ((1, law["greedy"]), (2, law["width_2_best"])):
        argv = ["The", "--model", f"toy:{path}", "--beams", str(width), "--max-new", "2"]
        (best,) = as_json(*argv, "--length-penalty", "0", "--nbest", "1")["hypotheses"]
        assert best["text"].split() == expected["tokens"]
        assert best["logprob"] == pytest.approx(expected["logprob"], abs=1e-4)
        assert not best["finished"]


def test_a_negative_penalty_can_be_typed(as_json):
    argv = ["x", "--model", "toy", "--beams", "3", "--length-penalty"]
    for typed in ("-1", "-0.5"):
        best = as_json(*argv, typed)["hypotheses"][0]
        length = len(best["tokens"])
        assert best["score"] == pytest.approx(best["logprob"] / length ** float(typed))


def test_on_a_transformer(as_json):
    found = as_json("the 国", "--model", "tiny", "--beams", "3", "--max-new", "3", "--seed", "4")
    assert len(found["hypotheses"]) == 3
    assert [s["beams"] for s in found["steps"]] == [1, 3, 3]
    assert found["tokens_evaluated"] == len(found["prompt"]) + 6


def test_for_people(cli):
    code, out, err = cli("run", "once", "--model", EARLY, "--strategy", "beam", "--beams", "2")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["rank", "score", "Σ", "ln", "p", "end", "text"]
    assert lines[1].split() == ["1", "-1.1419", "-1.1419", "end", "token", "we␣walk␣home␣<end>"]
    assert lines[4] == "1 prompt token, 4 steps; no live beam can still win."
    assert lines[5].startswith("7 rows read in 4 passes, 7 tokens evaluated, ")


BAD = [
    ("--strategy beam --beams 0", "beams is 0, but it must be from 1 to 256"),
    ("--strategy beam --beams two", "beams must be a whole number, but it is 'two'"),
    ("--strategy beam --beams 2 --nbest 3", "nbest is 3, but it must be from 1 to 2"),
    ("--strategy beam --length-penalty nan", "length-penalty is nan, but it must be from -10"),
    ("--strategy beam --length-penalty much", "length-penalty must be a number"),
    ("--strategy beam --stop soon", "The stopping rule 'soon' is not known; choose one of: full"),
    ("--strategy beam --max-new 0", "max-new is 0, but"),
    (
        "--strategy beam --top-k 3",
        "Beam search compares the model's own probabilities, and --top-k",
    ),
    (
        "--strategy beam --temperature 0.5",
        "Beam search compares the model's own probabilities, and",
    ),
    ("--strategy beam --force 0:1", "Beam search compares the model's own probabilities, and --f"),
    ("--strategy beam --seed x", "seed must be a whole number"),
    ("--beams 3", "--beams belongs to beam search; add --strategy beam, or leave it off"),
    ("--strategy greedy --length-penalty 1", "--length-penalty belongs to beam search"),
]


@pytest.mark.parametrize(("line", "said"), BAD)
def test_bad_input_exits_2_with_one_sentence(cli, line, said):
    code, out, err = cli("run", "x", "--model", "toy", *line.split())
    assert (code, out) == (2, "")
    assert err.startswith(said), err
    assert err.count("\n") == 1


def test_an_empty_prompt_is_refused(cli):
    code, _, err = cli("run", " ", "--model", "toy", "--strategy", "beam")
    assert (code, err[:20]) == (2, "The prompt is empty;")


def test_sampled_beams(as_json):
    argv = ["x", "--model", "toy", "--beams", "3", "--beam-kind", "sampled", "--seed", "4"]
    found = as_json(*argv, "--temperature", "2", "--max-new", "3")
    assert found["settings"] == {
        "strategy": "beam",
        "width": 3,
        "length_penalty": 0,
        "stop": "best",
        "nbest": None,
        "max_new": 3,
        "kind": "sampled",
        "temperature": 2,
        "seed": 4,
    }
    best = max(h["ranked"] for h in found["hypotheses"])
    assert best == 0
    ranked = [c["ranked"] for c in found["steps"][0]["candidates"]]
    assert ranked == sorted(ranked, reverse=True)
    assert "group" not in found["steps"][0]["candidates"][0]
    other = as_json(*argv[:-1], "5", "--temperature", "2", "--max-new", "3")
    assert other["steps"] != found["steps"]


def test_diverse_beams(as_json):
    argv = ["x", "--model", "toy", "--beams", "4", "--beam-kind", "diverse"]
    found = as_json(*argv, "--groups", "4", "--diversity", "0.25", "--max-new", "2")
    assert (found["settings"]["groups"], found["settings"]["diversity"]) == (4, 0.25)
    assert {"temperature", "seed"}.isdisjoint(found["settings"])
    assert sorted(h["group"] for h in found["hypotheses"]) == [0, 1, 2, 3]
    second = [c for c in found["steps"][0]["candidates"] if c["group"] == 1]
    paid = [c["logprob"] - c["ranked"] for c in second]
    assert sorted(paid)[-1] == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--beam-kind odd", "The kind of beam search 'odd' is not known; choose one of: plain, "),
        ("--groups 2", "--groups belongs to diverse beams; add --beam-kind diverse"),
        ("--beam-kind sampled --diversity 1", "--diversity belongs to diverse beams"),
        ("--beam-kind diverse --beams 5", "5 beams cannot be dealt out evenly to 2 groups"),
        ("--beam-kind diverse --temperature 2", "Beam search compares the model's own"),
        ("--beam-kind sampled --temperature 0", "temperature is 0, but it must be above 0"),
        ("--beam-kind sampled --top-k 3", "Beam search compares the model's own"),
    ],
)
def test_kinds_refuse_what_is_not_theirs(cli, line, said):
    code, out, err = cli("run", "x", "--model", "toy", "--strategy", "beam", *line.split())
    assert (code, out) == (2, "")
    assert err.startswith(said), err
