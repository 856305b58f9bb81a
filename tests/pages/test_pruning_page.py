"""The Pruning page without a browser: what it measures, what its buttons do, odd links."""

import time

import pytest

from core.edits.spec import parse_edit
from core.lab.importance import ranking, surprise, text_ids
from core.lab.prune_stored import stored
from core.models.catalog import DEFAULT
from tests.pages.app import chart, healthy, metrics, open_app, query_of, ran, words
from ui import lab
from ui.edit_words import edit_words
from ui.figures.pruning_words import number
from ui.i18n import bound, catalog
from ui.state import store

PAGE = "11_Pruning"
PARTS = ("zeros_title", "removal_title", "speed_title", "importance_title")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_four_parts_tell_one_story(lang):
    at = open_app(PAGE, model="tiny", lang=lang)
    t, said = catalog(lang), words(at)
    for place, key in enumerate(PARTS, 1):
        assert f"## {place}. {t(f'pruning.{key}')}" in said
    assert t("pruning.about_wanda") in said
    assert t("pruning.fours_cpu") in said
    # The cut is worked out at once: half of the 32 × 64 weights of the last matrix.
    assert "1,024" in said
    assert bound("50.0 %") in said
    # Recorded results of the default model, with how to measure them again.
    command = f"python -m core lab prune --all --model {DEFAULT}"
    assert said.count(command) == 4
    assert number(stored(DEFAULT).sweep.perplexity) in said
    assert not at.error


def test_zeros_are_set_and_measured():
    at = open_app(PAGE, model="tiny", lang="en", pruning="zeros=60,method=magnitude")
    assert at.slider(key="prune_zeros_share").value == 60
    ran(at, "prune_zeros")
    t = catalog("en")
    found = metrics(at)
    assert found[t("pruning.step")] == t("pruning.step_unchanged")
    assert found[t("pruning.memory")] == "146 kB"
    assert float(found[t("pruning.kl")]) > 0.5
    tables = [frame.value for frame in at.dataframe]
    (numbers,) = [table for table in tables if t("pruning.col_what") in table.columns]
    by_row = numbers.set_index(t("pruning.col_what"))[t("pruning.text_after")]
    # 60 % of 9,216 weights in each of two layers, each matrix rounded down
    sizes = [32 * 32, 16 * 32, 16 * 32, 32 * 32, 64 * 32, 64 * 32, 32 * 64]
    zeros = 2 * sum(int(0.6 * size + 1e-9) for size in sizes)
    assert by_row[t("pruning.col_zeros")] == f"{zeros:,}"
    healthy(at.toggle(key="prune_fours").set_value(True).run())
    assert query_of(at)["pruning"].startswith("pattern=2of4")
    assert at.slider(key="prune_zeros_share").disabled


def test_parts_are_taken_out_measured_and_looked_at_everywhere():
    at = open_app(PAGE, model="tiny", lang="en", pruning="neurons=25,layers=1")
    t = catalog("en")
    words_of = edit_words(t, "layers:1+neurons:0.25")
    assert f"**{words_of}**" in words(at)
    ran(at, "prune_removal")
    assert metrics(at)[t("pruning.step")].startswith("× ")
    healthy(at.button(key="prune_removal_use").click().run())
    assert query_of(at)["model"] == "tiny"
    assert query_of(at)["edit"] == "layers:1+neurons:0.25"
    name = "tiny#layers:1+neurons:0.25"
    assert store().wait(name, timeout=60).status == "ready"
    healthy(at.run())
    assert store().engine(name).info.intermediate == 48
    assert at.button(key="prune_removal_use").disabled
    assert t("pruning.already", edit=words_of)[:30] in words(at)
    assert at.button(key="edit_off") is not None


def test_an_edit_in_use_is_added_to():
    at = open_app(PAGE, model="tiny", edit="bits:4:channel", lang="en", pruning="neurons=50")
    wanted = parse_edit("neurons:0.5+bits:4:channel")
    t = catalog("en")
    assert f"**{edit_words(t, wanted)}**" in words(at)
    healthy(at.button(key="prune_removal_use").click().run())
    assert query_of(at)["edit"] == "neurons:0.5+bits:4:channel"


def test_compare_opens_with_both():
    at = open_app(PAGE, model="tiny", lang="en", pruning="neurons=50")
    at.button(key="prune_removal_compare").click().run()
    columns = at.session_state["place"].view.columns
    assert columns == ("greedy,model=tiny", "greedy,model=tiny#neurons:0.5")


def test_importances_are_measured_and_heads_silenced():
    at = open_app(PAGE, model="tiny", lang="en", pruning="heads=2")
    before = len(at.get("plotly_chart"))
    ran(at, "prune_importance")
    t = catalog("en")
    assert len(at.get("plotly_chart")) == before
    engine = store().engine("tiny")
    text = text_ids(engine)
    own = f"{surprise(engine, text):.2f}"
    assert t("pruning.importance_how", n=len(text), surprise=own) in words(at)
    assert at.slider(key="prune_silence").value == 2
    assert "**2 heads silenced" in words(at)
    # Layers are now offered with what they are worth.
    healthy(at.run())
    (layers,) = [m for m in at.multiselect if m.key == "prune_layers"]
    assert all("(+" in option or "(−" in option for option in layers.options)
    ran(at, "prune_heads")
    assert metrics(at)[t("pruning.step")] == t("pruning.step_unchanged")


def test_the_whole_recording_stays_beside_a_part(monkeypatch):
    def slow(engine):
        for found in ranking(engine):
            yield found
            time.sleep(0.3)

    monkeypatch.setattr("core.lab.importance.ranking", slow)
    lab.jobs.clear()
    at = open_app(PAGE, model="tiny", lang="en")
    chart(at, "prune_map")
    healthy(at.button(key="lab_run_prune_importance").click().run())
    healthy(at.button(key="lab_stop_prune_importance").click().run())
    t = catalog("en")
    assert t("lab.stopped") in words(at)
    part, whole = (chart(at, key)["data"][0]["y"] for key in ("prune_map", "prune_map_recorded"))
    assert len(part) == store().engine("tiny").info.layers
    assert len(whole) == len(stored(DEFAULT).importance.layers)
    assert t("pruning.importance_recorded") in [box.label for box in at.expander]


@pytest.mark.parametrize(
    "spoiled",
    [
        "zeros=nan,neurons=1e9,layers=-1.x,groups=999,heads=-3,method=x,pattern=y,matrix=z",
        "layers=" + ".".join(map(str, range(99))),
        "zeros=37,layers=5.6.7,groups=2",
        "=,,==,%2C=%",
        "🙂" * 90,
    ],
)
def test_a_spoiled_link_opens(spoiled):
    at = open_app(PAGE, model="tiny", lang="en", pruning=spoiled)
    assert not at.error
    assert at.slider(key="prune_zeros_share").value % 5 == 0


def test_all_layers_are_never_taken_out():
    at = open_app(PAGE, model="tiny", lang="en", pruning="layers=0.1,neurons=0")
    ran(at, "prune_removal")
    assert any("All 2 layers" in error.value for error in at.error)


def test_a_table_of_probabilities_says_that_it_has_no_weights():
    at = open_app(PAGE, model="toy", lang="en")
    t = catalog("en")
    assert any(info.value == t("fault.lab_needs_weights") for info in at.info)
    # What was recorded of the default model is shown all the same.
    assert len(at.get("plotly_chart")) >= 4


def test_while_the_model_loads_recorded_results_are_shown(monkeypatch):
    from ui import state

    monkeypatch.setattr(state, "engine_for", lambda spec: state.recorded_engine())
    at = open_app(PAGE, lang="zh", ready=False)
    assert len(at.get("plotly_chart")) >= 5
    assert not [b for b in at.button if str(b.key).startswith("lab_run_")]
    assert not at.error


@pytest.mark.parametrize("where", ["3_Attention", "4_Layers", "6_Generate", "7_Beam_search",
                                  "2_Embeddings", "9_KV_cache"])  # fmt: skip
@pytest.mark.parametrize("edit", ["layers:0+neurons:0.3+zeros:0.5:wanda", "groups:1+heads:1.1"])
def test_every_page_shows_the_pruned_model(where, edit):
    at = open_app(where, model="tiny", edit=edit, lang="en", prompt="the thing", made="2")
    assert not at.error


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_edit_that_does_not_fit_the_model_says_so_on_the_page(lang):
    said = catalog(lang)
    store().request("tiny#layers:9")
    assert store().wait("tiny#layers:9", timeout=60).status == "failed"
    at = open_app(PAGE, ready=False, model="tiny", edit="layers:9", lang=lang, prompt="the thing")
    shown = words(at)
    assert said("fault.no_such_layer", layer=9, last=1) in shown
    assert said("frame.waiting") not in shown
