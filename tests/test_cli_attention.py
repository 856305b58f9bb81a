"""`inspect --what attention`: the model's weights as JSON and for people, faults in a sentence."""

import json

import numpy as np
import pytest

from core.cli.main import main
from tests.families import saved

ASK = ["inspect", "Hi there", "--model", "tiny", "--what", "attention"]


def answer(capsys, *words):
    assert main([*ASK, *words, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_weights_of_a_layer_are_those_of_the_model(capsys, tiny):
    found = answer(capsys, "--layer", "1")
    ids = [token["id"] for token in found["tokens"]]
    expected = tiny.forward(ids).attention[1]
    assert [entry["head"] for entry in found["heads"]] == [0, 1, 2, 3]
    assert [entry["kv_head"] for entry in found["heads"]] == [0, 0, 1, 1]
    for entry in found["heads"]:
        weights = np.array(entry["weights"])
        assert weights == pytest.approx(expected[entry["head"]], abs=1e-6)
        assert entry["first"] == pytest.approx(weights[1:, 0].mean(), abs=1e-6)


def test_a_row_is_recomputed(capsys, tiny):
    found = answer(capsys, "--layer", "0", "--head", "2", "--position", "1")
    row = found["heads"][0]["weights"]
    assert sum(row) == pytest.approx(1, abs=1e-5)
    assert row[2:] == [0] * (len(row) - 2)
    assert found["recomputed"]["weights"] == pytest.approx(row, abs=1e-5)
    assert found["recomputed"]["scores"][2] is None, "behind the mask"
    assert found["recomputed"]["largest_difference"] < 1e-5


def test_without_a_layer_all_heads_are_listed_without_their_maps(capsys):
    found = answer(capsys)
    assert len(found["heads"]) == 8
    assert "weights" not in found["heads"][0]


def test_people_get_lines(capsys):
    assert main([*ASK, "--layer", "1", "--head", "0", "--position", "-1"]) == 0
    out = capsys.readouterr().out
    assert "reads:" in out
    assert "recomputed from q and k: largest difference" in out
    assert main(ASK) == 0
    assert len(capsys.readouterr().out.splitlines()) == 9


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--layer", "7"], "layer"),
        (["--layer", "0", "--head", "9"], "head"),
        (["--layer", "0", "--position", "400"], "position"),
    ],
)
def test_what_the_model_lacks_is_said(capsys, words, said):
    assert main([*ASK, *words]) == 2
    assert said in capsys.readouterr().err


def test_a_table_has_no_attention(capsys):
    assert main(["inspect", "the", "--model", "toy", "--what", "attention"]) == 2
    assert "no layers" in capsys.readouterr().err


def test_a_hybrid_lists_the_layers_that_have_attention(capsys, tmp_path):
    folder = saved(tmp_path / "hybrid", 1, "lfm2")
    ask = ["inspect", "Hi there", "--model", folder, "--what", "attention"]
    assert main([*ask, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["without_attention"] == [0, 2]
    assert {entry["layer"] for entry in found["heads"]} == {1}
    assert main(ask) == 0
    assert "no attention in layers 0, 2" in capsys.readouterr().out
    assert main([*ask, "--layer", "2"]) == 2
    assert "Layer 2 of this model has no attention; choose one of these: 1." in (
        capsys.readouterr().err
    )
