"""The Many machines page without a browser: what it says before, and what real workers find."""

import pytest

from core.lab.parallel import recorded as store_of_records
from core.lab.parallel.deal import most_ranks, plan_of
from core.lab.parallel.records import TensorRun
from tests.pages.app import healthy, open_app, query_of, ran, words
from ui import state
from ui.i18n import bound, catalog
from ui.state import store

PAGE = "12_Parallel"
PROMPT = "the thing"
TITLES = ("tensor_title", "pipeline_title", "offload_title", "copies_title")


def frame_with(at, column):
    return next(f.value for f in at.dataframe if column in f.value)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_goes_where_is_said_before_anything_starts(lang):
    at = open_app(PAGE, model="tiny", lang=lang, prompt=PROMPT, parallel="ranks=3")
    t, said = catalog(lang), words(at)
    for number, key in enumerate(TITLES, 1):
        assert f"## {number}. {t(f'parallel.{key}')}" in said
    # 4 query heads on 2 KV heads: the first group is cut in two.
    uneven = t("parallel.advice_uneven", heads=4, kv=2, ranks=3, shares="1 + 1 + 2", rank=2,
               largest=2)  # fmt: skip
    assert uneven in said
    assert t("parallel.advice_even_ranks", numbers="2") in said
    formula = t("parallel.bytes_before", sums=2, layers=2, width=32, size=4, total="512")
    assert formula in said
    split = frame_with(at, t("parallel.col_kv"))
    assert split[t("parallel.col_kv")].tolist() == ["0", "0", "1"]
    assert split[t("parallel.col_heads")].tolist() == ["0", "1", "2–3"]
    shares = ((1, "50.0 %"), (2, "33.3 %"), (4, "20.0 %"), (8, "11.1 %"))
    at_each = [t("parallel.bubble_at", n=n, share=share) for n, share in shares]
    assert t("parallel.comma").join(at_each) in said
    assert not at.error


def test_a_single_layer_is_cut_lengthwise_but_not_into_stages():
    at = open_app(PAGE, model="tiny", edit="layers:0", lang="en", prompt=PROMPT)
    assert catalog("en")("fault.one_layer_no_stages") in words(at)
    assert all(group.options for group in at.button_group)
    at = ran(at, "parallel_tensor")
    assert catalog("en")("parallel.sums_title") in words(at)
    assert not at.error


def test_attention_whole_halves_the_sums():
    link = "ranks=3,attention=whole"
    at = open_app(PAGE, model="tiny", lang="en", prompt=PROMPT, parallel=link)
    said = words(at)
    assert "Every rank computes attention whole (4 heads each)" in said
    assert "**256 bytes for every token**" in said


def test_a_click_is_in_the_link_and_a_broken_link_opens():
    at = open_app(PAGE, model="tiny", lang="en", prompt=PROMPT)
    healthy(at.segmented_control(key="w_parallel_ranks").set_value(4).run())
    assert query_of(at)["parallel"] == "ranks=4"
    bad = "ranks=99,attention=%3Cb%3E,layer=-7,position=1e9,micro=3,share=nan,by=,stages=x,ranks"
    at = open_app(PAGE, model="tiny", lang="en", prompt=PROMPT, parallel=bad)
    assert "can be dealt out evenly to 2 ranks: 2 + 2" in words(at)
    assert not at.error


def test_a_table_has_nothing_to_split():
    at = open_app(PAGE, model="toy", lang="en")
    assert any("works on the weights" in info.value for info in at.info)
    assert not at.get("plotly_chart")


def test_two_ranks_are_started_and_agree_with_one_process():
    at = open_app(PAGE, model="tiny", lang="en", prompt=PROMPT)
    charts = len(at.get("plotly_chart"))
    at = ran(at, "parallel_tensor")
    assert "2 ranks compute the same as one process" in at.success[0].value
    said = words(at)
    assert "**4 sums with 512 bytes** to the network, exactly 2 · 2 · 32 · 4." in said
    assert len(at.get("plotly_chart")) == charts + 3
    traffic = frame_with(at, "What is sent")
    assert traffic["Bytes a token"].tolist() == traffic["By formula"].tolist()
    sums = frame_with(at, "sum of all ranks")
    added = sums["rank 0"] + sums["rank 1"]
    assert added.tolist() == pytest.approx(sums["one process"].tolist(), abs=1e-4)
    # Another layer and part of the same run, without starting anything.
    at = healthy(at.slider(key="w_parallel_layer").set_value(1).run())
    other = frame_with(at, "sum of all ranks")
    assert other["one process"].tolist() != sums["one process"].tolist()
    assert query_of(at)["parallel"] == "layer=0"
    # The answer belongs to everybody who asks the same.
    zh = open_app(PAGE, model="tiny", lang="zh", prompt=PROMPT)
    assert bound("2 个进程算出的与单个进程相同") in zh.success[0].value


def test_stopped_before_anything_was_measured_shows_what_was_recorded():
    t = catalog("en")
    at = open_app(PAGE, model="tiny", lang="en", prompt=PROMPT, parallel="ranks=4")
    engine = store().engine("tiny")
    ids = tuple(engine.vocabulary.read(PROMPT).ids)
    before = len(at.get("plotly_chart"))
    key = ("parallel_tensor", (state.number(engine), ids, 4, "split"))
    early = TensorRun(plan_of(engine.info, 4), phase="start", progress=0.1)
    at.session_state["lab_stopped_parallel_tensor"] = (key, early)
    at = healthy(at.run())
    said = words(at)
    assert t("lab.stopped_early") in said
    assert t("parallel.phase_start") not in said
    assert len(at.get("plotly_chart")) == before
    assert at.button(key="lab_again_parallel_tensor")


def test_while_the_model_loads_what_was_recorded_is_shown(monkeypatch, tmp_path):
    monkeypatch.setattr(state, "engine_for", lambda spec: state.recorded_engine())
    t = catalog("en")
    at = open_app(PAGE, lang="en", ready=False)
    assert any("still loading" in info.value for info in at.info)
    assert not [b for b in at.button if str(b.key).startswith("lab_run")]
    assert "9 query heads on 3 KV heads can be dealt out evenly to 3 ranks: 3 + 3 + 3." in words(at)
    assert "**138,240 bytes for every token**" in words(at)
    said = words(at)
    assert t("lab.recorded") in said
    assert "**60 sums with 138,240 bytes** to the network" in said
    assert t("parallel.gantt_title", n=4) in said
    assert t("lab.measured") not in said


def test_records_come_back_as_they_were(tmp_path, tiny):
    from core.lab.parallel.records import ReplicaRun, Serving
    from core.lab.timing import Spread

    run = ReplicaRun(
        done=True, servings=(Serving(2, 4, Spread(1.5, 1.0, 2.0, 3)),), dtype="float32"
    )
    file = tmp_path / "recorded.json"
    store_of_records.record("tiny", run, file)
    table = store_of_records._read(file)
    assert list(table) == ["tiny replicas float32"]
    assert store_of_records._made(ReplicaRun, table["tiny replicas float32"]) == run


def test_every_number_of_ranks_is_offered():
    at = open_app(PAGE, model="tiny", lang="en", prompt=PROMPT)
    ranks = at.segmented_control(key="w_parallel_ranks")
    assert list(ranks.options) == [str(n) for n in range(2, most_ranks() + 1)]
