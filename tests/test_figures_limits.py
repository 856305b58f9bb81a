"""Charts, tables and sentences of the Limits page: every number is a record's."""

import pytest

from core.lab.plan import Load, devices
from core.lab.plan_advice import advise, device_named, published
from core.lab.plan_table import planned
from core.lab.roofline_ops import Case, counts_of, step_limit
from core.lab.roofline_steps import StepTime
from core.lab.shape_presets import presets
from core.lab.timing import Spread
from tests.axes import silent_logs
from tests.test_lab_roofline import roof
from ui.figures import limits_plan as plans
from ui.figures.limits import Placed, measured_of, operations_table, roofline_chart
from ui.figures.limits_steps import batches_chart, parts_chart, steps_table, timed
from ui.i18n import bound, catalog

LLAMA3 = presets()["llama-3-70b"].shape
H100 = device_named("H100")
PARTS = (("qkv", 2.0), ("output", 1.0), ("gate_up", 4.0), ("down", 2.0), ("head", 1.0),
         ("attention", 3.0), ("rest", 2.0))  # fmt: skip


def time_of(case: Case) -> StepTime:
    return StepTime(case, Spread(15.0, 14.0, 17.0, 5), PARTS)


@pytest.fixture
def decode(tiny):
    case = Case("decode", 4, 32)
    return Placed(case, counts_of(tiny, case, 4), time_of(case))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_points_stand_on_the_roof_or_below(decode, lang):
    t, limits = catalog(lang), roof()
    figure = roofline_chart(limits, [decode], "fp32", t)
    assert silent_logs(figure) == []
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    assert [line.y[-1] for line in lines] == pytest.approx([40, 80])
    at_most, timed_points = figure.data[2:]
    for x, y in zip(at_most.x, at_most.y, strict=True):
        assert y == pytest.approx(limits.attainable(x, "fp32"))
    assert list(at_most.x) == [count.intensity for count in decode.counts]
    assert timed_points.name == t("limits.timed", phase=t("limits.decode"))
    written = {words.text for words in figure.layout.annotations if words.showarrow is not False}
    assert written
    assert written <= {
        t(f"limits.{key}") for key in ("op_weights", "op_head", "op_attention_short")
    }


def test_what_was_timed_is_operations_by_time(decode, tiny):
    t = catalog("en")
    found = {point.name: point for point in measured_of(decode, t)}
    counts = {count.kind: count for count in decode.counts}
    qkv = found[t("limits.op_qkv")]
    assert qkv.rate == pytest.approx(counts["qkv"].flops / 2e6)
    both = counts["scores"].flops + counts["values"].flops
    assert found[t("limits.op_attention")].rate == pytest.approx(both / 3e6)
    assert measured_of(Placed(decode.case, decode.counts, None), t) == []


def test_tables_hold_what_charts_show(decode):
    t, limits = catalog("zh"), roof()
    frame = operations_table(decode, limits, "fp32", t)
    assert list(frame["MFLOP"]) == [count.flops / 1e6 for count in decode.counts]
    assert frame[t("limits.col_limit_ms")].sum() == pytest.approx(
        step_limit(decode.counts, limits, "fp32")
    )
    assert frame[t("limits.col_measured_ms")][0] == 2.0


def test_steps_beside_their_limits(decode, tiny):
    t, limits = catalog("en"), roof()
    one = Case("decode", 1, 32)
    every = [
        timed(time_of(case), counts_of(tiny, case, 4), limits, "fp32")
        for case in (Case("prefill", 1, 32), one, decode.case)
    ]
    figure = batches_chart(every, t)
    limit, measured = figure.data
    assert list(measured.y) == [15.0, 15.0]
    assert list(measured.error_y.array) == [2.0, 2.0]
    assert list(measured.error_y.arrayminus) == [1.0, 1.0]
    assert limit.y[1] == pytest.approx(step_limit(decode.counts, limits, "fp32"))
    assert list(measured.text) == [f"{100 * value / 15:.0f} %" for value in limit.y]
    frame = steps_table(every, t)
    assert list(frame[t("limits.col_batch")]) == [1, 1, 4]
    assert list(frame[t("limits.col_ratio")])[1:] == pytest.approx([15 / y for y in limit.y])
    parts = parts_chart(every[2], t)
    assert sum(trace.x[1] for trace in parts.data) == pytest.approx(15)
    assert sum(trace.x[0] for trace in parts.data) == pytest.approx(every[2].limit)


def test_memory_is_drawn_by_part_with_the_device_as_a_line():
    t = catalog("en")
    rows = [planned(LLAMA3, H100, Load(precision=p)) for p in ("fp32", "bf16", "int8", "int4")]
    figure = plans.memory_chart(rows, "bf16", H100.memory, t)
    totals = [sum(trace.x[i] for trace in figure.data) for i in range(4)]
    assert totals == pytest.approx([each.plan.memory / 1e9 for each in rows])
    assert figure.layout.shapes[0].x0 == 80
    ticks = figure.layout.yaxis.ticktext
    assert [tick[0] for tick in ticks] == ["✗", "✗", "✓", "✓"]
    assert "<b>bf16</b>" in ticks[1]


def test_a_batch_that_does_not_fit_is_hollow():
    t = catalog("en")
    rows = [
        planned(LLAMA3, H100, Load(precision="int8", batch=n, prompt=500, new=500))
        for n in (1, 2, 64)
    ]
    figure = plans.batch_chart(rows, 2, t)
    assert silent_logs(figure) == []
    # Equal slopes mean equal factors.
    decades = [high - low for low, high in (figure.layout.yaxis.range, figure.layout.yaxis2.range)]
    assert decades[0] == pytest.approx(decades[1])
    assert list(figure.data[0].marker.symbol) == ["circle", "circle", "circle-open"]
    assert list(figure.data[0].y) == [each.plan.tokens_per_second for each in rows]


def said(load: Load, lang: str = "en", device=H100) -> str:
    found = planned(LLAMA3, device, load)
    return plans.verdict(found, advise(LLAMA3, device, load), catalog(lang))


def test_sentences_are_computed_from_the_numbers():
    assert said(Load()) == bound(
        "It does not fit: the weights alone take 141 GB of 80 GB. With int8 weights it would. "
        "On 2 devices (tensor parallel) it would."
    )
    assert said(Load(), "zh") == bound(
        "放不下：光是权重就要 141 GB，而每台设备只有 80 GB。权重改用 int8 就放得下。"
        "用 2 台设备（张量并行）就放得下。"
    )
    assert said(Load(tensor_parallel=8)).startswith(
        bound("It fits: 17.7 GB of 80 GB on each device.")
    )
    much = said(Load(tensor_parallel=2, batch=512, prompt=2000))
    assert much.startswith("It does not fit: it needs ")
    assert "texts at once it would" in much
    nowhere = said(Load(batch=4096, prompt=100_000), device=device_named("4090"))
    assert nowhere.endswith("makes it fit.")


def test_the_bottleneck_is_named():
    t = catalog("en")
    one, many = Load(), Load(batch=4096, prompt=8, new=2)
    memory = plans.bottleneck(planned(LLAMA3, H100, one).plan, one, t)
    assert memory == bound(
        "At batch 1 a step is **bound by memory**: "
        "the arithmetic units wait **99.7 %** of the time."
    )
    assert "bound by arithmetic" in plans.bottleneck(planned(LLAMA3, H100, many).plan, many, t)
    small = presets()["smollm2-135m"].shape
    eight = Load(tensor_parallel=3, precision="int4")
    found = planned(small, H100, eight).plan
    assert "bound by communication" in plans.bottleneck(found, eight, t)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_device_and_every_measurement_has_a_row(lang):
    t = catalog(lang)
    frame = plans.devices_table([planned(LLAMA3, each, Load()) for each in devices()], t)
    assert len(frame) == len(devices())
    assert (frame[t("limits.col_source")].str.len() > 20).all()
    fits = dict(zip(frame[t("limits.col_device")], frame[t("limits.col_fits")], strict=True))
    assert fits["AMD Instinct MI300X 192 GB"] == t("limits.yes")
    assert fits["NVIDIA RTX 4090 24 GB"] == t("limits.no")
    beside = plans.beside_table(published(), t)
    assert list(beside[t("limits.col_theory_ratio")]) == [each.ratio for each in published()]
    assert set(beside[t("limits.col_model")]) <= {preset.title for preset in presets().values()}
    split = plans.devices_table([planned(LLAMA3, H100, Load(tensor_parallel=7))], t)
    assert split[t("limits.col_fits")][0] == t("limits.cannot_be_dealt")


def test_numbers_as_people_say_them():
    assert [plans.milliseconds(v) for v in (0.00077, 0.0416, 0.234, 13.5)] == [
        "0.77 ms", "41.6 ms", "234 ms", "13.5 s",
    ]  # fmt: skip
    assert [plans.share(v) for v in (0.9968, 0.5, 0.0, 1.0)] == ["99.7 %", "50 %", "0 %", "100 %"]
