"""``lab kv-cache``: the page's figures as JSON, and sentences for what is wrong."""

import pytest

from core.cli.lab_kv_cache import run_record
from core.cli.lab_kv_lines import _lengths, _reuse
from core.lab.kv_records import KvRun, KvStep, Score, Work
from core.lab.machine import Machine
from core.lab.timing import Spread


def test_the_figures_of_the_page(as_json):
    found = as_json(
        "lab", "kv-cache", "the thing", "--model", "tiny", "--steps", "3", "--repeats", "1",
        "--layer", "1", "--head", "1", "--trick", "bits=4,keys=token", "--trick", "window=9",
        "--second", "the thin", "--lengths", "8,4",
    )  # fmt: skip
    tokens = found["prompt"]["tokens"]
    assert found["model"] == "tiny"
    assert found["machine"]["cores"] >= 1
    assert [step["with_cache"]["positions"] for step in found["steps"]] == [tokens, 1, 1]
    assert [step["without"]["positions"] for step in found["steps"]] == [
        tokens, tokens + 1, tokens + 2,
    ]  # fmt: skip
    assert found["same_tokens"]
    assert 0 < found["largest_difference"] <= 5e-4
    for step in found["steps"]:
        assert step["cache_bytes"] == 256 * step["length"]
        assert step["ratio"] == step["without"]["ms"]["median"] / step["with_cache"]["ms"]["median"]
        assert len(step["logits"]) == 8
    cache = found["cache"]
    assert (cache["tokens"], cache["bytes"]) == (tokens + 2, 256 * (tokens + 2))
    assert cache["bytes_a_token"] == cache["bytes_of_the_next_token"] == 256
    assert len(found["rows"]["keys"]) == len(found["rows"]["values"]) == tokens + 2
    llama = next(x for x in found["others"] if x["name"] == "llama-2-7b")
    # 2 · 32 layers · 32 heads · 128 · 2 bytes, for 8,192 tokens: the published 4 GiB.
    assert llama["token_bytes"] == 524_288
    assert llama["cache_bytes"] == 4 * 2**30
    assert [point["length"] for point in found["lengths"]] == [4, 8]
    four, window = found["tricks"]["results"]
    assert four["trick"] == "bits=4,keys=token"
    assert window["bytes"] == 8 * 256
    assert four["kl"] > 0
    assert (
        found["reuse"]["reused"] + found["reuse"]["continued"]["positions"]
        == (found["reuse"]["second_tokens"])
    )


def test_lines_for_people(cli):
    code, out, err = cli(
        "lab", "kv-cache", "the thing", "--model", "tiny", "--steps", "2", "--repeats", "1",
        "--tricks", "--layer", "0", "--lengths", "4", "--second", "the thing is",
    )  # fmt: skip
    assert (code, err) == (0, "")
    for said in (
        "both ways write the same tokens",
        "256 a token; the next token adds 256",
        "bits=2,keys=channel",
        "window=32,sinks=4",
        "layer 0, KV head 0",
        "second prompt:",
        "Llama 2 7B",
        # Bytes as the page has them.
        "4.29 GB",
    ):
        assert said in out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--steps", "0"), "steps"),
        (("--steps", "many"), "whole"),
        (("--repeats", "0"), "repeats"),
        (("--layer", "9"), "layer 9"),
        (("--layer", "0", "--head", "2"), "KV head 2"),
        (("--trick", "bits=3"), "8, 4, 2"),
        (("--lengths", "0"), "lengths"),
        (("--lengths", "a"), "whole"),
        (("--second", ""), "empty"),
        (("--model", "toy"), "weights"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(cli, more, said):
    argv = ["lab", "kv-cache", "the thing", "--model", "tiny", "--steps", "1", "--repeats", "1"]
    code, out, err = cli(*argv, *more)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def _pass(ms):
    return {"ms": {"median": ms, "low": ms - 1, "high": ms + 1, "repeats": 3}}


def test_each_time_stands_under_its_own_way():
    (_, line) = _lengths([{"length": 64, "with_cache": _pass(3), "without": _pass(9), "ratio": 3}])
    assert line.split() == [
        "64",
        "tokens",
        "3.0",
        "(2–4)",
        "ms",
        "9.0",
        "(8–10)",
        "ms",
        "3.0",
        "times",
    ]
    found = {"reused": 5, "second_tokens": 8, "whole": _pass(9), "continued": _pass(3)}
    (line,) = _reuse(found)
    assert line.startswith("second prompt: 5 of 8 positions taken from")
    assert "9.0 (8–10) ms from its beginning, 3.0 (2–4) ms so" in line


def test_logits_stand_under_their_own_way(tiny):
    spread, work = Spread(1.0, 1.0, 1.0, 1), Work(1, 2, 3, 4, 5)
    step = KvStep(0, 1, 7, 7, work, work, spread, spread, 0.5, (Score(7, 2.0, 2.5),), 8)
    machine = Machine("p", 1, 1, 1, "2", "cpu", "2026-12-01")
    found = run_record(KvRun((5,), 1, (step,), machine, True, 1.0), tiny.vocabulary)
    (logit,) = found["steps"][0]["logits"]
    assert (logit["with_cache"], logit["without"], logit["difference"]) == (2.0, 2.5, 0.5)
