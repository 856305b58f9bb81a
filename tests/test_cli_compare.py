"""``compare`` on the command line: its JSON, its table, and how it refuses."""

import json
import math
import os
import signal
from functools import partial

import pytest

from core.cli import compare as command
from core.cli.main import main
from core.decode.compare import Lockstep
from core.engine.toy_classics import classic_path
from tests.comparing import ONCE, seed_within

BEATS = f"toy:{classic_path('beam_beats_greedy')}"


@pytest.fixture
def cli(cli):
    return partial(cli, "compare")


@pytest.fixture
def once(tmp_path):
    path = tmp_path / "once.json"
    path.write_text(json.dumps(ONCE), encoding="utf-8")
    return f"toy:{path}"


def columns(*lines):
    return [part for line in lines for part in ("--column", line)]


def test_the_promised_shape(as_json):
    found = as_json(
        "x", "--model", BEATS, *columns("greedy", "beam,beams=2", "sample,top_p=0.9,seed=1")
    )
    assert list(found) == [
        "model",
        "prompt",
        "samples",
        "dice",
        "max_new",
        "columns",
        "steps",
        "ms",
        "cancelled",
    ]
    assert (found["model"], found["samples"], found["dice"]) == (BEATS, 1, "same")
    assert (found["max_new"], found["steps"], found["cancelled"]) == (24, 3, False)
    greedy, beam, sample = found["columns"]
    shape = ["strategy", "model", "settings", "texts", "figures", "first_difference", "fault", "ms"]
    assert list(greedy) == list(sample) == shape
    assert list(beam) == [*shape[:-1], "hypotheses", "ms"]
    assert [c["strategy"] for c in found["columns"]] == [
        "greedy",
        "beam,beams=2",
        "sample,top_p=0.9,seed=1",
    ]
    (text,) = greedy["texts"]
    assert list(text) == ["sample", "seed", "tokens", "text", "logprob", "stop", "steps"]
    assert (text["tokens"], text["text"], text["stop"]) == ([0, 3, 4], "red rose", "end_token")
    assert text["logprob"] == pytest.approx(math.log(0.55 * 0.4))
    step = text["steps"][1]
    names = {"entropy_model", "entropy_filtered", "probability_model", "probability_filtered"}
    assert set(step) == {"index", "id", "text", "rank", "u", "rule", *names}
    assert (step["index"], step["id"], step["text"], step["rank"]) == (1, 3, "rose", 1)
    assert beam["texts"][0]["tokens"] == [1, 2, 4]
    assert beam["texts"][0]["seed"] is None
    assert beam["hypotheses"][0]["score"] == pytest.approx(math.log(0.405))
    assert beam["first_difference"] == {
        "from": 0,
        "step": 0,
        "reason": "search",
        "here": {"id": 1, "text": "blue"},
        "there": {"id": 0, "text": "red"},
        "stage": None,
        "parameter": None,
        "by": "this",
    }
    assert greedy["first_difference"] is None
    assert greedy["settings"]["strategy"] == "greedy"
    assert beam["settings"]["strategy"] == "beam"
    assert sample["texts"][0]["seed"] == 1
    assert set(greedy["figures"]) == {
        "tokens",
        "logprob",
        "perplexity",
        "bits_per_byte",
        "entropy",
        "rank",
        "distinct",
        "longest_repeat",
        "repeated_4grams",
        "zipf",
        "self_bleu",
        "forwards",
        "tokens_per_second",
    }
    assert greedy["figures"]["perplexity"] == pytest.approx(0.22 ** (-1 / 3))


def test_the_first_difference(as_json, once):
    seed = seed_within(0.72, 0.88)
    found = as_json("x", "--model", once, *columns(f"sample,seed={seed}", "sample,top_k=2"))
    assert found["columns"][1]["first_difference"] == {
        "from": 0,
        "step": 0,
        "reason": "removed",
        "here": {"id": 1, "text": "b"},
        "there": {"id": 2, "text": "c"},
        "stage": "top_k",
        "parameter": 2,
        "by": "this",
    }


def test_a_column_is_the_run_with_its_seed(as_json, capsys):
    lines = ("sample,top_p=0.8,seed=5", "sample,temperature=2,seed=6", "sample,seed=5")
    found = as_json("the", "--model", "tiny", *columns(*lines), "--samples", "2", "--max-new", "5")
    flags_of = ("--top-p 0.8", "--temperature 2", "")
    for column, flags in zip(found["columns"], flags_of, strict=True):
        for text in column["texts"]:
            argv = f"run the --model tiny {flags} --max-new 5 --json - --seed {text['seed']}"
            assert main(argv.split()) == 0
            alone = json.loads(capsys.readouterr().out)
            assert [s["choice"]["id"] for s in alone["steps"]] == text["tokens"]
    assert [c["texts"][0]["seed"] for c in found["columns"]] == [5, 6, 5]


def test_samples_and_dice(as_json):
    lines = columns("greedy", "sample,seed=3", "sample,top_k=3")
    found = as_json("x", "--model", "toy", *lines, "--samples", "4", "--dice", "own")
    assert [len(c["texts"]) for c in found["columns"]] == [1, 4, 4]
    seeds = {t["seed"] for c in found["columns"][1:] for t in c["texts"]}
    assert len(seeds) == 8
    same = as_json("x", "--model", "toy", *lines, "--samples", "4", "--dice", "same")
    first, second = ([t["seed"] for t in c["texts"]] for c in same["columns"][1:])
    assert first == second
    assert first[0] == 3
    assert same["columns"][1]["figures"]["self_bleu"] is not None


def test_a_sweep(as_json):
    found = as_json("x", "--model", "toy", "--column", "sample,seed=2", "--sweep", "top-k:1:4:4")
    assert [c["strategy"] for c in found["columns"]] == [
        f"sample,top_k={k},seed=2" for k in (1, 2, 3, 4)
    ]
    assert len(as_json("x", "--model", "toy", "--sweep", "temperature:0:2:25")["columns"]) == 25


def test_the_usual_columns(as_json):
    found = as_json("x", "--model", "toy", "--max-new", "2")
    assert [c["strategy"] for c in found["columns"]] == list(command.USUAL)


def test_one_bad_strategy_fails_alone(as_json):
    lines = columns("sample,top_k=0", "greedy", "topk", "greedy,model=toy:none.json", "beam")
    found = as_json("x", "--model", "toy", *lines)
    faults = [c["fault"] and c["fault"]["code"] for c in found["columns"]]
    assert faults == ["setting_out_of_range", None, "unknown_strategy", "no_toy_file", None]
    assert found["columns"][0]["strategy"] == "sample,top_k=0"
    assert found["columns"][0]["fault"]["message"].startswith("top-k is 0, but it must be from 1")
    assert found["columns"][0]["texts"] == []
    assert found["columns"][1]["first_difference"] is None  # the first that wrote something
    assert found["columns"][4]["first_difference"]["from"] == 1


def test_two_models(as_json):
    found = as_json(
        "the", "--model", "tiny", *columns("greedy", "greedy,model=toy"), "--max-new", "3"
    )
    assert [c["model"] for c in found["columns"]] == ["tiny", "toy"]
    assert found["columns"][1]["texts"][0]["text"] == "sun shines brightly"
    assert found["columns"][1]["first_difference"]["reason"] == "other_model"


def test_into_a_file(cli, tmp_path):
    path = tmp_path / "out.json"
    assert cli("x", "--model", "toy", "--json", str(path)) == (0, "", "")
    assert json.loads(path.read_text(encoding="utf-8"))["model"] == "toy"


def test_for_people(cli, once, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    seed = seed_within(0.72, 0.88)
    lines = columns(f"sample,seed={seed}", "sample,top_k=2", "greedy", "beam", "sample,top_k=no")
    code, out, err = cli("x", "--model", once, *lines)
    assert (code, err) == (0, "")
    rows = out.splitlines()
    assert rows[0].split() == ["step", "0", "1"]
    assert rows[1].split()[-2:] == ["c", "<end>"]
    assert rows[2].split() == ["2", "sample,top_k=2", "[b]", "<end>"]
    start = "parts from column 1 at step 0: "
    said = [row.strip().removeprefix(start) for row in rows if row.startswith("    ")]
    assert said == [
        "c",
        "b",
        "b instead of c: top-k = 2 of this column removed c, which column 1 took",
        "a",
        "a instead of c: this column takes the top without dice",
        "a",
        "a instead of c: this column is a search, which looks ahead",
        "failed: top-k must be a whole number, but it is 'no'; give a number such as 5.",
    ]
    (ranks,) = (row.split() for row in rows if row.startswith("rank"))
    assert ranks == ["rank", "2.0", "1.5", "1.0", "1.0"]
    assert rows[-1].startswith("the same dice for all; 2 turns, ")


def test_many_columns_become_rows(cli):
    code, out, _ = cli("x", "--model", "toy", "--sweep", "temperature:0:2:9")
    assert code == 0
    assert "9  temperature=2 " in out
    assert " perplexity " in out


def test_long_texts_are_cut_into_blocks(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    _, out, _ = cli("the 国国", "--model", "tiny", *columns("greedy", "sample"), "--max-new", "30")
    heads = [line.split() for line in out.splitlines() if line.startswith("step")]
    assert [int(n) for head in heads for n in head[1:]] == list(range(30))
    assert len(heads) > 2


def test_ctrl_c_keeps_what_is_there(cli, monkeypatch):
    advance = Lockstep.advance

    def then_stop(self):
        advance(self)
        if self._steps == 2:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Lockstep, "advance", then_stop)
    argv = ("the", "--model", "tiny", *columns("greedy", "sample", "beam"), "--json", "-")
    code, out, err = cli(*argv)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["cancelled"], found["steps"]) == (True, 2)
    assert [c["texts"][0]["stop"] for c in found["columns"]] == ["user"] * 3
    assert [len(c["texts"][0]["tokens"]) for c in found["columns"]] == [2] * 3
    assert cli(*argv[:-2])[1].endswith("; you stopped it\n")


BAD = [
    ("--column topk", "The strategy 'topk' is not known; choose one of: greedy, sample, beam."),
    ("--column sample,top_k=0 --column beam,x=1", "top-k is 0, but it must be from 1"),
    ("--samples 0", "samples is 0, but it must be from 1 to 100"),
    ("--samples 101", "samples is 101, but"),
    ("--samples many", "samples must be a whole number, but it is 'many'"),
    ("--max-new 0", "max-new is 0, but"),
    ("--dice loaded", "The dice 'loaded' are not known; choose one of: same, own."),
    ("--sweep heat:0:1:3", "'heat' cannot be swept"),
    ("--sweep temperature", None),
    ("--sweep top_p:0:1:3", "top-p is 0, but it must be above 0"),
    ("--sweep top_k:1:2:2 --column greedy --column beam", "A sweep starts from one strategy"),
    (" ".join(["--column greedy"] * 13), "13 strategies are too many to compare at once"),
    ("--top-k 3", "Unrecognized arguments: --top-k 3; see python -m core --help."),
    ("--json no/such/folder/x.json", "The file 'no/such/folder/x.json' cannot be written"),
]


@pytest.mark.parametrize(("line", "said"), BAD)
def test_bad_input_exits_2_with_one_sentence(cli, line, said):
    code, out, err = cli("x", "--model", "toy", *line.split())
    if said is None:
        assert code == 0
        return
    assert (code, out) == (2, "")
    assert err.startswith(said), err
    assert err.count("\n") == 1


def test_an_empty_prompt_is_refused(cli):
    code, out, err = cli(" ", "--model", "toy")
    assert (code, out) == (2, "")
    assert err.startswith("The prompt is empty;")


def test_a_model_that_is_not_there(cli):
    code, out, err = cli("x", "--model", "toy:none.json")
    assert (code, out) == (2, "")
    assert "none.json" in err
