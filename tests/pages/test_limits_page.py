"""The Limits page without a browser: what it says, and that its numbers are the core's."""

import json

import pytest

from core.lab.plan import Load, devices
from core.lab.plan_advice import device_named, published
from core.lab.plan_table import planned
from core.lab.roofline import RoofTurn, measure_roof
from core.lab.roofline_ops import Case, counts_of, step_limit
from core.lab.roofline_run import known, known_before
from core.lab.roofline_store import save_roof, stored_roof, stored_steps
from core.lab.shape_presets import presets
from tests.pages.app import healthy, open_app, query_of, words
from tests.test_lab_roofline import disturbed
from tests.test_lab_roofline import roof as calm_roof
from ui.figures.limits_plan import milliseconds
from ui.figures.words import in_bytes, unbroken
from ui.i18n import bound, catalog
from ui.lab import jobs
from ui.state import store

PAGE = "13_Limits"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A machine that was never measured, and probes that take no time."""
    monkeypatch.setenv("TOKEN_BY_TOKEN_HOME", str(tmp_path))
    jobs.clear()
    monkeypatch.setattr(
        "core.lab.roofline_run.measure_roof",
        lambda device: measure_roof(device, rows=64, columns=256, side=64, repeats=1),
    )
    return tmp_path


def page(lang="en", **query):
    return open_app(PAGE, **{"model": "tiny", "lang": lang, "prompt": "the thing", **query})


def tiles(at) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


def points(at, key="limits_roofline") -> list[dict]:
    chart = next(c for c in at.get("plotly_chart") if key in c.proto.id)
    return json.loads(chart.proto.spec)["data"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_part_is_there_and_says_where_it_comes_from(lang):
    at, t = page(lang), catalog(lang)
    said = words(at)
    for key in ("roof_title", "operations_title", "steps_title", "plan_title"):
        assert t(f"limits.{key}") in said, key
    for kind in ("recorded", "computed", "published"):
        assert t(f"lab.{kind}") in said, kind
    found = known("tiny")
    assert not found.here
    shown = tiles(at)
    assert shown[t("limits.bandwidth")] == f"{found.roof.bandwidth:,.1f} GB/s"
    assert shown[t("limits.products", dtype="bf16")] == f"{found.roof.rate('bf16'):,.0f} GFLOP/s"
    assert [info.value for info in at.info] == [t("limits.steps_missing")]
    assert not at.error
    assert at.button(key="lab_run_limits").label == t("limits.measure")
    # 141 GB of weights on one H100, as the page opens.
    assert bound("141 GB") in at.warning[0].value
    assert len(at.get("plotly_chart")) == 3


def test_the_sentence_under_the_roof_is_the_sum_of_its_operations():
    at, t = page(limits="texts=8,context=64"), catalog("en")
    engine, roof = store().engine("tiny"), known("tiny").roof
    limits = {
        phase: step_limit(counts_of(engine, Case(phase, 8, 64), 4), roof, "fp32")
        for phase in ("decode", "prefill")
    }
    said = words(at)
    assert bound(f"takes at least **{milliseconds(limits['decode'] / 1000)}**") in said
    assert (
        bound(f"Reading the prompts takes at least **{milliseconds(limits['prefill'] / 1000)}**")
        in said
    )
    # Nothing was recorded of this model, so there is no filled mark to speak of.
    assert t("limits.filled_how") not in said
    assert "Filled marks stand" not in said


def test_a_measured_machine_does_not_hide_what_was_recorded_of_the_model():
    save_roof(calm_roof())
    at, t = page(model="smollm2-135m", limits="texts=3"), catalog("en")
    said, before = words(at), known_before("smollm2-135m")
    assert [info.value for info in at.info] == [t("limits.steps_missing")]
    one = before.steps.of("decode", 1)
    assert bound(f"took **{milliseconds(one.time.median / 1000)}**") in said
    assert unbroken(before.steps.machine.date) in said


def test_the_batch_moves_the_weights_and_not_the_scores():
    at = page()
    before = points(at)[2]["x"]
    healthy(at.select_slider(key="w_limits_texts").set_value(16).run())
    after = points(at)[2]["x"]
    kinds = [c.kind for c in counts_of(store().engine("tiny"), Case("decode", 1, 128), 4)]
    for kind, old, new in zip(kinds, before, after, strict=True):
        assert new == pytest.approx(old) if kind in ("scores", "values") else new > 4 * old, kind
    assert query_of(at)["limits"] == "texts=16"


def finished(at):
    """The page once the measurement has ended; a fragment asks again, the test does it by hand."""
    for _ in range(60):
        if stored_steps("tiny") is not None and not at.get("progress"):
            return at
        at = healthy(at.run())
    raise AssertionError("the measurement does not end")


def test_it_measures_this_machine_and_shows_that_from_then_on():
    at, t = page(), catalog("en")
    at = finished(healthy(at.button(key="lab_run_limits").click().run()))
    at = healthy(at.run())
    roof, steps = stored_roof(), stored_steps("tiny")
    assert tiles(at)[t("limits.bandwidth")] == f"{roof.bandwidth:,.1f} GB/s"
    one = steps.of("decode", 1)
    assert bound(f"took **{milliseconds(one.time.median / 1000)}**") in words(at)
    assert len(at.get("plotly_chart")) == 5
    assert not at.info
    assert t("limits.here") in [option for option in at.selectbox(key="w_limits_device").options]
    again = page(limits="device=this machine,model=here")
    assert again.selectbox(key="w_limits_device").value == "this machine"
    assert again.success[0].value.startswith("It fits")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_disturbed_measurement_is_not_taken_for_a_good_one(lang, monkeypatch):
    t, calm = catalog(lang), calm_roof()
    busy = disturbed(calm)
    said = t("limits.restless", times=f"{busy.unrest:.1f}")
    save_roof(busy)
    # Where it is all there is: above, and again in a plan for this machine.
    assert words(page(lang)).count(said) == 1
    at = page(lang, limits="device=this machine")
    assert words(at).count(said) == 2
    assert unbroken(busy.machine.date) in words(at)
    # Where a calm one is there, that one stands, and the page says so.
    save_roof(calm)
    monkeypatch.setattr(
        "core.lab.roofline_run.measure_roof", lambda device: iter([RoofTurn(1.0, busy)])
    )
    at = page(lang)
    at = finished(healthy(at.button(key="lab_run_limits").click().run()))
    at = healthy(at.run())
    kept = t(
        "limits.kept",
        date=unbroken(calm.machine.date),
        times="1.8",
        new="1.0 GB/s",
        old="10.0 GB/s",
    )
    assert kept in words(at)
    assert said not in words(at)
    assert tiles(at)[t("limits.bandwidth")] == "10.0 GB/s"
    assert stored_roof() == calm


def test_the_planner_answers_with_the_cores_numbers():
    asked = (
        "model=qwen3-30b-a3b,device=NVIDIA RTX 4090 24 GB,precision=int4,batch=16,prompt=100,new=50"
    )
    at, t = page(limits=asked), catalog("en")
    load = Load(precision="int4", batch=16, prompt=100, new=50)
    found = planned(presets()["qwen3-30b-a3b"].shape, device_named("4090"), load).plan
    shown = tiles(at)
    assert shown[t("limits.tile_memory")] == in_bytes(found.memory)
    assert shown[t("limits.tile_first")] == milliseconds(found.first_token)
    assert shown[t("limits.tile_token")] == milliseconds(found.per_token)
    assert shown[t("limits.tile_tokens")] == f"{found.tokens_per_second:,.0f}"
    frames = [frame.value for frame in at.dataframe]
    assert any(len(frame) == len(devices()) for frame in frames)
    assert any(
        list(frame.get(t("limits.col_theory_ratio"), [])) == [p.ratio for p in published()]
        for frame in frames
    )
    healthy(at.selectbox(key="w_limits_tp").set_value(8).run())
    assert query_of(at)["limits"].endswith("tp=8")
    # 32 query heads go into 8, but the experts and 4 KV heads are repeated: it is planned.
    assert t("limits.tile_sent") in tiles(at)


def test_a_split_that_is_impossible_is_a_sentence():
    at = page(limits="tp=3")
    assert "64 heads cannot be dealt out evenly to 3 ranks" in at.error[0].value
    assert any(len(frame.value) == len(devices()) for frame in at.dataframe)


def test_numbers_can_be_typed():
    at, t = page(limits="model=2.32.4.2.8.64.300"), catalog("en")
    assert at.number_input(key="w_limits_kv_heads").value == 2
    healthy(at.number_input(key="w_limits_layers").set_value(40).run())
    assert query_of(at)["limits"] == "model=40.32.4.2.8.64.300.1.1"
    healthy(at.number_input(key="w_limits_heads").set_value(5).run())
    assert "must be a multiple" in at.error[0].value
    healthy(at.selectbox(key="w_limits_model").set_value("llama-2-7b").run())
    assert not at.error
    found = planned(presets()["llama-2-7b"].shape, device_named("H100 80 GB SXM"), Load()).plan
    assert tiles(at)[t("limits.tile_memory")] == in_bytes(found.memory)


def test_a_hub_model_needs_its_configuration(monkeypatch):
    at, t = page(limits="model=Qwen/Qwen3-8B"), catalog("en")
    assert t("limits.hub_fetch") in [button.label for button in at.button]
    assert "Qwen" in words(at)
    offline = healthy(at.button(key="limits_hub_fetch").click().run())
    assert "cannot be reached" in offline.error[0].value
    monkeypatch.setattr("ui.state.IN_CLASS", True)
    refused = page(limits="model=Qwen/Qwen3-8B")
    assert "class" in refused.error[0].value


@pytest.mark.parametrize(
    "text",
    [
        "texts=0,context=x,batch=-1,tp=99999,precision=int3",
        "model=..%2F..,device=<b>,new=1e9",
        "model=$x$,device=",
        "model=9",
        "model=" + "9" * 200,
        "model=" + ".".join(["999999999"] * 9),
        "prompt=1048576,new=1048576,batch=4096,model=gemma-3-12b",
        "=,=,,%",
        "model=here",
    ],
)
def test_a_damaged_link_still_opens(text):
    at = page(limits=text)
    assert tiles(at)
    assert len(at.error) <= 1


def test_a_table_of_probabilities_can_plan():
    at, t = page(model="toy"), catalog("en")
    assert [info.value for info in at.info] == [t("fault.lab_needs_weights")]
    assert at.warning
    assert "2. " + t("limits.plan_title") in words(at)
    here = page(model="toy", limits="model=here")
    assert here.selectbox(key="w_limits_model").value == "llama-3-70b"


def test_without_a_run_it_can_be_planned():
    at = page(lang="zh", prompt="")
    assert catalog("zh")("limits.plan_title") in words(at)
    assert at.warning
    assert len(at.error) == 1
