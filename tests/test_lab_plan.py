"""Counting: published sizes of known models, and bounds worked by hand."""

from dataclasses import replace

import pytest

from core.faults import Fault
from core.lab.plan import EXCHANGE_SECONDS, Load, devices, plan, weight_bytes
from core.lab.shape import ModelShape, shape_of
from core.models.tiny import tiny

SMOLLM2 = ModelShape("smollm2", 30, 576, 9, 3, 64, 1536, 49152, tied=True)
GEMMA3 = ModelShape(
    "gemma3", 18, 640, 4, 1, 256, 2048, 262144,
    tied=True, window=512, sliding_layers=15, norms=4, qk_norm=True,
)  # fmt: skip
LLAMA2_7B = ModelShape("llama-2-7b", 32, 4096, 32, 32, 128, 11008, 32000)
LLAMA3_70B = ModelShape("llama-3-70b", 80, 8192, 64, 8, 128, 28672, 128256)
MIXTRAL = ModelShape("mixtral-8x7b", 32, 4096, 32, 8, 128, 14336, 32000, experts=8, active=2)
A100 = next(d for d in devices() if d.name == "NVIDIA A100 80 GB SXM")
H100 = next(d for d in devices() if d.name == "NVIDIA H100 80 GB SXM")


@pytest.mark.parametrize(
    ("shape", "parameters"),
    [
        (SMOLLM2, 134_515_008),
        (GEMMA3, 268_098_176),
        (LLAMA2_7B, 6_738_415_616),
        (LLAMA3_70B, 70_553_706_496),
        (MIXTRAL, 46_702_792_704),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_parameters_are_those_of_the_published_models(shape, parameters):
    assert shape.parameters == parameters


def test_a_token_of_a_mixture_goes_through_its_experts_alone():
    others = 6 * MIXTRAL.expert_parameters * 32
    unread = MIXTRAL.norm_parameters + MIXTRAL.table_parameters
    assert MIXTRAL.active_parameters == MIXTRAL.parameters - others - unread
    assert MIXTRAL.experts_met(1) == pytest.approx(2)
    assert MIXTRAL.experts_met(10_000) == pytest.approx(8)


def test_kv_bytes_of_the_packaged_models():
    assert SMOLLM2.kv_bytes(1, 4) == 46_080
    assert SMOLLM2.kv_bytes(1000, 4) == 46_080_000
    # 3 layers see everything, 15 see 512 positions: 2 · 1 · 256 · 4 bytes each.
    assert GEMMA3.kv_bytes(1000, 4) == 2048 * (3 * 1000 + 15 * 512)


def test_the_operations_of_a_step():
    tiny = ModelShape("t", 1, 2, 1, 1, 2, 3, 5)
    assert tiny.attention_parameters == 4 * 2 * 2
    assert tiny.expert_parameters == 3 * 2 * 3
    assert tiny.decode_flops(4) == 2 * (16 + 18 + 10) + 4 * 1 * 2 * 4
    assert tiny.prefill_flops(1) == tiny.decode_flops(1)
    assert tiny.prefill_flops(2) == 2 * (16 + 18) * 2 + 2 * 10 + 8 * (1 + 2)


@pytest.mark.parametrize("tokens", [1, 511, 512, 513, 2000])
def test_a_prompt_attends_to_what_each_of_its_tokens_sees(tokens):
    attention = sum(GEMMA3.attention_flops(n) for n in range(1, tokens + 1))
    layers = GEMMA3.active_parameters - GEMMA3.table_parameters
    matrices = 2 * layers * tokens + 2 * GEMMA3.table_parameters
    assert GEMMA3.prefill_flops(tokens) == matrices + attention


def test_one_text_is_bound_by_the_weights_that_are_read():
    found = plan(LLAMA2_7B, A100, Load(prompt=128, new=20))
    read = (LLAMA2_7B.parameters - LLAMA2_7B.table_parameters) * 2 + LLAMA2_7B.kv_bytes(138, 2)
    assert found.per_token == pytest.approx(read / 2039e9)
    assert found.bound == "bandwidth"
    assert found.fits


def test_the_bound_lies_below_a_published_measurement_and_not_far():
    """NVIDIA NeMo framework guide, Llama-2 results: 7B on one A100 80 GB, batch 1, 128 tokens in
    and 20 out: 234.0 ms; on one H100: 153.8 ms."""
    for device, measured in ((A100, 0.2340), (H100, 0.1538)):
        found = plan(LLAMA2_7B, device, Load(prompt=128, new=20))
        bound = found.first_token + 19 * found.per_token
        assert 0.5 * measured < bound < measured


def test_a_long_prompt_is_bound_by_its_operations():
    found = plan(LLAMA2_7B, A100, Load(prompt=4096))
    alone = LLAMA2_7B.prefill_flops(4096) / 312e12
    assert found.first_token == pytest.approx(alone)
    # Two ranks: half of it each, and 64 all-reduces that each send half of the tensor twice.
    both = plan(LLAMA2_7B, A100, Load(prompt=4096, tensor_parallel=2))
    sent = 64 * 4096 * 4096 * 2 / (A100.link / 2 * 1e9)
    assert both.first_token == pytest.approx(alone / 2 + sent + 64 * EXCHANGE_SECONDS)


def test_a_token_meets_the_weights_of_every_stage_and_every_border():
    """One token through 4 stages: all weights are read, one stage after the other."""
    found = plan(LLAMA2_7B, A100, Load(prompt=1, new=1, pipeline_parallel=4))
    border = 4096 * 2 / (A100.link / 2 * 1e9) + EXCHANGE_SECONDS
    weights = LLAMA2_7B.parameters * 2 / 2039e9
    assert found.first_token == pytest.approx(weights + 3 * border)
    assert found.communication == pytest.approx(3 * border)


def test_what_one_stage_holds_and_sends():
    one, four = (plan(LLAMA2_7B, A100, Load(pipeline_parallel=n)) for n in (1, 4))
    assert four.kv == one.kv / 4
    # However many borders there are, a device has one in front of it: a vector of 4,096 numbers.
    assert (one.communication_bytes, four.communication_bytes) == (0, 4096 * 2)
    both = plan(LLAMA2_7B, A100, Load(tensor_parallel=2, pipeline_parallel=4))
    assert both.communication_bytes == 64 / 4 * 4096 * 2 + 4096 * 2 / 2


def test_activations_by_hand():
    # Gate and up of 11,008 neurons, the stream twice; two bytes each, for 2 texts of 10 tokens;
    # and the scores of the last tokens in fp32.
    whole = 2 * 10 * (2 * 11008 + 2 * 4096) * 2 + 2 * 32000 * 4
    load = Load(batch=2, prompt=10)
    assert plan(LLAMA2_7B, A100, load).activations == whole
    assert plan(LLAMA2_7B, A100, replace(load, tensor_parallel=4)).activations == whole / 4
    # Without a gate, queries, keys and values of 3 · 4,096 are wider.
    plain = replace(LLAMA2_7B, gated=False)
    assert plan(plain, A100, Load(prompt=10)).activations == 10 * 5 * 4096 * 2 + 32000 * 4


def test_a_batch_meets_more_experts_than_one_text():
    assert MIXTRAL.experts_met(2) == pytest.approx(8 * (1 - (6 / 8) ** 2))
    shared = MIXTRAL.parameters - 32 * 8 * MIXTRAL.expert_parameters - MIXTRAL.table_parameters
    for batch in (1, 4):
        read = shared + 32 * 8 * (1 - 0.75**batch) * MIXTRAL.expert_parameters
        found = plan(MIXTRAL, A100, Load(batch=batch, prompt=1, new=2))
        kv = batch * MIXTRAL.kv_bytes(2, 2)
        assert found.reading == pytest.approx((2 * read + kv) / 2039e9)


def test_seventy_billion_need_several_devices():
    assert not plan(LLAMA3_70B, H100, Load()).fits
    found = plan(LLAMA3_70B, H100, Load(tensor_parallel=8))
    assert found.fits
    assert found.weights == pytest.approx(LLAMA3_70B.parameters * 2 / 8)
    assert 80 < found.tokens_per_second < 250


def test_a_ring_sends_what_theory_says():
    load = Load(tensor_parallel=3, precision="fp32")
    found = plan(SMOLLM2, A100, load)
    assert found.communication_bytes == pytest.approx(2 * 30 * 576 * 4 * 2 * (3 - 1) / 3)
    assert found.communication > 60 * EXCHANGE_SECONDS


def test_kv_heads_are_repeated_where_ranks_outnumber_them():
    few = plan(LLAMA3_70B, H100, Load(tensor_parallel=8)).kv
    many = plan(LLAMA3_70B, H100, Load(tensor_parallel=16)).kv
    assert many == few


def test_a_batch_shares_the_weights():
    one, many = (plan(LLAMA2_7B, A100, Load(batch=n)) for n in (1, 16))
    assert many.per_token < 2 * one.per_token
    assert many.tokens_per_second > 8 * one.tokens_per_second
    assert plan(LLAMA2_7B, A100, Load(batch=4096, prompt=8, new=2)).bound == "compute"


def test_integers_bring_their_scales():
    linears = LLAMA2_7B.parameters - 2 * LLAMA2_7B.table_parameters - LLAMA2_7B.norm_parameters
    rest = LLAMA2_7B.parameters - linears
    assert weight_bytes(LLAMA2_7B, "int4") == linears * (0.5 + 4 / 64) + 2 * rest
    # A tied table is there once, and is not rounded.
    rest = SMOLLM2.table_parameters + SMOLLM2.norm_parameters
    linears = SMOLLM2.parameters - rest
    assert weight_bytes(SMOLLM2, "int8") == linears * (1 + 4 / 64) + 2 * rest


def test_the_fullest_stage_has_to_fit():
    """Ten layers in four stages: three, three, two, two."""
    shape = ModelShape("ten", 10, 64, 4, 2, 16, 256, 1000, tied=True)
    whole, fullest = (plan(shape, A100, Load(pipeline_parallel=n)) for n in (1, 4))
    assert fullest.kv == pytest.approx(0.3 * whole.kv)
    table = 2 * 1000 * 64
    assert fullest.weights == pytest.approx(0.3 * (whole.weights - table) + table)


def test_stages_help_many_texts_and_not_one():
    single, staged = (plan(LLAMA2_7B, A100, Load(pipeline_parallel=n)) for n in (1, 4))
    assert staged.per_token >= single.per_token
    assert staged.tokens_per_second > 3.5 * single.tokens_per_second
    # 8 of 32 layers of 202,383,360 weights, one matrix of 32,000 × 4,096, a quarter of a norm.
    assert staged.weights == 2 * (8 * 202_383_360 + 32_000 * 4_096 + 4_096 / 4)
    assert staged.kv == single.kv / 4


@pytest.mark.parametrize(
    ("load", "code"),
    [
        (Load(tensor_parallel=7), "heads_do_not_split"),
        (Load(pipeline_parallel=33), "more_stages_than_layers"),
    ],
)
def test_what_cannot_be_dealt_out_is_refused(load, code):
    with pytest.raises(Fault) as caught:
        plan(LLAMA2_7B, A100, load)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "changes", [{"precision": "int3"}, {"batch": 0}, {"prompt": 1.5}, {"new": -1}]
)
def test_an_impossible_load_is_refused(changes):
    with pytest.raises(Fault):
        Load(**changes)


@pytest.mark.parametrize(
    "changes", [{"layers": 0}, {"kv_heads": 5}, {"active": 3}, {"sliding_layers": 31}]
)
def test_an_impossible_model_is_refused(changes):
    with pytest.raises(Fault):
        replace(SMOLLM2, **changes)


def test_a_configuration_is_read():
    model = tiny().model
    found = shape_of(model.config, "tiny")
    assert found.parameters == sum(p.numel() for p in model.parameters())


def test_every_device_says_where_its_figures_come_from():
    assert len({device.name for device in devices()}) == len(devices()) > 0
    for device in devices():
        assert device.source
        assert device.date
        assert device.bf16 > device.fp32 > 0
