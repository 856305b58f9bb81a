"""`lab training` and `lab speculative`: records for machines, lines for people, sentences."""

import json

import pytest

from core.cli.lab_speculative import _lines as _draft_lines
from core.cli.lab_training import _lines
from core.cli.main import main
from core.decode.generate import generate
from core.faults import Fault
from core.settings import Settings

TRAIN = ["lab", "training", "the thing is", "--model", "tiny", "--steps", "2", "--rate", "1e-3"]
DRAFT = ["lab", "speculative", "the thing", "--model", "tiny", "--draft", "#bits:4:group:32"]


def asked(capsys, *words: str) -> dict:
    assert main([*words, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def test_training_as_json(capsys):
    found = asked(capsys, *TRAIN, "--other", "a thing")
    assert found["complete"]
    assert len(found["losses"]) == 3
    assert found["losses"] == sorted(found["losses"], reverse=True)
    memory = found["memory"]
    assert memory["inference"]["moving_weights"] == 0
    assert memory["training"]["moving_weights"] == 36_384
    assert memory["training"]["gradients"] == 4 * 36_384
    parts = ("weights", "gradients", "optimizer_states", "activations")
    assert memory["training"]["bytes"] == sum(memory["training"][part] for part in parts)
    assert found["frozen"]["untouched"]
    assert found["frozen"]["sum_before"] == found["frozen"]["sum_after"]
    assert [each["name"] for each in found["forgotten"]] == ["prose", "facts", "code", "chinese"]
    assert set(found["times"]) == {"inference", "forward", "backward", "update", "step"}
    assert len(found["prompt"]["before"]["next"]) == 10


def test_training_in_lines(capsys):
    assert main(TRAIN) == 0
    said = capsys.readouterr().out
    assert "weights that move                0          36,384" in said
    # "bytes" heads the table; its last row is their sum.
    assert [line.split()[0] for line in said.splitlines()].count("bytes") == 1
    assert any(line.startswith("together ") for line in said.splitlines())
    assert "served model bit-equal" in said
    assert "copy gone" in said


def test_lines_of_a_training_say_what_its_record_says():
    record = {
        "model": "m", "machine": {"processor": "p", "threads": 2, "date": "today"}, "memory": None,
        "times": {"inference": {"median": 3.0}, "step": {"median": 7.0}}, "losses": [2.0, 1.5],
        "prompt": None, "other": None, "frozen": None,
        "forgotten": [{"name": "x", "kl": 0.5, "top1": 0.75, "before": 3.0, "after": 4.0}],
        "tensors_moved_most": [{"name": "w", "relative": 0.25}],
    }  # fmt: skip
    assert list(_lines(record)) == [
        "m on p, 2 threads, today",
        "measured: inference 3 ms · step 7 ms",
        "loss: 2.000 1.500",
        "x          KL 0.5000 · same favourite 75.0% · perplexity 3.00 → 4.00",
        "moved most: w 25.00%",
        "stopped before the end",
    ]


def test_drafting_as_json(capsys, tiny):
    found = asked(capsys, *DRAFT, "--max-new", "12", "--gamma", "3")
    prompt = tiny.vocabulary.read("the thing").ids
    settings = Settings(strategy="greedy", max_new=12)
    assert found["ids"] == [step.choice.id for step in generate(tiny, prompt, settings)]
    assert found["same_text"]
    assert found["draft"] == "tiny#bits:4:group:32"
    judged = [t for r in found["rounds"] for t in r["drafted"] if t["kept"] is not None]
    assert found["judged"] == len(judged)
    assert found["accepted"] == sum(t["kept"] for t in judged)
    alpha = found["acceptance"]
    assert alpha == found["accepted"] / found["judged"]
    assert found["expected_tokens_per_pass"] == pytest.approx((1 - alpha**4) / (1 - alpha))
    assert set(found["ms"]) == {"plain_pass", "draft_pass", "check_pass", "round"}


def test_the_draft_and_the_model_keep_their_own_figures(capsys, tiny):
    found = asked(capsys, *DRAFT[:-1], "#int8", "--max-new", "2", "--gamma", "1")
    assert found["bytes"]["model"] == tiny.info.bytes_in_memory
    assert found["bytes"]["draft"] < found["bytes"]["model"]
    said = "\n".join(
        _draft_lines(
            {
                **found, "ms_a_token": 2.0, "plain_ms_a_token": 5.0, "times_as_fast": 2.5,
                "accepted": 3, "judged": 4, "acceptance": 0.75, "mean_overlap": 0.7,
                "tokens_per_pass": 1.5, "expected_tokens_per_pass": 1.75,
            }
        )
    )  # fmt: skip
    assert "measured: 2.0 ms a token, without a draft 5.0 ms: 2.50 times as fast" in said
    assert "kept 3 of 4 judged (75.0%; Σ min(p, q) on average 70.0%)" in said
    assert "1.50 tokens a pass, by the formula 1.75" in said


def test_drafting_in_lines(capsys):
    assert main([*DRAFT, "--max-new", "6", "--strategy", "sample", "--top-k", "3"]) == 0
    said = capsys.readouterr().out
    assert "✓ kept" in said
    assert "tokens a pass, by the formula" in said
    assert "times as fast" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lab", "training", "a", "--model", "tiny"], "single token"),
        ([*TRAIN, "--rate", "1"], "must be"),
        ([*TRAIN, "--rate", "x"], "rate"),
        ([*TRAIN, "--optimizer", "x"], "adamw, sgd"),
        ([*TRAIN, "--model", "toy"], "table of probabilities"),
        ([*TRAIN, "--edit", "int8"], "cannot be trained"),
        ([*DRAFT, "--gamma", "0"], "gamma"),
        ([*DRAFT, "--draft", "nothing"], "nothing"),
        ([*DRAFT, "--draft", "#nothing"], "nothing"),
        ([*DRAFT, "--top-k", "0"], "top-k"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(capsys, words, said):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


@pytest.mark.parametrize("name", ["--prompt", "--other"])
def test_an_empty_prompt_is_refused_and_never_replaced(capsys, name):
    assert main([*TRAIN, name, ""]) == 2
    assert str(Fault("empty_prompt")) in capsys.readouterr().err
