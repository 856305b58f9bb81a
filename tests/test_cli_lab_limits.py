"""``lab roofline`` and ``lab plan``: the figures of the page, in one sentence where they can't."""

import csv
import io

import pytest

from core.lab.plan import devices
from core.lab.plan_table import COLUMNS
from core.lab.roofline import RoofTurn
from core.lab.roofline_ops import Case, counts_of, total
from core.lab.roofline_store import save_roof, stored_roof, stored_steps
from core.lab.shape_presets import presets
from tests.test_lab_roofline import disturbed
from tests.test_lab_roofline import roof as calm_roof


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A machine that was never measured."""
    monkeypatch.setenv("TOKEN_BY_TOKEN_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def quick(monkeypatch):
    """Smaller probes."""
    from core.lab.roofline import measure_roof

    def small(device):
        return measure_roof(device, rows=256, columns=512, side=128, repeats=1)

    monkeypatch.setattr("core.lab.roofline_run.measure_roof", small)


def test_the_roof_and_the_passes_of_a_model(as_json, quick, tiny):
    found = as_json("lab", "roofline", "--model", "tiny", "--batches", "1,4", "--context", "16")
    assert found["complete"]
    assert [(p["phase"], p["batch"], p["tokens"]) for p in found["passes"]] == [
        ("prefill", 1, 16), ("decode", 1, 16), ("decode", 4, 16),
    ]  # fmt: skip
    for each in found["passes"]:
        counts = counts_of(tiny, Case(each["phase"], each["batch"], 16), 4)
        assert (each["flops"], each["bytes"]) == total(counts)
        limits = sum(operation["limit_ms"] for operation in each["operations"])
        assert each["limit_ms"] == pytest.approx(limits)
        measured = each["measured_ms"]["median"]
        assert each["share_of_limit"] == pytest.approx(each["limit_ms"] / measured)
        assert each["measured_by_limit"] == pytest.approx(measured / each["limit_ms"])
        roof = found["roof"]
        for operation in each["operations"]:
            slope = operation["flops_a_byte"] * roof["bandwidth_gb_s"]
            assert operation["attainable_gflop_s"] == pytest.approx(
                min(slope, roof["gflop_s"]["fp32"])
            )
    assert stored_roof().bandwidth == found["roof"]["bandwidth_gb_s"]
    assert len(stored_steps("tiny").times) == 3


def test_the_roof_for_people(cli, quick):
    code, out, _ = cli("lab", "roofline", "--model", "tiny", "--batches", "2", "--context", "8")
    assert code == 0
    assert "GB/s" in out
    assert "decode        2       8" in out


@pytest.mark.parametrize("typed", [("--batches", "0"), ("--batches", "1,x"), ("--context", "-1")])
def test_a_roof_that_cannot_be_measured(cli, typed):
    code, out, err = cli("lab", "roofline", "--model", "tiny", *typed)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1


def test_a_toy_has_no_passes(cli):
    code, _, err = cli("lab", "roofline", "--model", "toy")
    assert code == 2
    assert "weights" in err


def test_seventy_billion_on_eight(as_json):
    found = as_json(
        "lab", "plan", "--config", "llama-3-70b", "--device", "NVIDIA H100 80 GB SXM",
        "--precision", "bf16", "--batch", "1", "--prompt", "512", "--new", "128", "--tp", "8",
    )  # fmt: skip
    (plan,) = found["plans"]
    assert tuple(plan) == COLUMNS
    assert plan["fits"]
    assert plan["kind"] == "theory"
    assert plan["weights_gb"] == pytest.approx(70_553_706_496 * 2 / 8 / 1e9)
    assert 5 < plan["per_token_ms"] < 12.18
    assert plan["waiting_share"] > 0.99
    assert found["shape"]["parameters"] == 70_553_706_496
    assert found["advice"]["ranks"] == 2
    assert "glennklockwood" in found["sources"]["NVIDIA H100 80 GB SXM"]


def test_a_line_of_a_plan_says_what_its_row_says(cli, as_json):
    asked = ("lab", "plan", "--config", "llama-2-7b", "--device", "a100 80", "--batch", "4")
    (plan,) = as_json(*asked)["plans"]
    line = cli(*asked)[1].splitlines()[2]
    words = line.removeprefix(plan["device"]).split()
    assert words == [
        "bf16", "4", "1×1", f"{plan['needed_gb']:.1f}", "GB", "80", "GB", "yes",
        f"{plan['first_token_ms']:.1f}", "ms", f"{plan['per_token_ms']:.2f}", "ms",
        f"{plan['tokens_per_second']:,.0f}", "bandwidth",
    ]  # fmt: skip


def test_every_device_is_planned_and_refusals_stand_in_their_rows(as_json):
    found = as_json("lab", "plan", "--config", "mixtral-8x7b", "--tp", "1,3", "--precision", "int4")
    assert len(found["plans"]) == 2 * len(devices())
    whys = {plan["tensor_parallel"]: plan["why_not"] for plan in found["plans"]}
    assert whys[1] is None
    assert "32 heads" in whys[3]


def test_a_model_by_its_numbers(as_json):
    numbers = ("--layers", "32", "--width", "4096", "--heads", "32", "--feed-forward", "11008")
    found = as_json("lab", "plan", *numbers, "--vocabulary", "32000", "--device", "l40s")
    assert found["shape"]["parameters"] == presets()["llama-2-7b"].shape.parameters
    assert found["shape"]["kv_heads"] == 32
    spelled = as_json(
        "lab", "plan", "--config", "32.4096.32.32.128.11008.32000", "--device", "l40s"
    )
    assert spelled["plans"] == found["plans"]


def test_csv_on_the_screen_and_in_a_file(cli, tmp_path):
    asked = ("lab", "plan", "--config", "llama-3-8b", "--device", "4090,l40s", "--batch", "1,8")
    code, out, err = cli(*asked, "--csv")
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(r["device"], r["batch"]) for r in rows] == [
        ("NVIDIA RTX 4090 24 GB", "1"), ("NVIDIA RTX 4090 24 GB", "8"),
        ("NVIDIA L40S 48 GB", "1"), ("NVIDIA L40S 48 GB", "8"),
    ]  # fmt: skip
    target = tmp_path / "plan.csv"
    assert cli(*asked, "--csv", str(target))[0] == 0
    assert target.read_text(encoding="utf-8-sig") == out


@pytest.fixture
def busy(home):
    """A machine whose only measurement was disturbed."""
    roof = disturbed(calm_roof())
    save_roof(roof)
    return roof


def test_a_plan_repeats_the_warning_of_a_disturbed_measurement(cli, as_json, busy):
    said = (
        "this machine, measured 2026-12-01 04:33 UTC: something else was running (one call took "
        "1.8 times as long as its quickest repeat); the machine can do more than this"
    )
    here = ("lab", "plan", "--config", "llama-3-8b", "--device", "this machine")
    assert said in cli(*here)[1].splitlines()
    assert as_json(*here)["warning"] == said
    assert cli(*here, "--csv")[2].strip() == said
    assert as_json("lab", "plan", "--device", "h100")["warning"] is None
    save_roof(calm_roof())
    assert as_json(*here)["warning"] is None


def test_the_command_says_that_it_kept_the_earlier_roof(cli, as_json, home, monkeypatch):
    save_roof(calm_roof())
    monkeypatch.setattr(
        "core.lab.roofline_run.measure_roof",
        lambda device: iter([RoofTurn(1.0, disturbed(calm_roof()))]),
    )
    asked = ("lab", "roofline", "--model", "tiny", "--batches", "1", "--context", "8")
    assert (
        "kept the earlier roof of 2026-11-30, because something else was running now: one call "
        "took 1.8 times as long as its quickest repeat (1.0 GB/s instead of 10.0);"
    ) in cli(*asked)[1].splitlines()
    assert as_json(*asked)["roof"]["bandwidth_gb_s"] == 10


def test_a_model_by_its_numbers_names_what_is_missing(cli):
    code, _, err = cli("lab", "plan", "--layers", "1", "--heads", "2")
    assert code == 2
    assert err.strip() == (
        "A model given by its numbers needs width, feed-forward, vocabulary as well; give "
        "--width N --feed-forward N --vocabulary N too."
    )


def test_an_empty_file_name_is_no_folder(cli):
    code, _, err = cli("lab", "plan", "--device", "h100", "--json", "")
    assert code == 2
    assert "its name is empty" in err
    assert "sidebar" not in cli("lab", "roofline", "--model", "toy")[2]


def test_columns_never_run_together(cli):
    """A model of 34 thousand billion parameters: every cell still has a space before it."""
    _, out, _ = cli(
        "lab", "plan", "--config", "1.1000000.8.8.125000.10000000.32000", "--device", "4090",
        "--precision", "fp32,int4", "--batch", "1,1048576",
    )  # fmt: skip
    rows = [line for line in out.splitlines() if line.startswith("NVIDIA")]
    assert len(rows) == 4
    for row in rows:
        assert len(row.removeprefix("NVIDIA RTX 4090 24 GB").split()) == 14, row
    slow = next(row for row in rows if " fp32 " in row)
    assert float(slow.split()[-2]) == pytest.approx(0.0074, rel=0.01)


def test_a_plan_for_people_says_what_would_fit(cli):
    code, out, _ = cli("lab", "plan", "--config", "llama-3-70b", "--device", "h100")
    assert code == 0
    assert "it does not fit: weights alone take 141 GB of 80 GB" in out
    assert "with int8 it would" in out
    assert "on 2 devices, tensor parallel, it would" in out
    assert "the arithmetic waits 99.7% of a step" in out


@pytest.mark.parametrize(
    "typed",
    [
        ("--config", "nothing"),
        ("--config", "a/b"),
        ("--device", "nothing"),
        ("--device", "this machine"),
        ("--precision", "int3"),
        ("--batch", "x"),
        ("--batch", "0"),
        ("--tp", "3", "--device", "h100"),
        ("--new", "0"),
        ("--layers", "2"),
        ("--csv", "no/such/folder/x.csv"),
        ("--batch", ",".join(map(str, range(1, 1000)))),
    ],
)
def test_a_plan_that_cannot_be_made(cli, typed):
    code, out, err = cli("lab", "plan", *typed)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
