"""The command line: what it prints, to the letter where it promises so, and how it refuses."""

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from core.decode import choose, uniform
from core.settings import STAGE_NAMES, Settings
from core.trace import Choice
from tests.decoding import PARAMETERS, TABLE

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def law_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("toy") / "law.json"
    path.write_text(json.dumps(TABLE["beam"][0]), encoding="utf-8")
    return f"toy:{path}"


# --- choose


def typed(law):
    kind = "logits" if "logits" in law else "probs"
    argv = [f"--{kind}", json.dumps(law[kind])]
    for name in PARAMETERS:
        if name in law:
            argv += ["--" + name.replace("_", "-"), str(law[name])]
    return argv + (["--order", ",".join(law["order"])] if "order" in law else [])


@pytest.mark.parametrize("law", TABLE["filters"], ids=lambda law: law["law"])
def test_choose_keeps_the_laws(as_json, law):
    found = as_json("choose", *typed(law))
    assert found.keys() == {"stages", "choice"}
    assert all(stage.keys() == {"name", "keeps", "probabilities"} for stage in found["stages"])
    assert found["stages"][-1]["keeps"] == law["keeps"]
    assert found["stages"][-1]["probabilities"] == pytest.approx(law["after"], abs=1e-4)
    assert found["choice"]["id"] in law["keeps"]


def test_choose_shows_the_stages_in_the_order_asked_for(as_json):
    found = as_json("choose", "--logits", "[3,2,1]", "--order", "top-p, min_p")
    names = [stage["name"] for stage in found["stages"]]
    assert names == ["top_p", "min_p", "temperature", "top_k"]


def test_choose_tells_everything_about_the_choice(as_json):
    found = as_json("choose", "--probs", "[0.5,0.3,0.2]", "--top-k", "2", "--seed", "7")
    assert found["choice"] == {
        "id": 0 if uniform(7, 0) < 0.625 else 1,
        "probability_model": pytest.approx(0.5 if uniform(7, 0) < 0.625 else 0.3),
        "probability_filtered": pytest.approx(0.625 if uniform(7, 0) < 0.625 else 0.375),
        "rank": 1 if uniform(7, 0) < 0.625 else 2,
        "u": uniform(7, 0),
        "rule": "sample",
    }
    greedy = as_json("choose", "--logits", "[1,4,4]", "--strategy", "greedy")["choice"]
    assert (greedy["id"], greedy["rule"], greedy["u"]) == (1, "greedy", None)
    forced = as_json("choose", "--logits", "[1,4,4]", "--top-k", "1", "--force", "0:2")["choice"]
    assert (forced["id"], forced["rule"], forced["probability_filtered"]) == (2, "forced", 0)


def test_choose_makes_a_sum_close_to_one_exact(as_json):
    found = as_json("choose", "--probs", ".3333, .3333, .3333")
    assert found["stages"][0]["probabilities"] == pytest.approx([1 / 3] * 3)


def test_choose_takes_impossible_tokens(as_json):
    found = as_json("choose", "--logits", "[-inf, 0, -Infinity]")
    assert found["stages"][0]["keeps"] == [1]


def test_choose_for_people(cli):
    code, out, err = cli("choose", "--probs", "[0.5,0.3,0.2]", "--top-p", "0.51", "--seed", "0")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "temperature       1  keeps 3 (1.0000)  0: 0.5000, 1: 0.3000, 2: 0.2000",
        "top_k           off  keeps 3 (1.0000)  0: 0.5000, 1: 0.3000, 2: 0.2000",
        "top_p          0.51  keeps 2 (0.8000)  0: 0.6250, 1: 0.3750",
        "min_p           off  keeps 2 (1.0000)  0: 0.6250, 1: 0.3750",
        "choice: token 0 (sample at u = 0.3323), probability 0.5000 in the model, 0.6250 filtered",
        "entropy: 1.0297 nats (1.4855 bits) before the filters, 0.6616 nats after",
    ]


# --- run


def test_run_has_exactly_the_promised_shape(as_json, law_file):
    found = as_json("run", "The law", "--model", law_file, "--top-k", "2", "--max-new", "2")
    assert list(found) == [
        "model",
        "settings",
        "prompt",
        "steps",
        "text",
        "stop",
        "logprob",
        "perplexity",
    ]
    assert found["model"] == law_file
    assert found["settings"]["top_k"] == 2
    assert found["settings"]["order"] == ["temperature", "top_k", "top_p", "min_p"]
    assert [token["text"] for token in found["prompt"]] == ["The", " law"]
    assert len(found["steps"]) == 2
    for step in found["steps"]:
        assert list(step) == ["index", "ids_before", "stages", "choice", "ms"]
        assert list(step["choice"]) == [
            "id",
            "text",
            "probability_model",
            "probability_filtered",
            "rank",
            "u",
            "rule",
        ]
        for stage in step["stages"]:
            assert list(stage) == ["name", "parameter", "survivors", "mass", "top"]
            assert sum(t["probability"] for t in stage["top"]) == pytest.approx(1)
            assert all(list(t) == ["id", "text", "probability"] for t in stage["top"])


def test_run_greedy_on_the_law_table(as_json, law_file):
    law = TABLE["beam"][0]
    found = as_json("run", "The", "--model", law_file, "--strategy", "greedy", "--max-new", "2")
    assert found["text"].split() == law["greedy"]["tokens"]
    assert found["logprob"] == pytest.approx(law["greedy"]["logprob"], abs=1e-4)
    assert found["perplexity"] == pytest.approx(math.exp(1.6094 / 2), abs=1e-4)
    assert found["stop"] == "output_limit"
    first, second = found["steps"]
    prompt = [token["id"] for token in found["prompt"]]
    assert (first["ids_before"], second["ids_before"]) == (prompt, [*prompt, 0])
    assert first["choice"]["text"] == "nice"
    assert first["choice"]["u"] is None
    assert [t["text"] for t in first["stages"][0]["top"]] == ["nice", "dog", "car"]
    assert [t["probability"] for t in first["stages"][0]["top"]] == pytest.approx([0.5, 0.4, 0.1])


def test_run_samples_with_the_same_dice_everywhere(as_json, law_file):
    argv = ["run", "The", "--model", law_file, "--seed", "5", "--max-new", "6"]
    found, again = as_json(*argv), as_json(*argv)
    assert [s["choice"] for s in found["steps"]] == [s["choice"] for s in again["steps"]]
    assert [s["choice"]["u"] for s in found["steps"]] == [uniform(5, i) for i in range(6)]


def test_run_forces_tokens(as_json, law_file):
    argv = ["run", "The", "--model", law_file, "--strategy", "greedy", "--max-new", "2"]
    found = as_json(*argv, "--force", "0:1", "1:2")
    assert [s["choice"]["text"] for s in found["steps"]] == ["dog", "car"]
    assert {s["choice"]["rule"] for s in found["steps"]} == {"forced"}
    assert found["logprob"] == pytest.approx(math.log(0.4 * 0.05))


def test_infinities_become_null(as_json):
    found = as_json("run", "x", "--model", "toy", "--force", "0:7", "--max-new", "1")
    assert found["stop"] == "end_token"
    assert (found["logprob"], found["perplexity"]) == (None, None)


def test_run_lists_as_many_tokens_as_asked_for(as_json, law_file):
    for top, expected in (("0", 0), ("1", 1), ("99", 3)):
        found = as_json("run", "x", "--model", law_file, "--max-new", "1", "--top", top)
        assert len(found["steps"][0]["stages"][0]["top"]) == expected


def test_run_reads_control_strings_as_text_when_told(as_json):
    found = as_json("run", "a <end>", "--model", "toy", "--max-new", "1")
    assert found["prompt"][1]["special"] is True
    found = as_json("run", "a <end>", "--model", "toy", "--max-new", "1", "--literal")
    assert found["prompt"][1]["special"] is False


def test_run_on_a_transformer(as_json):
    found = as_json("run", "the 国 é", "--model", "tiny", "--seed", "1", "--max-new", "5")
    assert "".join(t["text"] for t in found["prompt"]).startswith("the")
    joined = bytes.fromhex("".join(t["bytes"] for t in found["prompt"]))
    assert joined.decode() == "the 国 é"
    for step in found["steps"]:
        stage = step["stages"][0]
        assert len(stage["top"]) == 10
        values = [t["probability"] for t in stage["top"]]
        assert values == sorted(values, reverse=True)
        assert step["ms"] > 0


def test_run_writes_a_file(cli, tmp_path, law_file):
    path = tmp_path / "run.json"
    argv = ["run", "法国 \udce9", "--model", law_file, "--max-new", "1", "--json", str(path)]
    assert cli(*argv) == (0, "", "")
    text = path.read_text(encoding="utf-8")
    assert "法国" in text
    assert json.loads(text)["prompt"][1]["text"] == " \ufffd"


def test_run_for_people(cli):
    code, out, err = cli("run", "The", "--model", "toy", "--strategy", "greedy")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split()[:5] == ["step", "token", "model", "filtered", "rank"]
    assert lines[1].split()[:6] == ["0", "sun", "50.00%", "50.00%", "1", "greedy"]
    assert lines[1].endswith("sun 50.0%, moon 40.0%, tonight 10.0%")
    assert lines[6] == "The sun shines brightly <end>"
    assert lines[8] == "1 prompt token, 4 new; the model chose an end token."
    assert lines[9] == "total log-probability -2.6311 nats, perplexity 1.93"


@pytest.mark.model
def test_the_capital_of_france(as_json, default_model):
    argv = ["run", "The capital of France is", "--model", default_model, "--max-new", "1"]
    found = as_json(*argv)
    best = found["steps"][0]["stages"][0]["top"][0]
    assert best["text"] == " Paris"
    assert best["probability"] == pytest.approx(0.77, abs=0.01)
    assert [t["text"] for t in found["prompt"]] == ["The", " capital", " of", " France", " is"]


# --- models


def test_models_as_json(cli):
    code, out, err = cli("models", "--json")
    assert (code, err) == (0, "")
    rows = {row["name"]: row for row in json.loads(out)}
    assert {"smollm2-135m", "gemma3-270m", "tiny", "toy"} <= rows.keys()
    promised = {"name", "state", "parameters", "bytes_on_disk", "bytes_in_memory", "licence"}
    assert all(promised <= row.keys() for row in rows.values())
    assert rows["smollm2-135m"]["licence"] == "Apache-2.0"


def test_models_for_people(cli):
    code, out, _ = cli("models")
    assert code == 0
    header, *rows = out.splitlines()
    assert header.split()[:3] == ["name", "state", "parameters"]
    row = next(row for row in rows if row.startswith("smollm2-135m"))
    assert row.endswith("134,515,008       542 MB       538 MB  Apache-2.0")


def test_a_model_made_in_memory_needs_no_fetching(cli):
    assert cli("models", "fetch", "tiny") == (0, "tiny is ready\n", "")


# --- refusals

BAD = [
    ("", "The following arguments are required: COMMAND"),
    ("nonsense", "Argument COMMAND: invalid choice: 'nonsense'"),
    ("models fetch", "The following arguments are required: NAME"),
    ("models fetch nope", "There is no model 'nope'; choose one of smollm2-135m"),
    ("run", "The following arguments are required: PROMPT"),
    ("run x --bogus", "Unrecognized arguments: --bogus"),
    ("run x --temp 1", "Unrecognized arguments: --temp 1"),
    ("run x --model toy:no/such.json", "There is no file 'no/such.json' with a toy model"),
    ("run x --model nope", "There is no model 'nope'"),
    ("run x --temperature warm", "temperature must be a number, but it is 'warm'"),
    ("run x --temperature nan", "temperature is nan, but it must be from 0 to 100"),
    ("run x --temperature inf", "temperature is inf, but"),
    ("run x --temperature -1", "temperature is -1, but"),
    ("run x --top-k 0", "top-k is 0, but it must be from 1"),
    ("run x --top-k 1.5", "top-k must be a whole number, but it is '1.5'"),
    ("run x --top-p 0", "top-p is 0, but it must be above 0 and at most 1"),
    ("run x --top-p 1.1", "top-p is 1.1, but it must be above 0 and at most 1"),
    ("run x --min-p -0.1", "min-p is -0.1, but it must be from 0 to 1"),
    ("run x --seed -1", "seed is -1, but"),
    ("run x --max-new 0", "max-new is 0, but"),
    ("run x --max-new 1e3", "max-new must be a whole number, but it is '1e3'"),
    ("run x --top -1", "top is -1, but it must be from 0"),
    ("run x --top many", "top must be a whole number, but it is 'many'"),
    ("run x --strategy no", "The strategy 'no' is not known; choose one of: greedy, sample, beam"),
    ("choose --probs 1 --strategy beam", "The strategy 'beam' is not known; choose one of: greedy"),
    ("run x --order top_p,top_p", "The order of the filters is 'top_p,top_p', but"),
    ("run x --order heat", "The order of the filters is 'heat', but"),
    ("run x --force 3", "A forced choice is written STEP:ID, such as 0:42, but this is '3'"),
    ("run x --force a:b", "A forced choice is written STEP:ID"),
    ("run x --force 5000:1", "force is 5000, but it must be from 0 to 1023"),
    ("run x --model toy --force 0:8", "Token 8 is to be forced at step 0, but this vocabulary"),
    ("run x --model toy --json no/such/x.json", "The file 'no/such/x.json' cannot be written"),
    ("run x --model toy --json .", "The file '.' cannot be written (it is a folder)"),
    ("run x --model toy --chat", "This model comes without a chat template"),
    ("run x --model toy --top-k=--", ""),
    ("choose --probs=--", ""),
    (f"run x --seed {'9' * 5000}", "seed must be a whole number, but it is '999"),
    ("run x --model ~nobody-of-this-name/x", "There is no model in the folder '~nobody"),
    ("run x --model toy:~nobody-of-this-name/x", "There is no file '~nobody"),
    (f"run x --model {'é' * 300}", "There is no model 'éé"),
    (f"run x --model toy:{'a/' * 1500}", "There is no file 'a/a/"),
    (f"run x --model toy --json {'a' * 300}", "The file 'aaa"),
    ("choose", "One of the arguments --probs --logits is required"),
    ("choose --probs 1 --logits 1", "Argument --logits: not allowed with argument --probs"),
    ("choose --probs [0.5,0.2]", "The probabilities add up to 0.7, but they must add up to 1"),
    ("choose --probs [1.2,-0.2]", "The probability of token 1 is -0.2"),
    ("choose --probs [nan,1]", "The probability of token 0 is nan"),
    ("choose --probs []", "--probs must be a list of numbers, such as [0.5, 0.3, 0.2]"),
    ("choose --probs [[1]]", "--probs must be a list of numbers"),
    ("choose --probs half", "--probs must be a list of numbers"),
    ("choose --logits [1,true]", "--logits must be a list of numbers, such as [3, 2, 1]"),
    ("choose --logits [nan]", "The score of token 0 is not a finite number"),
    ("choose --logits [1,inf]", "The score of token 1 is not a finite number"),
    ("choose --logits [-inf]", "Every token has probability 0, so nothing can be chosen"),
]


@pytest.mark.parametrize(("line", "said"), BAD, ids=[line or "nothing" for line, _ in BAD])
def test_bad_input_exits_2_with_one_sentence(cli, line, said):
    code, out, err = cli(*line.split())
    assert (code, out) == (2, "")
    assert err.startswith(said), err
    assert err.count("\n") == 1
    assert len(err) < 700
    assert "Traceback" not in err


@pytest.mark.parametrize("prompt", ["", "   ", "\n"])
def test_an_empty_prompt_is_refused(cli, prompt):
    code, out, err = cli("run", prompt, "--model", "toy")
    assert (code, out) == (2, "")
    assert err == "The prompt is empty; type at least one character, or pick an example.\n"


def test_an_over_long_prompt_is_refused_with_the_number_that_fits(cli):
    code, _, err = cli("run", "word " * 1500, "--model", "toy")
    assert code == 2
    assert err.startswith("The prompt has 1500 tokens, but toy reads at most 1024 here")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not valid JSON"),
        ("[]", 'A toy model needs "vocab"'),
        ('{"vocab": ["a"], "next": {"*": [0.9]}}', "add up to 0.9, but they must add up to 1"),
        ('{"vocab": ["a"], "next": {"b": [1]}}', "names the word 'b'"),
    ],
)
def test_a_broken_toy_file_is_refused(cli, tmp_path, content, said):
    path = tmp_path / "toy.json"
    path.write_text(content, encoding="utf-8")
    code, out, err = cli("run", "x", "--model", f"toy:{path}")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


# --- as a program


def program(*argv, **options):
    return subprocess.run(
        [sys.executable, "-m", "core", *argv],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
        **options,
    )


def test_the_program_speaks_utf_8_in_any_locale():
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    done = program("run", "法国 x", "--model", "toy", "--max-new", "1", "--json", "-", env=plain)
    assert done.returncode == 0
    assert done.stderr == b""
    assert json.loads(done.stdout.decode("utf-8"))["prompt"][0]["text"] == "法国"


def test_the_program_exits_2_without_a_traceback():
    done = program("choose", "--probs", "[2]")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == (
        "The probabilities add up to 2, but they must add up to 1; change them.\n"
    )


def test_help_says_what_there_is():
    done = program("run", "--help")
    assert done.returncode == 0
    for option in ("--model", "--strategy", "--order", "--force", "--literal", "--json"):
        assert option.encode() in done.stdout


def test_a_reader_who_leaves_early_is_no_error():
    with subprocess.Popen(
        [sys.executable, "-m", "core", "run", "x", "--model", "toy", "--json", "-"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("models >/dev/full", 1),
        ("run x --model toy --json - >/dev/full", 1),
        ("choose --probs 1 >&-", 1),
        ("run x --model toy >&-", 1),
        ("run x --model nope 2>&-", 0),
        ("run x --model nope 2>/dev/full", 0),
    ],
)
def test_a_full_or_closed_output_is_one_sentence(line, said):
    if "/dev/full" in line and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m core {line}', sys.executable],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == said
    assert b"Traceback" not in done.stderr


def test_control_c_ends_a_run_after_the_step_at_hand(cli, tmp_path, monkeypatch):
    from core.cli import show

    stepped = show.Listing.step

    def step(self, trace):
        stepped(self, trace)
        if trace.index == 1:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(show.Listing, "step", step)
    before = signal.getsignal(signal.SIGINT)
    code, out, _ = cli("run", "The", "--model", "toy", "--strategy", "greedy")
    assert signal.getsignal(signal.SIGINT) is before
    assert code == 0
    assert "1 prompt token, 2 new; you stopped it." in out


def test_the_schema_covers_the_records():
    """A field added to a choice must be added to the promise, or left out on purpose."""
    told = {"id", "rule", "probability_model", "probability_filtered", "rank", "u"}
    kept_back = {"entropy_model", "entropy_filtered", "stages"}
    assert set(Choice.__dataclass_fields__) == told | kept_back
    assert choose([1.0], Settings(), step=0).rank == 1
    assert STAGE_NAMES == ("temperature", "top_k", "top_p", "min_p", "typical_p")


def test_fetching_shows_a_progress_line_and_the_terms_first(cli, tmp_path, monkeypatch):
    from core.cli import commands

    def fetch(entry, progress):
        for step in range(101):
            progress(step / 100, "download" if step < 50 else "convert")
        return tmp_path

    monkeypatch.setattr(commands, "fetch", fetch)
    monkeypatch.setattr(commands, "state_on_disk", lambda entry: "absent")
    code, out, err = cli("models", "fetch", "gemma3-270m")
    assert (code, out) == (0, f"gemma3-270m is ready in {tmp_path}\n")
    assert err.startswith("Gemma Terms of Use\n")
    assert "you agree to be bound by" in err
    after = err[err.index("gemma3-270m comes under Gemma Terms of Use (https://ai.google.dev/") :]
    progress = after.splitlines()[1:]
    assert progress[0] == "gemma3-270m: downloading, 0 %"
    assert progress[5:7] == ["gemma3-270m: converting, 50 %", "gemma3-270m: converting, 60 %"]
    assert len(progress) == 11
