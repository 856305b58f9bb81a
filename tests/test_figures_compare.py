"""The data and charts of the Compare page."""

import math
from dataclasses import replace

import pytest

from core.compare_records import Column, Difference, Figures, Text, Written
from core.decode.columns import parse_column
from core.engine.toy import ToyEngine, default_table
from core.faults import Fault
from core.trace import Choice
from tests.axes import silent_logs
from ui.figures.compare_charts import missing, per_step, points, quality
from ui.figures.compare_figures import figures_data, shown, steps_table
from ui.figures.compare_rows import Scene, rows_data
from ui.figures.compare_sweep import Row, Shown, sweep_chart, sweep_table
from ui.figures.compare_words import fault_text, name, preset_of, reason, said, spread
from ui.i18n import bound, catalog

EN, ZH = catalog("en"), catalog("zh")
VOCABULARY = ToyEngine(default_table()).vocabulary


def choice(id: int, p: float = 0.5, u: float | None = None, rule: str = "greedy") -> Choice:
    return Choice(id, rule, p, p, 1, u, math.log(2), 0.0)


def figures(**more) -> Figures:
    usual = {
        "tokens": 4, "logprob": -2.5, "perplexity": 1.868, "bits_per_byte": 0.5,
        "entropy": math.log(4), "rank": 1.25, "distinct": (1.0, 0.5, None), "longest_repeat": 2,
        "repeated_4grams": 0.25, "zipf": 0.9, "self_bleu": None, "forwards": 4,
        "tokens_per_second": 1234.5,
    }  # fmt: skip
    return Figures(**{**usual, **more})


def scene(*columns: str, ids=((0, 2), (1, 2)), vocabulary=VOCABULARY, **more) -> Scene:
    parsed = [parse_column(column) for column in columns]
    written = tuple(
        Written(column, (Text(0, tuple(choice(i) for i in own), "end_token"),))
        for column, own in zip(parsed, ids, strict=True)
    )
    usual = {
        "names": tuple(name(column, EN) for column in parsed),
        "written": written,
        "vocabularies": (vocabulary,) * len(parsed),
        "prompts": ((),) * len(parsed),
        "differences": (None,) * len(parsed),
    }
    return Scene(**{**usual, **more})


@pytest.mark.parametrize(
    ("line", "en", "zh"),
    [
        ("greedy", "Greedy", "贪心"),
        ("sample", "Pure sampling", "纯采样"),
        ("sample,temperature=0", "Temperature 0 (greedy)", "温度 0（贪心）"),
        ("sample,temperature=0.7,top_k=40", "Temperature 0.7, top-k 40", "温度 0.7，top-k 40"),
        ("sample,seed=9,typical_p=0.95", "Typical-p 0.95", "Typical-p 0.95"),
        ("beam,beams=3", "Beam search, 3 beams", "束搜索，束宽 3"),
        ("beam,length_penalty=1", "Beam search, 4 beams, length penalty 1",
         "束搜索，束宽 4，长度惩罚 1"),
        ("beam,kind=diverse", "Diverse beams, 4, 2 groups", "多样束搜索，束宽 4，2 组"),
        ("greedy,no_repeat_ngram=3", "Greedy, no 3-gram twice", "贪心，3 元不重复"),
        ("greedy,banned=a,banned=b", "Greedy, banned texts", "贪心，禁用文本"),
    ],
)  # fmt: skip
def test_names_of_strategies(line, en, zh):
    column = parse_column(line)
    assert (name(column, EN), name(column, ZH)) == (en, bound(zh))


def test_a_preset_is_recognised_whatever_its_model():
    assert preset_of(parse_column("sample,top_p=0.9,model=tiny")) == "top_p"
    assert preset_of(parse_column("sample,top_p=0.91")) is None


GREEDY, DRAWN, BEAM = (parse_column(c) for c in ("greedy", "sample", "beam"))


@pytest.mark.parametrize(
    ("found", "columns", "en"),
    [
        (Difference(None, "same", None, None), (GREEDY, GREEDY),
         "The same text as A, token for token."),
        (Difference(4, "removed", 1, 0, "top_k", 5), (DRAWN, DRAWN),
         "Step 5: top-k = 5 removed “sun”, which the dice had picked in A; "
         "here they fell on “moon”."),
        (Difference(4, "removed", 1, 0, "banned", "sun"), (GREEDY, GREEDY),
         "Step 5: the list of banned texts removed “sun”, which A took; here it became “moon”."),
        (Difference(4, "removed", 1, 0, "min_p", 0.1, removed_here=False), (DRAWN, GREEDY),
         "Step 5: in A, min-p = 0.1 removed “moon”, which the dice picked here; "
         "there it became “sun”."),
        (Difference(0, "moved", 1, 0, "temperature", 0.7), (DRAWN, DRAWN),
         "Step 1: the same dice (u = 0.250) fell on “moon” here and on “sun” in A: "
         "temperature = 0.7 moved the bar under them."),
        (Difference(0, "moved", 1, 0), (DRAWN, DRAWN),
         "Step 1: the same dice (u = 0.250) fell on “moon” here and on “sun” in A, because the bar "
         "under them is a different one."),
        (Difference(0, "reordered", 1, 0, "repetition_penalty", 1.2), (GREEDY, GREEDY),
         "Step 1: the repetition penalty = 1.2 put another token on top: “moon” here, “sun” in A."),
        (Difference(0, "other_dice", 1, 0), (DRAWN, DRAWN),
         "Step 1: other dice. u = 0.250 fell on “moon” here, u = 0.750 on “sun” in A."),
        (Difference(0, "not_drawn", 1, 0, removed_here=False), (DRAWN, GREEDY),
         "Step 1: the dice (u = 0.250) fell on “moon”; A took the top token “sun” without dice."),
        (Difference(0, "search", 1, 0), (BEAM, GREEDY),
         "Step 1: the search looked ahead. “moon” leads to the likelier whole text; A took “sun” "
         "step by step."),
        (Difference(0, "forced", 1, 0, removed_here=False), (GREEDY, GREEDY),
         "Step 1: “sun” was forced in A; here it became “moon”."),
        (Difference(2, "one_ended", None, 0), (GREEDY, GREEDY),
         "Step 3: the text had ended here; A went on with “sun”."),
        (Difference(2, "one_ended", 1, None, removed_here=False), (GREEDY, GREEDY),
         "Step 3: A had ended; here the text went on with “moon”."),
        (Difference(0, "other_model", 1, 0), (GREEDY, GREEDY),
         "Step 1: another model. It wrote “moon”; the model of A wrote “sun”."),
    ],
)  # fmt: skip
def test_why_two_columns_part(found, columns, en):
    label = {0: "sun", 1: "moon"}.__getitem__
    for t in (EN, ZH):
        parts = reason(found, columns, 0, (label, label), (0.25, 0.75), t=t, done=True)
        shown_ids = [text for kind, text in parts if kind == "token"]
        wanted = {label(i) for i in (found.here, found.there) if i is not None}
        assert set(shown_ids) == wanted
        if t is EN:
            assert said(parts) == en
    running = reason(
        Difference(None, "same", None, None),
        columns,
        0,
        (label, label),
        (None, None),
        t=EN,
        done=False,
    )
    assert said(running) == "So far the same as A."


def test_a_hostile_token_stays_one_part():
    parts = spread("{here} and {there} by {stage}", "{stage}<b>", "{here}", {"stage": "x"})
    assert parts == [
        ("token", "{stage}<b>"),
        ("text", " and "),
        ("token", "{here}"),
        ("text", " by x"),
    ]


def test_a_fault_may_hold_braces_and_markup():
    fault = Fault("column_unknown_key", key="{key}*", strategy="greedy", allowed="a")
    assert fault_text(fault, EN).startswith("'{key}*' is no setting of greedy")


def test_rows_with_a_difference_and_a_failed_column():
    failed = Written(Column(parse_column("greedy").settings), fault=Fault("no_columns"))
    base = scene("greedy", "sample")
    found = scene(
        "greedy", "sample",
        written=(*base.written, failed),
        names=(*base.names, "???"),
        vocabularies=(VOCABULARY, VOCABULARY, None),
        prompts=((),) * 3,
        differences=(None, Difference(0, "not_drawn", 1, 0, removed_here=False), None),
    )  # fmt: skip
    data = rows_data(found, ZH)
    assert [row["letter"] for row in data["rows"]] == ["A", "B", "C"]
    assert [cell["label"] for cell in data["rows"][1]["cells"]] == ["moon", "shines"]
    assert data["rows"][1]["first"] == 0
    assert data["rows"][2]["fault"] == ZH("fault.no_columns")
    assert data["rows"][2]["cells"] == []
    assert data["lang"] == "zh-Hans"
    assert {"table", "view_flow", "legend"} <= data["strings"].keys()


@pytest.mark.model
def test_pieces_of_a_character_are_one_cell(smollm2):
    vocabulary = smollm2.vocabulary
    ids = vocabulary.encode("👨‍👩‍👧‍👦 ok مرحبا").ids
    found = scene("greedy", ids=(ids,), vocabulary=vocabulary)
    cells = rows_data(found, EN)["rows"][0]["cells"]
    assert sum(len(cell["parts"]) for cell in cells) == len(ids)
    assert [cell["step"] for cell in cells] == [
        sum(len(c["parts"]) for c in cells[:i]) for i in range(len(cells))
    ]
    assert any(len(cell["parts"]) > 1 for cell in cells)
    assert all("�" not in cell["label"] for cell in cells)


def test_numbers_of_the_table():
    assert shown(None, "rank") == "–"
    assert shown(-math.inf, "logprob") == "−∞"
    assert shown(-2.5, "logprob") == "−2.50"
    assert shown(0.25, "repeated_4grams") == "25.0 %"
    assert shown(1234.5, "speed") == "1,234"
    assert shown(12345.0, "tokens") == "12,345"
    data = figures_data(scene("greedy", "sample"), [figures(), None], EN)
    rows = {row["id"]: row["values"] for row in data["rows"]}
    assert "self_bleu" not in rows
    assert rows["entropy"] == ["2.00", "–"]
    assert rows["distinct_3"] == ["–", "–"]
    several = figures_data(scene("greedy", "sample"), [figures(self_bleu=0.5), None], EN)
    assert "self_bleu" in {row["id"] for row in several["rows"]}


def test_charts_show_what_the_tables_say():
    found = scene("greedy", "sample")
    figure = per_step(found, "probability", EN)
    assert [list(trace.y) for trace in figure.data] == [[0.5, 0.5]] * 2
    assert [trace.marker.symbol for trace in figure.data] == ["circle", "square"]
    entropy = per_step(found, "entropy", ZH)
    assert list(entropy.data[0].y) == pytest.approx([1.0, 1.0])
    table = steps_table(found, EN)
    assert list(table["B · token"]) == ["moon", "shines"]
    assert list(table["A · p"]) == [0.5, 0.5]


def test_quality_against_diversity():
    found = scene("greedy", "sample")
    shown_points = points(found, [figures(), figures(perplexity=math.inf)], "repeated")
    assert [(p.column, p.perplexity, p.across) for p in shown_points] == [(0, 1.868, 0.25)]
    figure = quality(found, shown_points, "repeated", EN)
    assert figure.data[0].text == ("A",)
    low, top = figure.layout.xaxis.range
    assert (figure.layout.xaxis.dtick, round(top - low, 9)) == ("D1", 0.6)
    wide = [replace(shown_points[0], perplexity=p) for p in (2.0, 200.0)]
    assert quality(found, wide, "repeated", EN).layout.xaxis.dtick == "D2"
    pair = [replace(shown_points[0], column=i, perplexity=p) for i, p in enumerate((7.8, 7.5))]
    both = quality(found, pair, "repeated", EN).data
    assert [trace.textposition for trace in both] == ["top right", "top left"]
    assert figure.data[0].textposition == "top center"
    assert missing([figures(), None], shown_points) == []
    assert missing([figures(), figures(repeated_4grams=None)], shown_points) == [1]
    assert points(found, [figures(), None], "self_bleu") == []


def test_a_sweep_as_chart_and_table():
    rows = tuple(Row(v, f"<b>{v}$", figures() if v else None) for v in (0.0, 1.0))
    figure = sweep_chart(Shown("temperature", rows), 1, EN)
    assert silent_logs(figure) == []
    assert figure.data[0].customdata[1] == "&lt;b&gt;1.0&#36;"
    assert list(figure.data[1].y) == [None, 0.25]
    table = sweep_table(Shown("temperature", rows), ZH)
    assert list(table.columns)[1] == "文本"
    assert list(table["文本"]) == ["<b>0.0$", "<b>1.0$"]
