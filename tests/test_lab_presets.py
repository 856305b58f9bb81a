"""The planner's models and devices: published numbers, and bounds beside published times."""

import csv
import io
import json

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from core.faults import Fault
from core.lab.plan import Load, devices, plan
from core.lab.plan_advice import (
    HERE,
    MOST_BATCH,
    advise,
    bound,
    device_named,
    measured_here,
    of_machine,
    published,
)
from core.lab.plan_table import COLUMNS, MOST_ROWS, as_csv, combinations, row
from core.lab.roofline_store import recorded
from core.lab.shape import shape_of
from core.lab.shape_presets import (
    TYPED,
    config_folder,
    fetch_config,
    fetched,
    fetched_shape,
    hub_entry,
    named_shape,
    presets,
    spell_shape,
    typed_shape,
)

H100 = device_named("NVIDIA H100 80 GB SXM")
A100 = device_named("NVIDIA A100 80 GB SXM")
LLAMA2 = presets()["llama-2-7b"].shape
LLAMA3 = presets()["llama-3-70b"].shape
FAMILIES = {
    "smollm2": "llama", "llama": "llama", "mistral": "mistral", "mixtral": "mixtral",
    "qwen2.5": "qwen2", "qwen3": "qwen3", "gemma": "gemma3_text",
}  # fmt: skip


def config_of(name: str):
    """The configuration that transformers makes of a preset's numbers."""
    shape = presets()[name].shape
    family = next(family for prefix, family in FAMILIES.items() if name.startswith(prefix))
    numbers = {
        "num_hidden_layers": shape.layers, "hidden_size": shape.width,
        "num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim, "intermediate_size": shape.feed_forward,
        "vocab_size": shape.vocabulary, "tie_word_embeddings": shape.tied,
    }  # fmt: skip
    if shape.experts > 1:
        family = "qwen3_moe" if family == "qwen3" else family
        numbers |= {"num_local_experts": shape.experts, "num_experts": shape.experts}
        numbers |= {
            "num_experts_per_tok": shape.active,
            "moe_intermediate_size": shape.feed_forward,
        }
    if shape.window:
        numbers["sliding_window"] = shape.window
    if family == "gemma3_text":
        kinds = ["sliding_attention"] * 5 + ["full_attention"]
        numbers["layer_types"] = (kinds * shape.layers)[: shape.layers]
    return AutoConfig.for_model(family, **numbers)


@pytest.mark.parametrize("name", presets())
def test_a_preset_has_the_parameters_of_the_real_architecture(name):
    config, shape = config_of(name), presets()[name].shape
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    assert shape.parameters == sum(p.numel() for p in model.parameters())
    assert shape_of(config, name) == shape


def test_every_preset_says_where_its_numbers_come_from():
    for preset in presets().values():
        assert preset.title
        assert preset.source
        assert preset.date == "2026-11-30"


@pytest.mark.model
def test_the_packaged_models_are_the_presets(smollm2, gemma3):
    for engine in (smollm2, gemma3):
        with engine.borrowed() as model:
            found = shape_of(model.config, engine.info.name)
        assert found == presets()[engine.info.name].shape
        assert found.parameters == engine.info.parameters


# --- bounds beside published measurements


def test_llama_3_70b_on_eight_h100_worked_by_hand():
    """LambdaLabs, vLLM, 10 requests at once: 12.18 ms for each token after the first.

    One of 8 devices reads an eighth of the weights without the embedding matrix, and its part of
    the keys and values of 10 texts of 137 + 102 tokens; 160 all-reduces take 10 µs at least, and
    their bytes at 450 GB/s.
    """
    load = Load(batch=10, prompt=137, new=205, tensor_parallel=8)
    found = plan(LLAMA3, H100, load)
    weights = 2 * (70_553_706_496 - 128_256 * 8192) / 8
    kv = 10 * 2 * 80 * 8 * 128 * 2 * 239 / 8
    sent = 160 * 10 * 8192 * 2 * 2 * 7 / 8
    hand = (weights + kv) / 3350e9 + 160 * 10e-6 + sent / 450e9
    assert found.per_token == pytest.approx(hand)
    assert hand < 0.01218 < 2 * hand
    assert found.fits


def test_llama_2_7b_on_one_a100_worked_by_hand():
    """gpt-fast: 104.9 tokens/s; lmdeploy 0.2.0: 100.0, both at batch 1."""
    found = plan(LLAMA2, A100, Load(prompt=5, new=200))
    hand = (2 * (6_738_415_616 - 32_000 * 4096) + 2 * 32 * 32 * 128 * 2 * 105) / 2039e9
    assert found.per_token == pytest.approx(hand)
    for measured in (104.9, 100.0):
        assert 0.6 / hand < measured < 1 / hand


def test_no_published_time_undercuts_its_bound_and_none_is_twice_as_long():
    assert len(published()) >= 7
    for each in published():
        assert 1 < each.ratio < 2, each
        assert each.source
        assert each.date


def test_an_impossible_split_needs_no_link():
    with pytest.raises(Fault) as caught:
        plan(LLAMA2, of_machine(recorded()[0]), Load(tensor_parallel=2))
    assert caught.value.code == "device_alone"


def test_this_machine_is_a_device_by_its_measurement():
    roof, steps = recorded()
    device = of_machine(roof)
    assert (device.name, device.link) == (HERE, 0)
    assert device.bandwidth == roof.bandwidth
    assert device.rate("fp32") == pytest.approx(roof.rate("fp32") * 1e9)
    assert device.rate("bf16") == pytest.approx(roof.rate("bf16") * 1e9)
    assert device.memory * 1e9 == roof.machine.memory
    rows = list(measured_here(presets()["smollm2-135m"].shape, roof, steps["smollm2-135m"]))
    assert [(r.what, r.load.batch) for r in rows][:3] == [
        ("first_token", 1), ("per_token", 1), ("per_token", 2),
    ]  # fmt: skip
    one = rows[1]
    # 134.5 million weights of 4 bytes, and the cache of 128 tokens.
    hand = (134_515_008 * 4 + 128 * 46_080) / roof.bandwidth / 1e6
    assert one.theory == pytest.approx(hand)
    assert one.ratio == pytest.approx(steps["smollm2-135m"].of("decode").time.median / hand)
    assert all(r.ratio > 1 for r in rows)


def test_an_answer_takes_its_first_token_and_the_others():
    load = Load(prompt=5, new=200)
    found = plan(LLAMA2, A100, load)
    whole = 1000 * (found.first_token + 199 * found.per_token)
    assert bound(found, load, "whole") == pytest.approx(whole)
    alone = Load(prompt=5, new=1)
    assert bound(found, alone, "whole") == bound(found, alone, "first_token")


# --- what would fit


def test_seventy_billion_weights_do_not_fit_into_eighty_gigabytes():
    found = advise(LLAMA3, H100, Load())
    assert (found.precision, found.ranks, found.batch) == ("int8", 2, 0)
    four = advise(LLAMA3, device_named("RTX 4090"), Load())
    # int4 needs about 43 GB, and two devices 71 GB each.
    assert (four.precision, four.ranks) == (None, 8)


def test_the_largest_batch_is_the_last_that_fits():
    load = Load(prompt=1000, new=1000)
    batch = advise(LLAMA2, A100, load).batch
    fits = [
        plan(LLAMA2, A100, Load(prompt=1000, new=1000, batch=n)).fits for n in (batch, batch + 1)
    ]
    assert fits == [True, False]
    assert advise(presets()["smollm2-135m"].shape, H100, Load()).batch == MOST_BATCH


def test_devices_go_by_a_part_of_their_name():
    assert device_named("h100") is H100
    assert device_named(" nvidia a100 80 gb sxm ") is A100
    for name in ("a100", "", "abacus", HERE):
        with pytest.raises(Fault) as caught:
            device_named(name)
        assert caught.value.code == "unknown_device"


# --- rows


def test_rows_are_every_combination_and_survive_a_spreadsheet():
    found = combinations(
        LLAMA3, devices()[:2], Load(), precisions=("bf16", "int4"), tensor=(1, 7), batches=(1, 8)
    )
    assert len(found) == 2 * 2 * 2 * 2
    rows = [row(each) for each in found]
    assert all(tuple(each) == COLUMNS for each in rows)
    assert {each["kind"] for each in rows} == {"theory"}
    bad = [each for each in rows if each["tensor_parallel"] == 7]
    assert all("64 heads" in each["why_not"] and each["fits"] is None for each in bad)
    read = list(csv.DictReader(io.StringIO(as_csv(rows))))
    assert [each["device"] for each in read] == [each["device"] for each in rows]
    assert float(read[0]["weights_gb"]) == pytest.approx(rows[0]["weights_gb"], rel=1e-5)
    assert read[0]["fits"] == "False"
    json.dumps(rows)


def test_a_row_says_what_the_plan_says():
    (found,) = combinations(LLAMA3, [H100], Load(tensor_parallel=8, pipeline_parallel=2))
    made, said = found.plan, row(found)
    gigabytes = {"weights": made.weights, "kv": made.kv, "activations": made.activations}
    gigabytes["needed"] = made.weights + made.kv + made.activations
    assert {name: said[f"{name}_gb"] * 1e9 for name in gigabytes} == pytest.approx(gigabytes)
    seconds = {
        "first_token": made.first_token,
        "per_token": made.per_token,
        "communication": made.communication,
    }
    assert {name: said[f"{name}_ms"] / 1e3 for name in seconds} == pytest.approx(seconds)
    assert said["communication_mb"] * 1e6 == pytest.approx(made.communication_bytes)
    assert said["tokens_per_second"] == made.tokens_per_second


def test_a_name_is_no_formula():
    text = as_csv([{**row(combinations(LLAMA3, devices()[:1], Load())[0]), "model": "=1+1"}])
    assert text.splitlines()[1].startswith("'=1+1,")


def test_too_many_combinations_are_refused():
    with pytest.raises(Fault) as caught:
        combinations(LLAMA3, devices(), Load(), batches=tuple(range(1, MOST_ROWS)))
    assert caught.value.code == "too_many_plans"


# --- typed and fetched


def test_a_typed_shape_is_spelled_as_it_is_read():
    text = "32.4096.32.32.128.11008.32000.1.1"
    assert spell_shape(typed_shape(text)) == text
    assert typed_shape("32.4096.32.32.128.11008.32000").parameters == LLAMA2.parameters
    assert spell_shape(LLAMA2) == text
    assert len(text.split(".")) == len(TYPED)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1.2.3", "shape_not_understood"),
        ("1.2.3.4.5.6.x", "shape_not_understood"),
        ("32.4096.32.5.128.11008.32000", "heads_do_not_fit"),
        ("0.4096.32.32.128.11008.32000", "setting_out_of_range"),
        ("32.4096.32.32.128.11008.32000.2.3", "setting_out_of_range"),
    ],
)
def test_a_typed_shape_that_is_none(text, code):
    with pytest.raises(Fault) as caught:
        typed_shape(text)
    assert caught.value.code == code


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with one model, whose configuration is the dict."""
    monkeypatch.setenv("TOKEN_BY_TOKEN_HOME", str(tmp_path))
    config = config_of("qwen3-8b").to_dict()

    def download(name, folder):
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")

    monkeypatch.setattr("core.models.hub.download_config", download)
    return config


def test_a_configuration_of_the_hub_is_fetched_once_and_read(hub):
    entry = hub_entry("Qwen/Qwen3-8B")
    assert not fetched(entry)
    with pytest.raises(Fault) as caught:
        named_shape("Qwen/Qwen3-8B")
    assert caught.value.code == "not_fetched"
    fetch_config(entry)
    assert fetched(entry)
    found = named_shape("Qwen/Qwen3-8B")
    assert found.parameters == presets()["qwen3-8b"].shape.parameters
    folder = config_folder("Qwen/Qwen3-8B")
    assert named_shape(str(folder)).parameters == found.parameters
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"model_type": "nobody-knows"}, "config_not_readable"),
        ({"model_type": "deepseek_v3", "kv_lora_rank": 512}, "config_not_counted"),
        (
            {"layer_types": ["linear_attention"] * 36, "model_type": "qwen3_5_text"},
            "config_not_counted",
        ),
        ({"num_key_value_heads": 5}, "heads_do_not_fit"),
    ],
)
def test_a_configuration_that_cannot_be_counted(hub, changes, code):
    hub |= changes
    entry = hub_entry("a/b")
    fetch_config(entry)
    with pytest.raises(Fault) as caught:
        fetched_shape(entry)
    assert caught.value.code == code


def test_offline_a_hub_id_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKEN_BY_TOKEN_HOME", str(tmp_path))
    with pytest.raises(Fault) as caught:
        fetch_config(hub_entry("a/b"))
    assert caught.value.code == "hub_unreachable"
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", ["nothing", "", "../x", "smollm2-135m/..", "名"])
def test_a_name_that_is_no_model(name):
    with pytest.raises(Fault):
        named_shape(name)


def test_a_class_reads_no_folder_and_asks_no_hub():
    for name in ("Qwen/Qwen3-8B", "core"):
        with pytest.raises(Fault):
            named_shape(name, local=False)
