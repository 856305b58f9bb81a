"""The Layers page's data and charts: exact content, the right way round, hostile text inert."""

import numpy as np
import pytest

from core.anatomy import Sizes, totals, walk
from core.lens import Column, lens_column
from core.neurons import activity, most_active
from core.residual import stream
from core.trace import Capture
from ui.figures.layers import Map, map_data, scale, window, window_width
from ui.figures.layers_charts import sparsity, stream_chart, way
from ui.figures.layers_tables import neurons_data, stream_table, way_table
from ui.figures.layers_walk import cost_text, flops_text, name_text, shape_text, totals_table
from ui.i18n import bound, catalog
from ui.layers import inside_bytes, look
from ui.link import DEFAULT
from ui.session import Place
from ui.view import View

EN = catalog("en")
IDS = (3, 1, 4, 1, 5)
HOSTILE = "<b>$x$</b>"


def drawn(tiny, **rest) -> Map:
    forward = tiny.forward(IDS)
    tokens = tiny.vocabulary.tokens((*IDS, 9), len(IDS))
    columns = {p: lens_column(tiny, forward, p, ((*IDS, 9)[p + 1],)) for p in range(len(IDS))}
    given = {"cell": "", "values": None, **rest}
    return Map(tokens, 0, len(IDS), 2, 1, 2, columns=columns, **given)


def test_rows_are_layers_and_columns_are_positions(tiny):
    data = map_data(drawn(tiny), tiny.vocabulary.label, EN)
    forward = tiny.forward(IDS)
    assert np.array(data["best"]).shape == (2, 5, 5)
    for layer in range(2):
        for position in range(5):
            logits = tiny.unembed(forward.residual[layer, position][None])[0]
            label = tiny.vocabulary.label(int(logits.argmax()))
            assert data["labels"][data["best"][layer][position][0]] == label
    assert [column["label"] for column in data["columns"]] == [
        tiny.vocabulary.label(i) for i in IDS
    ]
    assert data["columns"][-1]["next"] == tiny.vocabulary.label(9)
    assert data["columns"][-1]["chosen"]
    # Repeated tokens keep columns of their own.
    assert data["columns"][1]["label"] == data["columns"][3]["label"]
    assert data["shares"][1][1] != data["shares"][1][3]
    assert len(set(data["labels"])) == len(data["labels"])


def test_the_followed_token_has_its_rank_and_probability_at_each_layer(tiny):
    data = map_data(drawn(tiny), tiny.vocabulary.label, EN)
    own = data["columns"][2]["ways"][0]
    assert own["next"]
    forward = tiny.forward(IDS)
    for layer in range(2):
        logits = tiny.unembed(forward.residual[layer, 2][None])[0].astype(float)
        p = np.exp(logits - logits.max())
        assert own["p"][layer] == pytest.approx(p[1] / p.sum(), abs=1e-6)
        assert own["rank"][layer] == 1 + int((logits > logits[1]).sum())


def test_hostile_labels_stay_text_in_data_and_are_escaped_in_charts(tiny):
    data = map_data(drawn(tiny), lambda token: HOSTILE, EN)
    assert set(data["labels"]) == {HOSTILE}
    column = lens_column(tiny, tiny.forward(IDS), 2, (1,))
    figure = way(column, 1, lambda token: HOSTILE, 1, EN)
    for trace in figure.data:
        assert "<b>" not in trace.name
        assert "$" not in trace.name
        assert "<b>" not in trace.hovertemplate
    table = way_table(column, lambda token: HOSTILE, EN)
    assert table.iloc[0, 1] == HOSTILE


def test_a_window_holds_the_position_and_is_full():
    for total in (1, 5, 24, 25, 60, 500):
        for at in range(total):
            start, stop = window(at, total, 24)
            assert 0 <= start <= at < stop <= total
            assert stop - start == min(24, total)
    assert window(59, 60, 24) == (36, 60)
    assert window(35, 60, 24) == (12, 36)
    assert window(3, 60, 24) == (0, 24)


def test_windows_shrink_with_layers_and_vocabulary(tiny):
    import dataclasses

    info = tiny.info
    assert window_width(info) == 24
    assert window_width(dataclasses.replace(info, layers=18, vocabulary=262_144)) == 8
    assert window_width(dataclasses.replace(info, layers=30, vocabulary=49_152)) == 24


def test_pages_of_a_long_text_lead_to_each_other(tiny):
    import dataclasses

    some = dataclasses.replace(drawn(tiny), start=1, stop=3)
    data = map_data(some, tiny.vocabulary.label, EN)
    assert (data["earlier"], data["later"]) == (0, 3)
    assert [column["position"] for column in data["columns"]] == [1, 2]
    data = map_data(drawn(tiny), tiny.vocabulary.label, EN)
    assert (data["earlier"], data["later"]) == (None, None)


def test_a_tiny_probability_is_not_sent_as_zero():
    column = Column(
        ids=np.array([[5]]),
        probabilities=np.array([[1.0]]),
        followed=(7,),
        followed_probability=np.array([[3.14159e-12]]),
        followed_rank=np.array([[900]]),
    )
    from core.trace import Token

    tokens = [
        Token(i, n, "x", "x", "x", b"x", False, "prompt", (n, n + 1), (n, n + 1))
        for n, i in enumerate((5, 7))
    ]
    data = map_data(Map(tokens, 0, 1, 0, 0, 1, "", {0: column}, None), str, EN)
    assert data["columns"][0]["ways"][0]["p"] == [3.1416e-12]


def test_unknown_cells_are_null(tiny):
    import dataclasses

    values = np.array([[1.0, np.nan], [10.0, 100.0]])
    some = dataclasses.replace(drawn(tiny, cell="norm", values=values), columns={}, stop=2)
    data = map_data(some, tiny.vocabulary.label, EN)
    assert data["best"] == [[None, None], [None, None]]
    assert data["values"] == [[1.0, None], [10.0, 100.0]]
    assert data["scale"] == {"kind": "log", "low": 1.0, "high": 100.0}
    assert scale("cosine", values) == {"kind": "cosine"}
    assert scale("attention", values) == {"kind": "share"}


def test_the_way_chart_counts_layers_from_one_and_ranks_downwards():
    column = Column(
        ids=np.array([[5, 6], [7, 5]]),
        probabilities=np.array([[0.6, 0.2], [0.9, 0.1]]),
        followed=(5, 7),
        followed_probability=np.array([[0.6, 0.01], [0.1, 0.9]]),
        followed_rank=np.array([[1, 40], [2, 1]]),
    )
    figure = way(column, 5, str, 1, EN)
    first = figure.data[0]
    assert list(first.x) == [1, 2]
    assert list(first.y) == [0.6, 0.1]
    assert list(figure.data[1].y) == [1, 2]
    assert list(figure.data[3].y) == [40, 1]
    assert first.name.startswith("next in the text: 5")
    low, high = figure.layout.yaxis2.range
    assert low > high
    assert all(axis.type != "category" for axis in (figure.layout.xaxis, figure.layout.xaxis2))
    band = figure.layout.shapes[0]
    assert (band.x0, band.x1) == (1.5, 2.5)


def test_the_stream_chart_and_table_hold_the_same_numbers(tiny):
    forward = tiny.forward(IDS, capture=Capture(attention=False, parts=True))
    found = stream(forward, 4)
    figure = stream_chart(found, 0, EN)
    assert list(figure.data[0].x) == [0, 1, 2]
    assert list(figure.data[0].y) == pytest.approx(found.size)
    bars = [trace for trace in figure.data if trace.type == "bar"]
    total = found.start_along + sum(sum(bar.y) for bar in bars)
    assert total == pytest.approx(found.size[-1], rel=1e-4)
    table = stream_table(found, EN)
    assert table[EN("layers.attention")].tolist() == [0.0, *found.parts.attention]
    assert table[EN("layers.cosine")].iloc[-1] == pytest.approx(1)
    bare = stream(tiny.forward(IDS), 4)
    assert not [trace for trace in stream_chart(bare, 0, EN).data if trace.type == "bar"]
    assert EN("layers.attention") not in stream_table(bare, EN)


def test_neurons_and_sparsity_as_data(tiny):
    forward = tiny.forward(IDS, capture=Capture(attention=False, neurons=True))
    found = most_active(tiny, forward, 4, 0, count=3)
    data = neurons_data(found, 0, tiny.vocabulary.label, EN)
    assert [n["index"] for n in data["neurons"]] == [n.index for n in found]
    assert data["gated"]
    assert data["largest"] == abs(found[0].value)
    assert data["neurons"][0]["promotes"][0]["label"] == tiny.vocabulary.label(
        found[0].promotes[0][0]
    )
    silent = activity(forward, 4)
    figure = sparsity(silent, 1, EN)
    assert list(figure.data[0].x) == [1, 2]
    assert list(figure.data[0].y) == pytest.approx(silent.near_zero)


def test_the_walk_in_words(tiny):
    sizes = Sizes(5, 6)
    made = walk(tiny.anatomy(), tiny.info, 0, sizes, rope=tiny.rope(0))
    lines = {o.kind: o for o in made.inside}
    assert shape_text(lines["queries"]) == "H × T × d = 4 × 5 × 8"
    assert shape_text(made.after[-1]) == "1 × V = 1 × 278"
    assert name_text(lines["keys"], tiny.info, EN)[1] == (
        "keys, each shared by 2 query heads (GQA)"
    )
    assert name_text(lines["norm"], tiny.info, EN)[1] == "RMSNorm"
    assert name_text(lines["gated"], tiny.info, EN)[1] == "gated activation, SwiGLU"
    assert cost_text(lines["queries"], EN) == bound(
        "1,024 parameters · 10.2 k FLOPs, 2.05 k a step"
    )
    assert cost_text(lines["residual"], EN) == "no parameters"
    assert [flops_text(n) for n in (640, 1_230, 5_900_000, 12_300_000_000)] == [
        "640", "1.23 k", "5.9 M", "12.3 G",
    ]  # fmt: skip
    whole = totals(tiny.anatomy(), tiny.info, sizes, [None, None])
    table = totals_table(whole, made, EN)
    counts = table[EN("layers.total_parameters")].tolist()
    assert sum(counts[:3]) == counts[3] == tiny.info.parameters


PLACE = Place(DEFAULT, View(at=3, layer=2))


@pytest.mark.parametrize(
    "event",
    [
        None, 7, {}, {"do": "look"}, {"do": "look", "at": "1"}, {"do": "look", "at": True},
        {"do": "look", "at": -2}, {"do": "look", "at": 2**20}, {"do": "look", "layer": 1.5},
        {"do": "look", "at": 1, "layer": None}, {"do": "cell", "cell": "x"}, {"do": "cell"},
        {"do": "cell", "cell": ["norm"]}, {"do": "step"},
    ],
)  # fmt: skip
def test_nonsense_from_the_browser_changes_nothing(event):
    assert look(PLACE, event) == PLACE


def test_a_click_moves_the_view_and_nothing_else():
    moved = look(PLACE, {"do": "look", "at": -1, "layer": 0})
    assert (moved.view.at, moved.view.layer) == (-1, 0)
    assert moved.spec == PLACE.spec
    assert look(PLACE, {"do": "cell", "cell": "norm"}).view.cell == "norm"
    assert look(look(PLACE, {"do": "cell", "cell": "norm"}), {"do": "cell", "cell": ""}) == PLACE


def test_memory_of_a_position_is_its_vectors_and_neurons():
    assert inside_bytes(30, 576, 1536) == 4 * 3 * 30 * (576 + 1536)
