"""``lab tensor-parallel``, ``pipeline``, ``offload`` and ``replicas`` at the command line."""

import numpy as np
import pytest

from core.cli.lab_offload import record as offload_record
from core.cli.lab_pipeline import _lines as pipeline_lines
from core.cli.lab_pipeline import record as pipeline_record
from core.cli.lab_tensor_parallel import record as tensor_record
from core.lab.parallel.deal import plan_of
from core.lab.parallel.records import OffloadRun, PipelineRun, Rank, TensorRun, Timeline, Traffic
from core.lab.parallel.stages import stages_of
from core.lab.timing import Spread


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


def _spread(ms):
    return Spread(ms, ms - 1, ms + 1, 3)


def test_a_rank_and_what_it_sent_are_written_as_they_are(tiny):
    plan = plan_of(tiny.info, 2)
    ranks = tuple(
        Rank(n, 100 + n, 10 + n, 1000 + n, 1, 20.0, 30.0, _spread(6.0 + n), _spread(2.0))
        for n in (0, 1)
    )
    parts = np.arange(2 * 2 * 2 * 1 * 32, dtype=float).reshape(2, 2, 2, 1, 32)
    run = TensorRun(
        plan, done=True, positions=(4,), partials=parts, sums=parts.sum(0), dense=parts.sum(0) + 1,
        ranks=ranks, single_step=_spread(3.5), difference=0.5, step_difference=0.25,
        favourites=((7, 0.5, 0.25),), step_traffic=(Traffic("attention", 2, 96, 128),),
    )  # fmt: skip
    found = tensor_record(run, tiny, (5,), 1, "feed_forward")
    # The slower of two ranks beside one process.
    assert found["step_ratio"] == 2
    first = found["ranks"][0]
    sizes = ("weights_bytes", "kv_bytes", "process_bytes", "read_ms", "prefill_ms")
    assert [first[name] for name in sizes] == [100, 10, 1000, 20, 30]
    assert (first["step_ms"]["median"], first["waiting_ms"]["median"]) == (6, 2)
    assert found["traffic"]["step"] == [
        {"what": "attention", "calls": 2, "bytes": 96, "theory_bytes": 128}
    ]
    assert (found["favourites"][0]["single"], found["favourites"][0]["split"]) == (0.5, 0.25)
    top = found["partial_sums"]["components"][0]
    # The last of 32 numbers of the last part of layer 1.
    assert (top["component"], top["ranks"]) == (31, [127, 255])
    assert (top["sum"], top["single"]) == (382, 383)
    assert found["partial_sums"]["largest_difference"] == 1


def test_a_pipeline_and_its_bubbles_are_written_as_they_are(tiny):
    plan = stages_of(tiny.info, 2)
    time = Timeline(4, (), 0.5, 0.2, 0.3, _spread(12.0), 0.0)
    run = PipelineRun(
        plan, done=True, texts=8, length=32, own=3, runs=(time,), weights=(100, 200),
        traffic=Traffic("activations", 4, 96, 128), single=_spread(9.0), difference=0.0,
    )  # fmt: skip
    found = pipeline_record(run, tiny)
    (one,) = found["runs"]
    assert [one[f"{name}bubble"] for name in ("", "ideal_")] == [0.5, 0.2]
    assert one["bubble_of_these_stages"] == 0.3
    said = "\n".join(pipeline_lines(found))
    assert "4                   12 ms    50.0%    20.0%         30.0%" in said
    assert "sent: 96 bytes a batch (formula: 128)" in said


def test_less_memory_is_compared_with_all_of_it():
    run = OffloadRun(
        0.5, done=True, whole_bytes=1000, held_bytes=400, whole_step=_spread(2.0), step=_spread(5.0)
    )
    found = offload_record(run)
    assert (found["whole_step_ms"]["median"], found["step_ms"]["median"]) == (2, 5)
    assert (found["step_ratio"], found["in_memory_bytes"], found["weights_bytes"]) == (
        2.5,
        400,
        1000,
    )
