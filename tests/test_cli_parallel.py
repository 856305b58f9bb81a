"""``lab tensor-parallel``, ``pipeline``, ``offload`` and ``replicas`` at the command line."""

import pytest


@pytest.mark.model
def test_smollm2_on_three_ranks(as_json, default_model):
    found = as_json(
        "lab", "tensor-parallel", "--ranks", "3", "--model", default_model,
        "The capital of France is",
    )  # fmt: skip
    assert found["difference"]["logits"] < 1e-4
    assert found["difference"]["logits_of_the_last_step"] < 1e-4
    assert found["favourites"][0]["token"] == "␣Paris"
    assert found["favourites"][0]["split"] == pytest.approx(0.7725, abs=1e-3)
    assert found["plan"]["attention"] == "even"
    assert found["layer_bytes_a_token"] == {"measured": 138_240, "theory": 138_240}
    step = {each["what"]: each for each in found["traffic"]["step"]}
    assert [step[part]["calls"] for part in ("attention", "feed_forward")] == [30, 30]
    assert [rank["weights_bytes"] for rank in found["ranks"]] == [179_447_040] * 3
    # A third of 46,080 bytes a token: the prompt's 5 and 10 steps.
    assert [rank["kv_bytes"] for rank in found["ranks"]] == [15 * 15_360] * 3
    for row in found["partial_sums"]["components"]:
        assert sum(row["ranks"]) == pytest.approx(row["single"], abs=1e-4)


@pytest.mark.model
def test_smollm2_in_two_stages(as_json, default_model):
    found = as_json(
        "lab", "pipeline", "--ranks", "2", "--by", "cost", "--micro-batches", "1,8",
        "--model", default_model, "The capital of France is",
    )  # fmt: skip
    assert found["difference"] < 1e-4
    assert [stage["layers"] for stage in found["stages"]] == [[0, 19], [19, 30]]
    one, eight = found["runs"]
    assert one["bubble"] >= 0.5 > eight["bubble"]
    assert len(eight["timeline"]) == 16
    assert found["traffic"]["bytes"] == found["traffic"]["theory_bytes"] == 8 * 32 * 576 * 4


def test_a_table_for_people(cli):
    # An edited model is split as it is.
    edited = ("--model", "tiny", "--edit", "neurons:0.25")
    code, out, err = cli("lab", "offload", *edited, "--share", "0.5", "the")
    assert (code, err) == (0, "")
    assert "in memory" in out
    assert "largest difference of the logits: 0" in out


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("tensor-parallel", "--ranks", "1"), "from 2 to"),
        (("tensor-parallel", "--ranks", "two"), "two"),
        (("tensor-parallel", "--attention", "half"), "'half' is no way"),
        (("tensor-parallel", "--part", "nose"), "'nose' is no way"),
        (("tensor-parallel", "--layer", "9"), "layer 9"),
        (("pipeline", "--ranks", "3"), "from 2 to 2"),
        (("pipeline", "--micro-batches", "3"), "3 micro-batches do not divide"),
        (("pipeline", "--by", "luck"), "'luck' is no way"),
        (("offload", "--share", "2"), "share is 2,"),
        (("replicas", "--dtype", "int8"), "int8"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(cli, typed, said):
    code, out, err = cli("lab", typed[0], *typed[1:], "--model", "tiny", "the")
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_packed_weights_cannot_be_split(cli):
    edited = ("--model", "tiny", "--edit", "int8")
    for experiment in ("tensor-parallel", "pipeline"):
        code, _, err = cli("lab", experiment, "--ranks", "2", *edited, "a")
        assert code == 2
        assert "packed integers" in err


def test_a_table_of_probabilities_cannot_be_split(cli):
    code, _, err = cli("lab", "tensor-parallel", "--ranks", "2", "--model", "toy", "a")
    assert code == 2
    assert "works on the weights" in err
