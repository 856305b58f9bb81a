"""The charts and tables of the Precision page say what the records do."""

import numpy as np
import pytest

from core.edits.grid import Grid
from core.edits.spec import Rounding
from core.lab.machine import Machine
from core.lab.quantize_look import look
from core.lab.quantize_records import (
    PACKINGS,
    Candidate,
    LayerError,
    Point,
    Speed,
    Stored,
    Sweep,
    line,
    named,
)
from core.lab.timing import Spread
from ui.figures.precision import curve_points, grid_words, sweep_chart, sweep_table
from ui.figures.precision_effect import layers_chart, layers_table, next_chart, next_table
from ui.figures.precision_look import hand_table, histogram, histogram_table, scale_latex
from ui.figures.precision_speed import speed_chart, speed_table, storage_words
from ui.i18n import catalog
from ui.lab_options import options, spelled
from ui.precision_options import GRIDS, SHARES, STORES, TABLE, curve_of

HERE = Machine("x", 2, 2, 10**9, "2", "cpu", "2026-01-01")
ROW = Grid(span="channel")


def sweep(kl, *, grid=ROW, bits=(8, 4, 2)):
    points = tuple(
        Point(named(setting), kl / setting.grid.bits, 0.5, 20.0, 100, 0.1, 10**8)
        for setting in line(grid, bits=bits)
    )
    return Sweep(points, 17.0, 5 * 10**8, HERE, 1.0, True)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_cliff_is_drawn_from_eight_to_two_bits(lang):
    figure = sweep_chart(sweep(8.0), None, [ROW], Rounding(Grid(4)), catalog(lang))
    # The cliff is shaded in both parts.
    assert [shape.yref for shape in figure.layout.shapes] == ["y domain", "y2 domain"]
    curve, same, mine, mine_same = figure.data
    assert list(curve.x) == list(same.x) == [8, 4, 2]
    assert list(curve.y) == [1.0, 2.0, 4.0]
    assert list(same.y) == [0.5] * 3
    assert (list(mine.x), list(mine.y), list(mine_same.y)) == ([4], [2.0], [0.5])
    assert figure.layout.yaxis.type == "log"
    assert list(figure.layout.xaxis.range) == [8.3, 1.7]


def test_what_was_measured_here_lies_over_what_was_recorded():
    t = catalog("en")
    figure = sweep_chart(sweep(8.0), sweep(4.0), [ROW], Rounding(Grid(4)), t)
    names = [trace.name for trace in figure.data if trace.showlegend]
    assert names == ["one row", "one row (Measured)", "your setting"]
    assert [trace.y[0] for trace in figure.data if trace.name == "your setting"] == [1.0, 0.5]


def test_no_change_at_all_stays_on_a_logarithmic_axis():
    figure = sweep_chart(sweep(0.0), None, [ROW], Rounding(Grid(4)), catalog("en"))
    assert min(figure.data[0].y) > 0
    assert figure.data[0].customdata[0][0] == 0


def test_only_what_is_known_is_drawn():
    known = sweep(8.0)
    assert [p.edit for p in curve_points(known, ROW, head=False)] == [p.edit for p in known.points]
    assert curve_points(known, ROW, head=True) == []
    assert curve_points(known, Grid(span="tensor"), head=False) == []
    table = sweep_table(known, [ROW], head=False, t=catalog("en"))
    assert table["bits"].tolist() == [8, 4, 2]
    assert table["KL (nats)"].tolist() == [1.0, 2.0, 4.0]


def test_next_tokens_and_layers():
    t = catalog("en")
    candidates = (Candidate(1, 0.7, 0.2), Candidate(2, 0.1, 0.6))
    label = {1: "<b>$x$", 2: "␣y"}.__getitem__
    figure = next_chart(candidates, label, t, "original")
    assert [list(bar.y) for bar in figure.data] == [[0.7, 0.1], [0.2, 0.6]]
    assert "<b>" not in str(figure.data[0].customdata) + str(figure.layout.xaxis.ticktext)
    assert next_table(candidates, label, t)["after"].tolist() == ["20.0 %", "60.0 %"]
    layers = (LayerError(0.1, 0.2), LayerError(0.1, 0.4))
    assert [list(trace.y) for trace in layers_chart(layers, t).data] == [[0.1, 0.1], [0.2, 0.4]]
    assert layers_table(layers, t)["layer"].tolist() == [1, 2]


def test_one_matrix_by_hand():
    t = catalog("en")
    table = np.array([[0.5, 1.5, 2.5, -7.0], [0.0, 0.0, 0.0, 0.0]])
    found = look("w", table, Grid(4), row=0)
    figure = histogram(found, t)
    assert sum(figure.data[0].y) == 8
    assert figure.data[1].name == "values of the grid (15)"
    counts = histogram_table(found, t)
    assert counts["weights"].sum() == counts["after rounding"].sum() == 8
    rows = hand_table(found.hand, Grid(4), t)
    assert rows["code q"].tolist() == [0, 2, 2, -7]
    assert rows["≤ s ÷ 2"].tolist() == ["✓"] * 4
    assert scale_latex(found.hand, Grid(4))[1].endswith(r"\frac{7.000000}{7} = 1.000000")
    # A row of zeros has no steps to count.
    zero = look("w", table, Grid(4), row=1)
    assert len(scale_latex(zero.hand, Grid(4))) == 3
    assert hand_table(zero.hand, Grid(4), t)["code q"].tolist() == [0, 0, 0, 0]
    # So many lines would be one grey area.
    assert histogram(look("w", table, Grid(8), row=0), t).data[1].mode == "markers"


def test_sizes_and_times_beside_the_original():
    t = catalog("en")
    none, slow, quick = Spread(0, 0, 0, 0), Spread(40, 38, 50, 5), Spread(20, 19, 22, 5)
    rows = (
        Stored("", 538_060_288, slow, none, True),
        Stored("int8", 163_173_000, quick, none, True),
    )
    found = Speed(rows, ("nf4",), 32, 128, 2, HERE, 0.5, False)
    bars = [trace for trace in speed_chart(found, t).data if trace.type == "bar"]
    assert list(bars[0].x) == [1.0, pytest.approx(0.303, abs=1e-3)]
    assert list(bars[1].x) == [1.0, 0.5]
    assert list(bars[2].x) == [None, None]
    table = speed_table(found, t)
    assert table["step ÷ as loaded"].tolist() == ["× 1.00", "× 0.50"]
    assert table["bytes of the tensors"][0] == "538,060,288"
    assert table["prefill"].tolist() == ["–", "–"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_grid_and_storage_has_a_name(lang):
    t = catalog(lang)
    grids = {grid_words(curve_of(share, kind), t) for share in SHARES for kind in GRIDS}
    assert len(grids) == len(SHARES) * len(GRIDS)
    assert len({storage_words(name, t) for name in ("", *STORES)}) == len(PACKINGS) + 1


def test_options_survive_a_link():
    values = options("bits=3,share=128,grid=asym,head=on,store=nf4,matrix=a%2Cb,row=5", TABLE)
    assert values["matrix"] == "a,b"
    assert options(spelled(values, TABLE), TABLE) == values
    assert options("bits=9,share=7,grid=x,head=1,store=bits:4,row=-2", TABLE) == options("", TABLE)
