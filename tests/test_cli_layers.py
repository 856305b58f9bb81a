"""`inspect --what lens|residual`: records that add up, faults in one sentence."""

import json

import numpy as np
import pytest

from core.cli.main import main
from core.decode import probabilities


def asked(capsys, *words: str) -> dict:
    assert main(["inspect", "the thing", "--model", "tiny", *words, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_last_lens_row_is_the_models_own(capsys, tiny):
    record = asked(capsys, "--what", "lens")
    ids = tiny.vocabulary.read("the thing").ids
    own = probabilities(tiny.forward(ids).logits)
    last = record["layers"][-1]
    assert [row["layer"] for row in record["layers"]] == [0, 1]
    for row, model in zip(last["top"], record["model_distribution"], strict=True):
        assert row["id"] == model["id"]
        assert row["probability"] == pytest.approx(own[row["id"]], abs=1e-5)
        assert model["probability"] == pytest.approx(own[row["id"]], abs=1e-6)
    assert record["followed"]["id"] == int(own.argmax())
    assert last["followed_rank"] == 1
    assert record["largest_difference"] < 1e-5


def test_an_earlier_position_follows_the_next_token_of_the_prompt(capsys, tiny):
    ids = tiny.vocabulary.read("the thing").ids
    record = asked(capsys, "--what", "lens", "--position", "0", "--layer", "1")
    assert record["followed"]["id"] == ids[1]
    assert [row["layer"] for row in record["layers"]] == [1]
    assert "model_distribution" not in record


def test_residual_rows_are_the_engines(capsys, tiny):
    record = asked(capsys, "--what", "residual", "--position", "1")
    forward = tiny.forward(tiny.vocabulary.read("the thing").ids)
    sizes = [row["size"] for row in record["layers"]]
    assert sizes == pytest.approx(np.linalg.norm(forward.residual[:, 1], axis=-1), rel=1e-5)
    assert record["layers"][-1]["cosine"] == pytest.approx(1)
    assert record["sum_error"] < 1e-4
    along = sum(r["attention_along"] + r["feed_forward_along"] for r in record["layers"])
    start = record["embedding"]
    assert start["size"] * start["cosine"] + along == pytest.approx(sizes[-1], rel=1e-4)


@pytest.mark.parametrize("what", ["lens", "residual"])
def test_lines_for_people(capsys, what):
    assert main(["inspect", "the thing", "--model", "tiny", "--what", what]) == 0
    out = capsys.readouterr().out
    assert "layer" in out
    assert "largest difference" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--what", "lens", "--layer", "2"], "from 0 to 1"),
        (["--what", "residual", "--position", "99"], "position is 99"),
        (["--what", "lens", "--layer", "one"], "one"),
    ],
)
def test_faults_are_one_sentence(capsys, words, said):
    assert main(["inspect", "the thing", "--model", "tiny", *words]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_a_table_of_probabilities_has_no_layers(capsys):
    assert main(["inspect", "the", "--model", "toy", "--what", "residual"]) == 2
    assert "no layers" in capsys.readouterr().err
