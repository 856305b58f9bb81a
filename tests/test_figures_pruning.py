"""Charts and tables of the Pruning page: the numbers that they draw."""

import math

import pytest

from core.edits.spec import Zeros
from core.lab.machine import Machine
from core.lab.prune_records import (
    Crossing,
    Crossings,
    Effect,
    Importance,
    Judged,
    Point,
    Removal,
    Removals,
    Size,
    Sum,
    Sweep,
    Times,
    Together,
)
from core.lab.timing import Spread
from tests.axes import silent_logs
from ui.figures.pruning import (
    crossing_chart,
    crossing_table,
    least_memory,
    sweep_chart,
    sweep_table,
)
from ui.figures.pruning_importance import (
    bent,
    importance_map,
    importance_table,
    together_chart,
    together_table,
)
from ui.figures.pruning_removal import removal_name, removals_chart, removals_table
from ui.figures.pruning_words import effect_table, number, told
from ui.i18n import bound, catalog

HERE = Machine("P", 2, 2, 10**9, "2", "cpu", "2026-01-01")
T = catalog("en")
ONE = Spread(2.0, 1.0, 4.0, 9)
HALF = Spread(1.0, 0.5, 1.5, 9)


def judged(perplexity):
    return Judged(0.25, 0.5, perplexity, 100)


def test_numbers_for_people():
    assert [number(x) for x in (17.877, 999.94, 1234.5, 7.6e7, math.inf)] == [
        "17.9", "999.9", "1,234", "7.6 × 10⁷", "∞",
    ]  # fmt: skip


def test_curves_begin_at_the_original_and_stop_at_the_ceiling():
    points = (
        Point("wanda", 0.5, False, judged(54.2)),
        Point("wanda", 0.1, False, judged(18.0)),
        Point("random", 0.1, False, judged(9e7)),
        Point("wanda", 0.5, True, judged(141.0)),
    )
    found = Sweep(points, 17.9, HERE, 1.0, done=True)
    figure = sweep_chart(found, Zeros(0.3, "wanda"), T)
    assert silent_logs(figure) == []
    wanda, fours, dice, legend = figure.data
    assert list(wanda.x) == [0, 0.1, 0.5]
    assert list(wanda.y) == [17.9, 18.0, 54.2]
    assert (list(fours.x), list(fours.y)) == ([0.5], [141.0])
    assert (fours.showlegend, legend.name) == (False, T("pruning.short_2of4"))
    assert list(dice.y) == [17.9, 1e5]
    assert dice.customdata[1][1] == "9.0 × 10⁷"
    assert figure.layout.shapes[0].x0 == 0.3
    table = sweep_table(found, T)
    assert list(table.iloc[:, 0]) == ["50 %", "10 %", "10 %", "2:4"]
    assert found.at(Zeros(0.5, "wanda", True)) is points[3]
    assert found.at(Zeros(0.2, "wanda")) is None


def test_an_effect_in_words():
    size, less = Size(1000, 250, 5, 200), Size(800, 200, 4, 150)
    found = Effect(
        "neurons:0.2", judged(45.6), 17.9, (1,), (2,), size, less, Times(ONE, HALF, 0.51, 4),
        HERE, 1.0, done=True,
    )  # fmt: skip
    said = told(found, T)
    assert (said.perplexity, said.perplexity_change) == ("45.6", "original: 17.9")
    assert (said.kl, said.top1, said.ratio) == ("0.250", "50.0 %", "× 0.51")
    assert said.step == "2.0 → 1.0 ms"
    assert said.memory_change == bound("80.0 % of 1 kB")
    table = effect_table(found, T).set_index(T("pruning.col_what"))
    assert list(table.loc[T("pruning.col_bytes")]) == ["1,000", "800"]
    assert list(table.loc[T("pruning.col_step")]) == ["2.0 (1.0 – 4.0)", "1.0 (0.5 – 1.5)"]


def test_bars_are_shares_of_the_original():
    rows = tuple(
        Removal(edit, judged(50.0), Size(nbytes, 1, 0, 1), Times(ONE, HALF, ratio, 4))
        for edit, nbytes, ratio in (("neurons:0.2", 800, 0.9), ("layers:1.2", 600, 0.7))
    )
    found = Removals(rows, Size(1000, 1, 0, 1), 17.9, HERE, 1.0, done=True)
    memory, step, quality = removals_chart(found, T).data
    assert list(memory.x) == [0.8, 0.6]
    assert list(step.text) == ["90 %", "70 %"]
    assert quality.base + quality.x[0] == pytest.approx(math.log10(50))
    assert list(memory.customdata) == [bound("20 % neurons"), "2 layers"]
    assert list(removals_table(found, T)[T("pruning.col_edit")]) == ["neurons:0.2", "layers:1.2"]
    assert removal_name("groups:1", T) == "1 KV head each"


def test_above_one_the_table_wins():
    points = tuple(
        Crossing(zeros, tokens, ONE, Spread(time, time, time, 9), 1e-6)
        for zeros, time in ((0.5, 4.0), (0.9, 1.0))
        for tokens in (1, 32)
    )
    found = Crossings("m", 8, 8, points, 256, ((0.5, 292), (0.9, 84)), HERE, 1.0, done=True)
    figure = crossing_chart(found, T)
    assert silent_logs(figure) == []
    one, many, memory = figure.data
    assert list(one.y) == list(many.y) == [2.0, 0.5]
    assert list(memory.y) == [292 / 256, 84 / 256]
    # 292 at 50 % and 84 at 90 %: 256 lies 36 ÷ 208 of the way.
    assert least_memory(found) == pytest.approx(0.5 + 0.4 * 36 / 208)
    assert len(crossing_table(found, T)) == 4


def test_the_map_tells_small_and_large_effects_apart():
    found = Importance(
        ("prose",), 9, 3.0, (4.0, -0.01), ((0.25, math.nan), (0.0, -0.04)), HERE, 0.5, done=False
    )
    assert bent([4.0, -0.25, 0.0]).tolist() == [2.0, -0.5, 0.0]
    bars, cells = importance_map(found, T).data
    assert list(bars.x) == [2.0, pytest.approx(-0.1)]
    assert cells.z[0][0] == 0.5
    assert math.isnan(cells.z[0][1])
    assert (cells.zmin, cells.zmax) == (-0.2, 0.5)
    assert cells.customdata[0][1] == "…"
    table = importance_table(found, T)
    assert list(table.columns)[2:] == ["Head 1", "Head 2"]
    assert list(table["whole layer"]) == [4.0, -0.01]


def test_the_sum_and_the_whole():
    found = Together("heads", (Sum(1, 0.0, 0.0), Sum(5, -0.1, 0.4)), 3.0, HERE, 1.0, done=True)
    joint, single = together_chart(found, T).data
    assert (list(joint.y), list(single.y)) == ([0.0, 0.4], [0.0, -0.1])
    assert list(together_table(found, T).iloc[1]) == [5, -0.1, 0.4]
