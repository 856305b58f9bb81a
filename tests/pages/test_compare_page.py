"""The Compare page without a browser, on the toy's story, whose every number is known."""

import json
import time
from dataclasses import replace

import pytest

from core.compare_records import Column, Comparison, Text, Written
from core.decode.columns import PRESETS, parse_column
from core.decode.generate import Stopped
from core.faults import Fault
from core.settings import BeamSettings, Settings
from tests.pages.app import data_of, healthy, open_app, query_of, words
from ui import compare_jobs, compare_run
from ui.compare_setup import FIRST, setup
from ui.figures.compare_rows import ended
from ui.figures.compare_words import name
from ui.i18n import bound, catalog
from ui.jobs import Look
from ui.session import Place

TOY = {"model": "toy", "prompt": "tell me", "p": "off"}


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """On a busy machine, too, the texts are whole when the page is read."""
    monkeypatch.setattr(compare_run, "MOMENT", 60)


def open_page(*columns: str, **query: str):
    more = {"columns": "\n".join(columns)} if columns else {}
    return open_app("8_Compare", ready=False, **{**TOY, **more, **query})


def rows(at):
    return data_of(at, "columns")["rows"]


def texts(at):
    return [" ".join(cell["label"] for cell in row["cells"]) for row in rows(at)]


def why(row):
    return "".join(f"“{text}”" if kind == "token" else text for kind, text in row["why"])


def view(at):
    place: Place = at.session_state["place"]
    return place.view


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_first_visit_runs_by_itself(lang):
    at = open_page(lang=lang)
    t = catalog(lang)
    assert [error.value for error in at.error] == []
    assert [row["letter"] for row in rows(at)] == ["A", "B", "C", "D"]
    assert [row["name"] for row in rows(at)] == [name(parse_column(c), t) for c in FIRST]
    assert texts(at) == [
        "sun shines brightly <end>",
        "moon shines brightly <end>",
        "sun rises <end>",
        "sun rises <end>",
    ]
    assert [row["first"] for row in rows(at)] == [None, 0, 1, 1]
    assert rows(at)[0]["reference"] is True
    assert {row["stop"] for row in rows(at)} == {t("compare.stop_end_token")}
    expected = {
        "en": "Step 1: the search looked ahead. “moon” leads to the likelier whole text; "
        "A took “sun” step by step.",
        "zh": "第 1 步：搜索会往前看。走“moon”，整段文本更可能；A\u00a0是一步一步选的，选了“sun”。",
    }
    assert why(rows(at)[1]) == bound(expected[lang])
    figures = {row["id"]: row["values"] for row in data_of(at, "compare_figures")["rows"]}
    assert figures["logprob"][:2] == ["−2.63", "−1.94"]
    assert figures["tokens"] == ["4", "4", "3", "3"]
    assert figures["rank"][0] == "1.00"
    assert "columns" not in query_of(at)


def test_a_filter_that_removes_what_the_dice_had_picked():
    at = open_page("sample", "sample,top_k=1", lang="en")
    row = rows(at)[1]
    assert row["first"] == 1
    assert why(row) == (
        "Step 2: top-k = 1 removed “rises”, which the dice had picked in A; "
        "here they fell on “shines”."
    )
    at.selectbox(key="compare_reference").set_value(1).run()
    assert view(healthy(at)).reference == 1
    assert why(rows(at)[0]) == (
        "Step 2: in B, top-k = 1 removed “rises”, which the dice picked here; "
        "there it became “shines”."
    )
    assert query_of(at)["ref"] == "1"


def test_a_column_that_cannot_be_read_fails_alone():
    at = open_page("greedy", "sample,top_p=7", "nonsense", "beam,beams=2", lang="en")
    assert texts(at)[0] == "sun shines brightly <end>"
    assert rows(at)[1]["fault"].startswith("top-p is 7, but it must be above 0")
    assert "nonsense" in rows(at)[2]["fault"]
    assert texts(at)[3] == "moon shines brightly <end>"
    assert rows(at)[3]["first"] == 0
    assert len(at.error) == 2


def test_no_column_that_can_be_read():
    at = open_page("sample,top_p=7", lang="en")
    assert catalog("en")("compare.none_readable") in words(at)


@pytest.mark.parametrize("bad", ["7", "-1", "x"])
def test_a_tampered_link_still_opens(bad):
    at = open_page(
        lang="en", samples="1000", dice=bad, ref=bad, text=bad, sweep="temperature:9:1:0@x"
    )
    assert len(texts(at)) == 4
    assert "samples" in words(at)
    assert any("sweep" in error.value or "0" in error.value for error in at.error)


def test_seven_columns_are_not_read():
    at = open_page(*["greedy"] * 7, lang="en")
    assert len(rows(at)) == 4
    assert "columns" in words(at)


def test_presets_settings_and_places_of_columns():
    at = open_page(lang="en")
    at.selectbox(key="c0_preset").set_value("top_k").run()
    assert view(healthy(at)).columns == ("sample,top_k=40", *FIRST[1:])
    at.number_input(key="c0_top_k").set_value(2).run()
    assert view(healthy(at)).columns[0] == "sample,top_k=2"
    assert rows(at)[0]["name"] == "Top-k 2"
    at.button(key="c0_later").click().run()
    assert view(healthy(at)).columns == ("beam", "sample,top_k=2", *FIRST[2:])
    assert view(at).reference == 1
    at.button(key="c1_twin").click().run()
    assert view(healthy(at)).columns == ("beam", "sample,top_k=2", "sample,top_k=2", *FIRST[2:])
    at.button(key="c0_remove").click().run()
    assert view(healthy(at)).columns == ("sample,top_k=2", "sample,top_k=2", *FIRST[2:])
    assert view(at).reference == 0
    at.segmented_control(key="c3_kind").set_value("beam").run()
    assert view(healthy(at)).columns[3] == "beam"
    at.button(key="compare_add").click().run()
    assert len(view(healthy(at)).columns) == 5
    at.button(key="compare_reset").click().run()
    assert view(healthy(at)).columns == ()


def test_a_field_of_the_strategy_before_changes_nothing():
    """A browser may send both at once: a typed width and another kind of column."""
    at = open_page("greedy", "beam", lang="en")
    at.number_input(key="c1_width").set_value(5)
    at.segmented_control(key="c1_kind").set_value("greedy").run()
    assert view(healthy(at)).columns == ("greedy", "greedy")
    assert not at.error


def test_a_label_of_before_is_not_taken_for_a_choice():
    at = open_page("greedy", "beam", "sample", lang="en", sweep="temperature:0.1:1:3@2")
    for key in ("compare_sweep_base", "compare_reference"):
        box = at.selectbox(key=key)
        box.options = [*box.options, "B · Beam search of before"]
        box.set_value("B · Beam search of before")
    healthy(at.run())
    assert (view(at).sweep, view(at).reference) == ("temperature:0.1:1:3@2", 0)


def test_a_new_label_starts_no_sweep():
    at = open_page("greedy", "beam", "sample", lang="en")
    box = at.selectbox(key="compare_sweep_base")
    box.options = [*box.options, "B · Beam search of before"]
    box.set_value("B · Beam search of before")
    assert view(healthy(at.run())).sweep == ""


def test_a_strategy_typed_as_one_line():
    at = open_page("greedy", "beam", lang="en")
    at.text_input(key="c0_line").set_value("sample, top-k=1, seed=3").run()
    assert rows(healthy(at))[0]["name"] == "Top-k 1"
    at.text_input(key="c0_line").set_value("sample,depth=3").run()
    assert "'depth'" in rows(healthy(at))[0]["fault"]


def test_a_refused_value_changes_nothing_and_gets_its_sentence():
    at = open_page("beam,kind=diverse", lang="en")
    before = texts(at)
    at.number_input(key="c0_groups").set_value(3).run()
    assert texts(healthy(at)) == before
    assert [error.value for error in at.error] == [
        "4 beams cannot be dealt out evenly to 3 groups; choose a number of groups that divides "
        "the width."
    ]


def test_dice_seeds_and_samples():
    at = open_page("sample", "sample,min_p=0.01", lang="en")
    u = [row["cells"][0]["parts"][0]["u"] for row in rows(at)]
    assert u[0] == u[1] == pytest.approx(0.332, abs=0.001)
    at.button(key="compare_throw").click().run()
    assert view(healthy(at)).columns == ("sample,seed=1", "sample,min_p=0.01,seed=1")
    at.segmented_control(key="compare_dice").set_value("own").run()
    u = [row["cells"][0]["parts"][0]["u"] for row in rows(healthy(at))]
    assert u[0] != u[1]
    assert query_of(at)["dice"] == "own"
    at.number_input(key="compare_samples").set_value(30).run()
    data = data_of(healthy(at), "columns")
    assert data["samples"] == 30
    assert [len(row["texts"]) for row in data["rows"]] == [30, 30]
    figures = {row["id"]: row["values"] for row in data_of(at, "compare_figures")["rows"]}
    assert all(0 < float(value) <= 1 for value in figures["self_bleu"])
    at.number_input(key="compare_sample").set_value(7).run()
    assert view(healthy(at)).sample == 6
    assert data_of(at, "columns")["sample"] == 6


def test_a_named_seed_is_kept_and_the_others_go_on_sharing_one():
    at = open_page("greedy", "sample", "sample,seed=7", "sample,top_k=1000", "beam", lang="en")
    at.button(key="compare_throw").click().run()
    seeds = ("greedy", "sample,seed=8", "sample,seed=8", "sample,top_k=1000,seed=8", "beam")
    assert view(healthy(at)).columns == seeds
    at = open_page("sample", "sample,seed=7", "beam,kind=sampled,seed=9", lang="en")
    assert at.text_input(key="compare_seed").value == "7"
    at.button(key="compare_throw").click().run()
    seeds = ("sample,seed=8", "sample,seed=8", "beam,kind=sampled,seed=10")
    assert view(healthy(at)).columns == seeds
    at.segmented_control(key="compare_dice").set_value("own").run()
    at.button(key="compare_throw").click().run()
    assert view(healthy(at)).columns == tuple(
        c.replace("8", "9").replace("10", "11") for c in seeds
    )


def test_a_link_opens_the_same_texts():
    query = {"lang": "en", "samples": "3", "dice": "own", "ref": "1", "text": "2"}
    at = open_page("sample,seed=5", "sample,temperature=1.5", **query)
    again = open_app("8_Compare", ready=False, **query_of(at))
    assert rows(again) == rows(at)
    assert query_of(again) == query_of(at)


def test_forced_tokens_and_dice_thrown_again_come_with_a_column():
    at = open_page("greedy", "greedy,force=0:6+1:7", "sample,roll=0:3", lang="en")
    assert rows(at)[1]["cells"][0]["parts"][0]["rule"] == "forced"
    assert rows(at)[1]["name"] == "Greedy, 2 forced"
    assert why(rows(at)[1]).startswith("Step 1: “tonight” was forced here; A took “sun”.")
    assert rows(at)[2]["name"] == "Pure sampling, 1 thrown again"


def test_what_takes_long_waits_for_the_button(monkeypatch):
    monkeypatch.setattr("ui.compare_setup.QUICK", 0)
    at = open_page("greedy", "sample,seed=77", lang="en")
    assert "This comparison can take a while: up to 48 tokens in up to 24 rounds" in words(at)
    assert not at.get("bidi_component") or "tbt_columns" not in str(at.get("bidi_component"))
    at.button(key="compare_run").click().run()
    assert texts(healthy(at))[0] == "sun shines brightly <end>"
    at.number_input(key="compare_samples").set_value(2).run()
    assert "compare_run" in [button.key for button in at.button]


def test_stop_keeps_what_is_there(monkeypatch):
    turns = []

    def slow(engines, question, **_):
        for found in compare_run_compare(engines, question):
            turns.append(found.steps)
            try:
                yield found
            except Stopped:
                yield replace(found, cancelled=True)
                return
            time.sleep(0.6)

    compare_run_compare = compare_run.compare
    monkeypatch.setattr(compare_run, "compare", slow)
    monkeypatch.setattr(compare_run, "MOMENT", 0.5)
    at = open_page("greedy", "sample,seed=123", lang="en")
    assert data_of(at, "columns")["running"] is True
    at.button(key="compare_stop").click().run()
    made = len(turns)
    assert made < 4
    data = data_of(healthy(at), "columns")
    assert data["running"] is False
    assert data["rows"][0]["cells"][0]["label"] == "sun"
    assert "You stopped here" in words(at)
    time.sleep(0.8)
    assert len(turns) == made
    at.run()
    assert "You stopped here" in words(at)
    at.button(key="compare_again").click().run()
    assert data_of(healthy(at), "columns")["running"] is True


def test_what_crashes_is_said_once_and_can_be_tried_again(monkeypatch):
    tried = []

    def broken(engines, question, **_):
        tried.append(question)
        raise Fault("no_columns")
        yield

    with monkeypatch.context() as patched:
        patched.setattr(compare_run, "compare", broken)
        at = open_page("greedy", "sample,seed=4321", lang="en")
        assert [error.value for error in at.error] == [catalog("en")("fault.no_columns")]
        at.run()
        assert len(tried) == 1
    at.button(key="compare_again").click().run()
    assert texts(healthy(at))[0] == "sun shines brightly <end>"


def test_another_question_ends_the_one_before(monkeypatch):
    turns = []

    def slow(engines, question, **_):
        for found in whole(engines, question):
            turns.append(question.columns)
            yield found
            time.sleep(0.5)

    whole = compare_run.compare
    monkeypatch.setattr(compare_run, "compare", slow)
    monkeypatch.setattr(compare_run, "MOMENT", 0.5)
    at = open_page("greedy", "sample,seed=999", lang="en")
    first = turns[0]
    at.button(key="compare_throw").click().run()
    count = turns.count(first)
    time.sleep(1.2)
    assert turns.count(first) <= count + 1
    assert len(set(turns)) == 2


def test_a_sweep_and_its_texts():
    at = open_page("greedy", "sample", lang="en")
    # A is greedy and has no temperature, so B is the first one to be varied.
    assert at.selectbox(key="compare_sweep_base").value == 1
    at.button(key="compare_sweep_on").click().run()
    assert view(healthy(at)).sweep == "temperature:0:2:9"
    assert "the sweep varies" not in words(at)
    frames = [frame.value for frame in at.dataframe]
    swept = next(frame for frame in frames if "text" in frame)
    assert list(swept["Temperature"]) == [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2]
    assert swept["text"].iloc[0] == "sun shines brightly"
    at.selectbox(key="compare_sweep_base").set_value(0).run()
    assert view(healthy(at)).sweep == "temperature:0:2:9@0"
    assert "Temperature would change nothing in strategy A: the sweep varies sampling" in words(at)
    at.selectbox(key="compare_sweep_name").set_value("repetition_penalty").run()
    assert view(healthy(at)).sweep == "repetition_penalty:1:2:6"
    assert "the sweep varies" not in words(at)
    at.selectbox(key="compare_sweep_name").set_value("beams").run()
    assert view(healthy(at)).sweep == "beams:1:8:8"
    assert "Strategy A is no beam search, so" in words(at)
    at.button(key="compare_sweep_off").click().run()
    assert view(healthy(at)).sweep == ""


def test_two_models_on_one_prompt():
    at = open_page("greedy", "greedy,model=tiny", lang="en", max="4")
    deadline = time.monotonic() + 60
    while not any(b.proto.component_name == "tbt_columns" for b in at.get("bidi_component")):
        assert time.monotonic() < deadline
        time.sleep(0.2)
        at.run()
    assert rows(healthy(at))[1]["model"] == "Tiny random Llama"
    assert len(rows(at)[1]["cells"]) > 0
    assert why(rows(at)[1]).startswith("Step 1: another model.")


def test_a_model_that_does_not_exist_fails_alone():
    at = open_page("greedy", "greedy,model=no such model", lang="en")
    assert texts(at)[0] == "sun shines brightly <end>"
    assert "no such model" in rows(at)[1]["fault"]


def test_a_text_becomes_the_run_of_the_other_pages():
    from ui import compare

    at = open_page("beam", "sample,seed=9", lang="en", samples="3", text="2")
    wanted = [[c["parts"][0]["id"] for c in row["cells"]] for row in rows(at)]
    for column in (0, 1):
        opened = open_on(at, compare, column, 1)
        again = open_app("6_Generate", ready=False, **opened)
        chips = data_of(again, "strip")["chips"]
        made = [p["id"] for chip in chips for p in chip["parts"] if chip["steps"]]
        assert made == wanted[column]
        assert data_of(again, "strip")["view"] == 1


def open_on(at, compare, column, step):
    """The link after a click on "open on Generate"."""
    from ui import link, state

    held = {"place": at.session_state["place"]}
    saved = (state.place, state.put, state.look)
    try:
        state.place = lambda: held["place"]
        state.put = lambda new: held.update(place=new)
        state.look = lambda **c: held.update(
            place=replace(held["place"], view=replace(held["place"].view, **c))
        )
        place = held["place"]
        found = setup(place.spec, place.view)
        look = Look(compare_run.jobs().known(found.key), False)
        shown = compare_run.scene(found, look, catalog("en"))
        assert compare.open_on_generate(found, shown, column, step)
        assert not compare.open_on_generate(found, shown, column, 99)
    finally:
        state.place, state.put, state.look = saved
    return link.encode(held["place"].spec, held["place"].view)


def test_everything_as_a_file():
    from ui.figures.compare_figures import record, table

    at = open_page("greedy", "sample", lang="en", samples="2")
    place = at.session_state["place"]
    found = setup(place.spec, place.view)
    look = Look(compare_run.jobs().known(found.key), False)
    shown = compare_run.scene(found, look, catalog("en"))
    numbers = compare_run.all_figures(found, shown)
    whole = json.loads(json.dumps(record(shown, numbers, {"prompt": "tell me"}, catalog("en"))))
    assert [len(column["texts"]) for column in whole["columns"]] == [1, 2]
    assert whole["columns"][0]["texts"][0]["text"].strip() == "sun shines brightly"
    assert whole["columns"][1]["first_difference"]["reason"] == "not_drawn"
    rows_of_file = table(whole)
    assert list(rows_of_file["label"][:4]) == ["sun", "shines", "brightly", "<end>"]


def test_every_preset_has_a_name_of_its_own():
    for lang in ("en", "zh"):
        names = [name(column, catalog(lang)) for column in PRESETS.values()]
        assert len(set(names)) == len(names)


def test_a_finished_comparison_costs_little():
    question = setup_question()
    text = Text(0, (), "end_token")
    small = Comparison(question, (Written(Column(Settings()), (text,)),), 1, 1.0)
    assert 1000 < compare_jobs.size(small) < 10_000


def test_texts_that_were_stopped_are_not_finished():
    texts = (Text(0, (), "end_token"), Text(1, (), "user"), Text(2, (), None))
    written = Written(Column(Settings()), texts)
    stopped = Comparison(setup_question(), (written,), 1, 1.0, cancelled=True)
    assert compare_run.progress(stopped)[1:] == (1, 3)
    assert not ended(written)
    assert ended(replace(written, texts=texts[:1]))


def setup_question():
    from core.compare_records import Question

    return Question("tell me", "toy", (Column(BeamSettings()),))
