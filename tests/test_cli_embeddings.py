"""`inspect --what embeddings`: rows, neighbours and the map, as JSON and for people."""

import json

import numpy as np
import pytest


@pytest.fixture
def cli(cli):
    return lambda *argv: cli("inspect", *argv, "--what", "embeddings")


def test_each_token_has_its_row(cli, tiny):
    code, out, err = cli("the in the", "--model", "tiny", "--json", "-")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["width"], found["vocabulary"], found["positions"]) == (32, 278, "rope")
    ids = tiny.vocabulary.encode("the in the").ids
    assert [t["id"] for t in found["tokens"]] == list(ids)
    assert found["rows"] == len(set(ids))
    assert sum(found["explained"]) <= 1 + 1e-9
    rows = tiny.embeddings(ids).astype(np.float64)
    for token, row in zip(found["tokens"], rows, strict=True):
        assert token["norm"] == pytest.approx(np.linalg.norm(row))
        assert len(token["neighbours"]) == 8
        assert "row" not in token
        best = token["neighbours"][0]
        other = tiny.embeddings([best["id"]])[0].astype(np.float64)
        cosine = row @ other / np.linalg.norm(row) / np.linalg.norm(other)
        assert best["cosine"] == pytest.approx(cosine, abs=1e-6)
        assert token["id"] not in [n["id"] for n in token["neighbours"]]
    same = [t["point"] for t in found["tokens"] if t["id"] == ids[0]]
    assert all(point == same[0] for point in same)


def test_one_token_lists_its_numbers(cli, tiny):
    _, out, _ = cli("the in", "--model", "tiny", "--position", "-1", "--json", "-")
    (token,) = json.loads(out)["tokens"]
    row = tiny.embeddings([token["id"]])[0]
    assert token["row"] == pytest.approx(row.tolist())
    code, out, _ = cli("the in", "--model", "tiny", "--position", "0")
    assert code == 0
    assert out.splitlines()[2].split()[:3] == [
        "0",
        str(tiny.vocabulary.encode("the").ids[0]),
        "the",
    ]
    assert len(out.splitlines()[3].split()) == 32


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["the", "--model", "tiny", "--position", "7"], "position is 7"),
        (["tell me", "--model", "toy"], "layers"),
    ],
)
def test_what_cannot_be_shown_is_said(cli, argv, said):
    code, out, err = cli(*argv)
    assert (code, out) == (2, "")
    assert said in err
