"""The KV cache page's charts and tables: records in, numbers out."""

from dataclasses import replace

import numpy as np
import pytest

from core.lab.kv_others import other_caches
from core.lab.kv_records import ContextPoint, Contexts, Held, LayerHeld, Rows, Trick, TrickResult
from core.lab.kv_stored import store, stored
from core.lab.machine import Machine
from core.lab.shape import ModelShape
from core.lab.timing import Spread
from tests.axes import silent_logs
from ui.figures.kv_rows import MOST_ROWS, Shown, rows_chart, rows_table
from ui.figures.kv_sizes import Own, growth_chart, others_chart, others_table
from ui.figures.kv_steps import lengths_chart, lengths_table
from ui.figures.kv_tricks import LEAST, trick_name, tricks_chart, tricks_table
from ui.i18n import catalog

EN = catalog("en")
LLAMA = ModelShape("m", 2, 32, 4, 2, 8, 64, 278)
HELD = Held(3, tuple(LayerHeld(i, 0, 3, 2, 8, 384, None) for i in range(2)), 4)


def shown(rows, first=0, new=1):
    numbers = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4) - 6
    labels = [f"t{i}" for i in range(first + rows)]
    return Shown(Rows(0, 0, first, numbers, 2 * numbers), new, labels)


def test_the_new_row_is_framed_and_named():
    figure = rows_chart(shown(5), "values", EN)
    assert np.array_equal(figure.data[0].z, 2 * (np.arange(20).reshape(5, 4) - 6))
    frame = figure.layout.shapes[0]
    assert (frame.y0, frame.y1, frame.x0, frame.x1) == (3.5, 4.5, -0.5, 3.5)
    assert figure.layout.yaxis.ticktext[0] == "▸ t4"
    assert figure.layout.yaxis.ticktext[-1] == "t0"
    # Oldest on top; colours on both sides of 0 reach equally far.
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    assert figure.data[0].zmin == -figure.data[0].zmax


def test_a_long_table_is_drawn_from_its_end_and_listed_whole():
    many = shown(MOST_ROWS + 10, first=7, new=MOST_ROWS + 10)
    figure = rows_chart(many, "keys", EN)
    assert len(figure.data[0].z) == MOST_ROWS
    assert figure.data[0].y[0] == many.first == 17
    assert figure.layout.shapes[0].y0 == 16.5
    frame = rows_table(many, "keys", EN)
    assert list(frame[EN("kv_cache.col_position")]) == list(range(7, 7 + MOST_ROWS + 10))
    assert frame["3"].iloc[0] == -3


def test_hostile_labels_stay_letters():
    one = replace(shown(1), labels=["<b>$x$</b>"])
    assert (
        rows_chart(one, "keys", EN).layout.yaxis.ticktext[0] == "▸ &lt;b&gt;&#36;x&#36;&lt;/b&gt;"
    )


def test_growth_by_hand():
    own = Own("m", LLAMA, 4, 512, HELD)
    figure = growth_chart(own, EN)
    full, mine, now = figure.data
    # 2 · 2 layers · 2 KV heads · 8 · 4 bytes a token, twice as much with 4 KV heads.
    assert mine.y[-1] == pytest.approx(256 * mine.x[-1] / 1e6)
    assert full.y[-1] == pytest.approx(2 * mine.y[-1])
    assert (now.x[0], now.y[0]) == (3, 768 / 1e6)
    sliding = replace(LLAMA, window=5, sliding_layers=1)
    _, endless, mine, _ = growth_chart(replace(own, shape=sliding), EN).data
    assert mine.y[-1] < endless.y[-1]


def test_other_models_stand_with_their_sources():
    others = other_caches(1000)
    own = Own("m", LLAMA, 4, 512, HELD)
    figure = others_chart(others, own, EN)
    assert silent_logs(figure) == []
    sizes = list(figure.data[0].x)
    assert sizes == sorted(sizes)
    mine = figure.data[0].y.index("m (here)")
    assert sizes[mine] == 0.256
    assert figure.data[0].marker.pattern.shape[mine] == "/"
    frame = others_table(others, own, EN)
    assert frame[EN("kv_cache.col_source")].iloc[1:].str.len().min() > 10
    llama = frame[frame[EN("kv_cache.col_model")] == "Llama 2 7B"].iloc[0]
    assert llama[EN("kv_cache.col_cache")] == 524_288_000
    assert llama[EN("kv_cache.col_kv_heads")] == "32 / 32"


def test_a_trick_in_words_and_bars():
    both = Trick(bits=4, keys="token", window=64, sinks=4)
    assert trick_name(both, EN) == "4 bits, keys per token + first 4 + last 64"
    assert trick_name(Trick(), EN) == "full cache"
    results = (
        TrickResult(Trick(bits=8), 25, 100, 0.0, 1.0, 0.01, 0.02),
        TrickResult(Trick(window=3), 50, 100, 0.5, 0.25, 0.0, 0.0),
    )
    figure = tricks_chart(results, EN)
    assert silent_logs(figure) == []
    kept, cost = figure.data
    assert list(kept.x) == [0.25, 0.5]
    assert [LEAST + x for x in cost.x] == pytest.approx([LEAST, 0.5])
    assert list(cost.text) == ["≈ 0", "0.5"]
    frame = tricks_table(results, EN)
    assert list(frame[EN("kv_cache.col_kl")]) == [0.0, 0.5]
    assert list(frame[EN("kv_cache.col_saved")]) == ["75.0 %", "50.0 %"]


def test_what_is_stored_comes_back(tmp_path, monkeypatch):
    known = stored()
    assert known, "bench.kv_cache --store has been run"
    path = tmp_path / "stored.json"
    store(known, path)
    monkeypatch.setattr("core.lab.kv_stored.FILE", path)
    stored.cache_clear()
    again = stored()
    stored.cache_clear()
    assert again == known


def test_one_held_up_repeat_does_not_flatten_the_chart():
    work = next(iter(stored().values()))[0].points[0].cached
    machine = Machine("p", 2, 2, 10**9, "2", "cpu", "2026-01-01")
    slow = Spread(100.0, 90.0, 9000.0, 3)
    point = ContextPoint(200, Spread(10.0, 9.0, 11.0, 3), slow, work, work, 1e-5, 5)
    found = Contexts("m", (point,), machine, True, 1.0)
    figure = lengths_chart(found, EN)
    assert figure.layout.yaxis.range[1] == pytest.approx(120)
    assert figure.data[1].text[0] == "× 10.0"
    assert (
        lengths_table(found, EN)[EN("kv_cache.col_high", way=EN("kv_cache.way_whole"))][0] == 9000
    )
