"""The roof and the operations under it: exact counts, real passes, files that are checked."""

import itertools
import json
import re
from dataclasses import asdict, replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from core.engine.local import LocalEngine
from core.faults import Fault
from core.lab import roofline_store as store
from core.lab.machine import Machine, cores, machine, processor
from core.lab.roofline import DISTURBED, Probe, Roof, RoofTurn, measure_roof
from core.lab.roofline_ops import Case, complete, counts_of, step_limit, total, waiting_share
from core.lab.roofline_run import known, measure
from core.lab.roofline_steps import ATTENTION, REST, Steps, StepTime, measure_steps
from core.lab.timing import Spread
from core.models.tiny import ARCHITECTURES, tiny_of

HERE = Machine(processor(), cores(), 2, 10**10, "2", "cpu", "2026-11-30")
ELSEWHERE = replace(HERE, processor="another one")


def spread(milliseconds: float) -> Spread:
    return Spread(milliseconds, milliseconds, milliseconds, 1)


def roof(machine: Machine = HERE) -> Roof:
    """10 GB/s, 40 GFLOP/s in fp32 and 80 in bf16."""
    return Roof(
        machine,
        (
            Probe("read", "fp32", 10**9, 1, spread(100)),
            Probe("gemv", "fp32", 9 * 10**8, 1, spread(100)),
            Probe("gemm", "fp32", 1, 4 * 10**9, spread(100)),
            Probe("gemm", "bf16", 1, 8 * 10**9, spread(100)),
        ),
    )


def some_steps(machine: Machine = HERE, model: str = "tiny") -> Steps:
    return Steps(
        model, "fp32", machine, (StepTime(Case("decode", 1, 4), spread(2), (("qkv", 1.0),)),)
    )


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKEN_BY_TOKEN_HOME", str(tmp_path))
    return tmp_path


# --- counting


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("batch", [1, 3])
def test_operations_are_those_that_torch_counts(architecture, batch):
    engine, length = LocalEngine(tiny_of(architecture)), 20
    with engine.borrowed() as model:
        with FlopCounterMode(display=False) as prefill:
            out = model(torch.ones(batch, length, dtype=torch.long), logits_to_keep=1)
        with FlopCounterMode(display=False) as decode:
            last = torch.ones(batch, 1, dtype=torch.long)
            model(last, cache=out.cache, use_cache=True, logits_to_keep=1)
    for phase, counted, tokens in (("prefill", prefill, 20), ("decode", decode, 21)):
        found = counts_of(engine, Case(phase, batch, tokens), 4)
        assert total(found)[0] == counted.get_total_flops(), phase


def test_a_decode_step_counted_by_hand(tiny):
    """Width 32, 4 heads of 8 on 2 KV heads, 64 neurons, 2 layers; 3 texts that see 10 tokens."""
    found = {c.kind: c for c in counts_of(tiny, Case("decode", 3, 10), 4)}
    vocabulary = tiny.info.vocabulary
    qkv = 32 * 32 + 2 * 32 * 16
    assert found["qkv"].flops == 2 * 3 * 2 * qkv
    assert found["qkv"].weights == 4 * 2 * qkv
    assert found["qkv"].kv == 0
    assert found["qkv"].activations == 4 * 2 * 3 * ((32 + 32) + 2 * (32 + 16))
    assert found["scores"].flops == found["values"].flops == 2 * 3 * 2 * 10 * 4 * 8
    assert found["scores"].weights == 0
    assert found["scores"].kv == 4 * 2 * 3 * 10 * 2 * 8
    assert found["scores"].activations == 4 * 2 * 3 * (4 * 8 + 4 * 10)
    assert found["output"].weights == 4 * 2 * 32 * 32
    assert found["gate_up"].weights == 2 * found["down"].weights == 4 * 2 * 2 * 32 * 64
    assert found["head"].flops == 2 * 3 * 32 * vocabulary
    assert found["head"].weights == 4 * 32 * vocabulary


def test_a_batch_shares_the_weights_and_not_the_keys(tiny):
    one, many = (counts_of(tiny, Case("decode", n, 64), 4) for n in (1, 16))
    for single, shared in zip(one, many, strict=True):
        assert shared.flops == 16 * single.flops
        assert shared.weights == single.weights
        assert shared.kv == 16 * single.kv
        if single.kind in ("scores", "values"):
            assert shared.intensity == single.intensity
        else:
            assert shared.intensity > 4 * single.intensity


def test_a_prompt_reads_each_weight_once_and_one_row_of_logits(tiny):
    step, prompt = (
        {c.kind: c for c in counts_of(tiny, Case(phase, 1, 32), 4)}
        for phase in ("decode", "prefill")
    )
    for kind in ("qkv", "output", "gate_up", "down"):
        assert prompt[kind].flops == 32 * step[kind].flops
        assert prompt[kind].weights == step[kind].weights
    assert prompt["head"] == step["head"]


def test_a_sliding_layer_reads_its_window_alone():
    engine = LocalEngine(tiny_of("gemma3"))  # 2 layers with a window of 8, 1 without
    found = {c.kind: c for c in counts_of(engine, Case("decode", 1, 100), 4)}
    info = engine.info
    assert found["scores"].kv == 4 * info.kv_heads * info.head_dim * (8 + 8 + 100)


# --- the roof


def test_the_limits_of_a_roof_by_hand():
    found = roof()
    assert found.bandwidth == pytest.approx(10)
    assert found.rate("fp32") == pytest.approx(40)
    assert found.rate("float16") == found.rate("bf16") == pytest.approx(80)
    assert found.ridge("fp32") == pytest.approx(4)
    assert found.attainable(2, "fp32") == pytest.approx(20)
    assert found.attainable(4, "fp32") == found.attainable(400, "fp32") == pytest.approx(40)
    # 40 MB take 4 ms; 40 million operations take 1 ms, 400 million take 10 ms.
    assert found.limit(40e6, 40e6, "fp32") == pytest.approx(4)
    assert found.limit(400e6, 40e6, "fp32") == pytest.approx(10)


def test_the_roof_is_the_quickest_repeat_and_unrest_the_slowest_beside_it():
    uneven = Spread(200, 100, 400, 3)
    found = Roof(HERE, tuple(replace(probe, time=uneven) for probe in roof().probes))
    assert (found.bandwidth, found.rate("fp32"), found.rate("bf16")) == pytest.approx((10, 40, 80))
    assert found.unrest == 4


def test_waiting_is_what_the_arithmetic_leaves(tiny):
    found, limits = counts_of(tiny, Case("decode", 1, 8), 4), roof()
    flops, moved = total(found)
    # Everything is left of the ridge here: the bytes alone decide.
    assert step_limit(found, limits, "fp32") == pytest.approx(moved / 10e9 * 1000)
    share = waiting_share(found, limits, "fp32")
    assert share == pytest.approx(1 - (flops / 40e9) / (moved / 10e9))
    assert 0.8 < share < 1


def test_probes_have_the_size_that_they_say():
    turns = list(measure_roof(rows=64, columns=128, side=32, repeats=2))
    assert [turn.done for turn in turns] == [False] * (len(turns) - 1) + [True]
    progress = [turn.progress for turn in turns]
    assert progress == sorted(progress)
    found = {(p.kind, p.dtype): p for p in turns[-1].roof.probes}
    assert found.keys() == {
        ("read", "fp32"),
        *((k, d) for k in ("gemv", "gemm") for d in ("fp32", "bf16")),
    }
    assert found["read", "fp32"].bytes == 4 * 64 * 128
    assert found["gemv", "bf16"].bytes == 2 * (64 * 128 + 64 + 128)
    assert found["gemv", "fp32"].flops == 2 * 64 * 128
    assert found["gemm", "fp32"].bytes == 3 * 4 * 32**2
    assert found["gemm", "bf16"].flops == 2 * 32**3
    for probe in found.values():
        assert probe.time.repeats == 2
        assert probe.bandwidth == pytest.approx(probe.bytes / probe.time.low / 1e6)
    assert turns[-1].roof.machine.processor == processor()


# --- real passes


def logits(engine: LocalEngine) -> torch.Tensor:
    with engine.borrowed() as model:
        return model(torch.tensor([[3, 1, 4, 1, 5]])).logits


def hooks(engine: LocalEngine) -> int:
    with engine.borrowed() as model:
        return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def test_passes_are_timed_part_by_part_and_leave_the_model_alone(tiny):
    before, hooked = logits(tiny), hooks(tiny)
    turns = list(measure_steps(tiny, context=24, batches=(1, 3), repeats=2))
    found = turns[-1]
    assert [turn.done for turn in turns] == [False] * (len(turns) - 1) + [True]
    assert [(t.case.phase, t.case.batch, t.case.tokens) for t in found.times] == [
        ("prefill", 1, 24), ("decode", 1, 24), ("decode", 3, 24),
    ]  # fmt: skip
    for time in found.times:
        parts = dict(time.parts)
        names = {"qkv", "output", "gate_up", "down", "head", ATTENTION, REST}
        assert parts.keys() == names
        assert all(value > 0 for value in parts.values())
        assert time.time.low <= time.time.median <= time.time.high
        assert time.time.repeats == 2
    assert found.of("decode", 3).tokens_per_second == pytest.approx(
        3000 / found.of("decode", 3).time.median
    )
    assert torch.equal(logits(tiny), before)
    assert hooks(tiny) == hooked


def test_parts_by_a_clock_that_counts_its_readings(tiny, monkeypatch):
    """Each reading is a second after the one before. A product reads it twice, so it takes 1 s.
    Attention reads it ten times: 9 s, of which q, k, v and the output take one each. A layer is
    16 readings, two layers and the head 34; the whole pass ends with its 36th, after 35 s."""
    readings = itertools.count()
    monkeypatch.setattr("core.lab.roofline_steps.time.perf_counter", lambda: next(readings))
    *_, found = measure_steps(tiny, context=8, batches=(1,), repeats=1)
    for each in found.times:
        parts = {name: ms / 1000 for name, ms in each.parts}
        assert parts == {
            "qkv": 6, "output": 2, ATTENTION: 10, "gate_up": 4, "down": 2, "head": 1, REST: 10,
        }  # fmt: skip
        assert each.time.median == 35_000


def test_stopped_halfway_it_leaves_the_model_alone(tiny):
    hooked = hooks(tiny)
    turns = measure_steps(tiny, context=8, batches=(1,), repeats=3)
    next(turns)
    turns.close()
    assert hooks(tiny) == hooked


@pytest.mark.parametrize("architecture", ["gpt2", "gemma3", "phi"])
def test_every_architecture_can_be_timed(architecture):
    engine = LocalEngine(tiny_of(architecture))
    *_, found = measure_steps(engine, context=12, batches=(2,), repeats=1)
    assert {ATTENTION, REST, "qkv", "output", "down", "head"} <= dict(found.times[0].parts).keys()


def test_a_table_of_probabilities_has_nothing_to_time():
    from core.engine.toy import open_toy

    with pytest.raises(Fault) as caught:
        next(measure_steps(open_toy(None)))
    assert caught.value.code == "lab_needs_weights"


# --- what is kept


def test_what_is_written_is_read(home):
    assert store.stored_roof() is None
    assert store.stored_steps("tiny") is None
    store.save_roof(roof())
    store.save_steps(some_steps())
    assert store.stored_roof() == roof()
    assert store.stored_steps("tiny") == some_steps()
    assert store.stored_steps("other") is None
    assert not list((home / "lab").glob(".*"))


def test_names_that_are_written_alike_are_two_files(home):
    for name in ("a/b", "a-b", "a b#int8", "../../x", "名"):
        store.save_steps(some_steps(model=name))
    for name in ("a/b", "a-b", "a b#int8", "../../x", "名"):
        assert store.stored_steps(name).model == name
    assert {path.parent for path in home.rglob("*.json")} == {home / "lab"}


def test_another_machines_measurement_is_none_of_this_one(home):
    store.save_roof(roof(ELSEWHERE))
    store.save_steps(some_steps(ELSEWHERE))
    assert store.stored_roof() is None
    assert store.stored_steps("tiny") is None


def spoiled() -> list[str]:
    good = {"format": store.FORMAT, **asdict(roof())}
    probes = good["probes"]
    return [
        "",
        "[]",
        "null",
        "{",
        json.dumps({**good, "format": 0}),
        json.dumps({**good, "probes": []}),
        json.dumps({**good, "probes": probes[:1]}),
        json.dumps({**good, "machine": {}}),
        json.dumps({**good, "machine": {**good["machine"], "cores": "2"}}),
        json.dumps({**good, "probes": [{**probes[0], "bytes": -1}, *probes[1:]]}),
        json.dumps({**good, "probes": [{**probes[0], "kind": "x"}, *probes[1:]]}),
        json.dumps(good).replace("100", "NaN"),
        json.dumps(good).replace("100", "1e400"),
        json.dumps({**good, "probes": [{**probes[0], "time": {**probes[0]["time"], "low": 200}}]}),
        json.dumps(good) + " " * store.LARGEST,
        "[" * 50_000,
    ]


@pytest.mark.parametrize("text", spoiled(), ids=range(len(spoiled())))
def test_a_spoiled_file_is_as_good_as_none(home, text):
    path = store.save_roof(roof())
    path.write_text(text, encoding="utf-8")
    assert store.stored_roof() is None


def test_a_disk_that_refuses_is_a_sentence(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("TOKEN_BY_TOKEN_HOME", str(blocked))
    with pytest.raises(Fault) as caught:
        store.save_roof(roof())
    assert caught.value.code == "cache_unwritable"


def test_one_measurement_makes_both_and_keeps_them(home, tiny, monkeypatch):
    monkeypatch.setattr(
        "core.lab.roofline_run.measure_roof",
        lambda device: measure_roof(device, rows=64, columns=128, side=32, repeats=1),
    )
    turns = list(measure(tiny, context=8, batches=(1, 2), repeats=1))
    assert [turn.done for turn in turns] == [False] * (len(turns) - 1) + [True]
    progress = [turn.progress for turn in turns]
    assert progress == sorted(progress)
    assert turns[-1].roof == store.stored_roof()
    assert turns[-1].steps == store.stored_steps("tiny")
    found = known("tiny")
    assert found.here
    assert found.steps == turns[-1].steps
    assert known("tiny", "bf16").steps is None


def disturbed(before: Roof, milliseconds: float = 1000) -> Roof:
    """The same machine in a busy moment: slower, and unevenly so."""
    time = Spread(milliseconds, milliseconds, DISTURBED * 1.1 * milliseconds, 5)
    later = replace(before.machine, date="2026-12-01 04:33 UTC")
    return Roof(later, tuple(replace(probe, time=time) for probe in before.probes))


def after(monkeypatch, engine, found: Roof):
    """The last word of a measurement that finds ``found``."""
    turns = iter([RoofTurn(1.0, found)])
    monkeypatch.setattr("core.lab.roofline_run.measure_roof", lambda device: turns)
    return list(measure(engine, context=8, batches=(1,), repeats=1))[-1]


def test_a_disturbed_measurement_does_not_replace_a_calm_one(home, tiny, monkeypatch):
    calm, busy = roof(), disturbed(roof())
    assert busy.disturbed
    assert not calm.disturbed
    store.save_roof(calm)
    store.save_steps(some_steps())
    last = after(monkeypatch, tiny, busy)
    assert (last.roof, last.instead_of) == (calm, busy)
    assert store.stored_roof() == calm
    assert store.stored_steps("tiny") == some_steps()
    assert last.steps.of("decode", 1) is not None  # those of now are still told
    # A calm one replaces it, however slow.
    slow = roof(replace(HERE, date="2026-12-02"))
    assert after(monkeypatch, tiny, slow).instead_of is None
    assert store.stored_roof() == slow
    assert store.stored_steps("tiny") != some_steps()


def test_a_disturbed_measurement_is_better_than_none(home, tiny, monkeypatch):
    first, second = disturbed(roof()), disturbed(roof(), 900)
    for busy in (first, second):
        assert after(monkeypatch, tiny, busy).instead_of is None
        assert store.stored_roof() == busy
    assert store.stored_steps("tiny") is not None
    # What another device did says nothing about this one.
    store.save_roof(roof(replace(HERE, device="card")))
    assert store.standing_roof(first) is first


def test_a_measurement_says_when_to_the_minute():
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", machine().date)


def test_roof_and_passes_are_never_of_two_machines(home):
    first = known("smollm2-135m")
    assert not first.here
    assert first.steps.machine == first.roof.machine
    assert first.steps.of("decode", 16) is not None
    store.save_roof(roof())
    assert known("smollm2-135m").here
    assert known("smollm2-135m").steps is None


def test_what_is_recorded_is_real():
    found, steps = store.recorded()
    assert steps.keys() == {"smollm2-135m", "gemma3-270m"}
    assert found.rate("fp32") > 10 > found.bandwidth / 100
    for each in steps.values():
        assert each.machine.processor == found.machine.processor
        single, many = each.of("decode", 1), each.of("decode", 16)
        assert many.tokens_per_second > 2 * single.tokens_per_second
        assert each.of("prefill", 1).tokens_per_second > 4 * single.tokens_per_second


# --- packed weights


def packed(kind: str) -> LocalEngine:
    from core.models.catalog import resolve
    from core.models.load import load

    return LocalEngine(load(resolve(f"tiny#{kind}"), device="cpu"))


def test_packed_weights_count_as_they_lie_in_memory(tiny):
    engine, case = packed("int8"), Case("decode", 2, 16)
    plain, small = ({c.kind: c for c in counts_of(each, case, 2)} for each in (tiny, engine))
    assert complete(tuple(small.values()), engine.info, case)
    for kind in ("qkv", "output", "gate_up", "down"):
        assert small[kind].flops == plain[kind].flops
    # A byte a weight, and two for the scale of each row: 32 of q, 16 of k, 16 of v, 2 layers.
    assert small["qkv"].weights == 2 * ((32 * 32 + 2 * 32 * 16) + 2 * (32 + 16 + 16))
    assert small["qkv"].kv == plain["qkv"].kv == 0


def test_what_is_not_found_is_not_counted_as_nothing(tiny):
    case = Case("decode", 3, 16)
    found = counts_of(tiny, case, 4)
    assert complete(found, tiny.info, case)
    attention = [c for c in found if c.kind in ("scores", "values", "head")]
    assert not complete(attention, tiny.info, case)
