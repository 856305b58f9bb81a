"""The Precision page without a browser: what it says, what its link means, and the ways out."""

import pytest

from core.edits.grid import Grid
from core.edits.spec import Rounding
from core.lab.quantize import effect
from core.lab.quantize_recorded import recorded
from tests.pages.app import healthy, open_app, query_of, ran, words
from ui import lab, state
from ui.i18n import catalog
from ui.precision_effect import _marked, _use
from ui.state import store

PAGE = "10_Precision"
PARTS = ("sweep_title", "effect_title", "look_title", "speed_title")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_part_is_there(lang):
    at = open_app(PAGE, model="tiny", lang=lang, prompt="the thing")
    t, said = catalog(lang), words(at)
    for number, key in enumerate(PARTS, 1):
        assert f"## {number}. {t(f'precision.{key}')}" in said
    assert t("precision.origin_none", all=21) in said
    for key in ("histogram_title", "hand_title", "outliers_title"):
        assert t(f"precision.{key}") in said
    assert t("lab.computed") in said
    # Inside `…` a backslash would be shown.
    assert "`model.layers.0.mlp.down_proj`" in said
    assert not at.error


def test_the_row_by_hand_is_the_model_s():
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", precision="bits=3,row=4")
    table = next(frame.value for frame in at.dataframe if "code q" in frame.value)
    engine = store().engine("tiny")
    with engine.borrowed() as model:
        row = model.model.layers[0].mlp.down_proj.weight[4].numpy()
    scale = abs(row).max() / 3
    assert len(table) == 16
    assert table["weight w"].tolist() == pytest.approx(row[:16].tolist())
    assert table["code q"].tolist() == [round(float(w / scale)) for w in row[:16]]
    assert set(table["≤ s ÷ 2"]) == {"✓"}


def test_the_sweep_and_one_setting_are_measured_on_demand():
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", precision="bits=3,share=64")
    charts = len(at.get("plotly_chart"))
    at = ran(at, "precision_sweep")
    assert "**Measured**" in words(at)
    assert [metric.label for metric in at.metric][:2] == [
        "KL from the reference (nats)",
        "Same favourite",
    ]
    # In place of the figures of another model, which were recorded.
    assert len(at.get("plotly_chart")) == charts
    at = ran(at, "precision_effect")
    engine = store().engine("tiny")
    ids = engine.vocabulary.read("the thing").ids
    for found in effect(engine, Rounding(Grid(3, "group", 64)), ids):
        last = found
    assert f"KL {last.point.kl:.3g}" in words(at)
    assert at.metric[0].value == f"{last.point.kl:.3g}"
    assert len(at.get("plotly_chart")) == charts + 2


def test_real_sizes_are_shown_with_the_ratio():
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing")
    at = ran(at, "precision_speed")
    table = next(frame.value for frame in at.dataframe if "bytes of the tensors" in frame.value)
    sizes = dict(zip(table["stored as"], table["bytes of the tensors"], strict=True))
    assert sizes["as loaded"] == f"{store().engine('tiny').info.bytes_in_memory:,}"
    assert sizes["int8"] == "55,392"
    assert table["step ÷ as loaded"][0] == "× 1.00"


def test_controls_and_link_are_one():
    at = open_app(PAGE, model="tiny", lang="en", prompt="hi", precision="bits=6,share=32,grid=asym")
    buttons = {group.key: group.value for group in at.button_group}
    assert buttons["precision_bits"] == 6
    assert buttons["precision_share"] == "32"
    at.button_group(key="precision_head").set_value("on")
    healthy(at.run())
    assert query_of(at)["precision"] == "bits=6,share=32,grid=asym,head=on"


@pytest.mark.parametrize(
    "hostile",
    [
        "bits=99,share=x,row=9999999999999",
        "matrix=<b>,store=$x$,row=-7",
        "%%%,,,=,bits=",
        "row=99999",
    ],
)
def test_a_damaged_link_still_opens(hostile):
    at = open_app(PAGE, model="tiny", lang="en", prompt="hi", precision=hostile, layer="77")
    assert not at.error
    assert at.button_group(key="precision_bits").value == 4
    assert at.selectbox(key="precision_matrix").value == "mlp.down_proj"


def test_the_changed_model_goes_into_the_link_and_back():
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", edit="neurons:0.25")
    healthy(at.button(key="precision_everywhere_effect").click().run())
    assert query_of(at)["edit"] == "neurons:0.25+bits:4:channel"
    assert store().wait("tiny#neurons:0.25+bits:4:channel", timeout=60).status == "ready"
    healthy(at.run())
    # The page goes on comparing with the model before.
    at = ran(at, "precision_effect")
    assert "KL 0 " not in words(at)
    healthy(at.button(key="precision_back_effect").click().run())
    assert query_of(at)["edit"] == "neurons:0.25"


def test_compare_opens_with_both_models():
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", precision="store=int8")
    healthy(at.button(key="precision_compare_speed").click().run())
    columns = at.session_state["place"].view.columns
    assert columns == ("greedy,model=tiny", "greedy,model=tiny#int8")


def test_a_grid_that_the_weights_sit_on_is_no_miracle(monkeypatch, default_model):
    known = recorded(default_model)
    assert known is not None
    # The stored run stands in for the model: nothing has to be loaded.
    monkeypatch.setattr(state, "engine_for", lambda spec: state.recorded_engine())
    at = open_app(PAGE, lang="en", ready=False, precision="share=32,grid=asym")
    said, t = words(at), catalog("en")
    assert "210 of 272" in said
    assert "This looks like a miracle and is none" in said
    assert t("precision.miracle_store", stores="int4, groups of 32", reference="")[:40] in said
    assert "weights already rounded to 4 bits" in said
    assert t("lab.recorded") in said
    assert t("fault.model_loading") in said
    assert at.metric[0].value in ("0", "0.0") or float(at.metric[0].value) < 1e-5
    other = open_app(PAGE, lang="en", ready=False, precision="share=64,grid=asym")
    assert "looks like a miracle" not in words(other)
    assert float(other.metric[0].value) > 0.1


def test_the_difference_of_two_texts_is_bold_before_a_mark_too():
    assert _marked("to be!", 5) == r"to be**{0}\!{0}**".format("\u2060")
    assert _marked("same", 4) == "same"


def test_a_table_of_probabilities_has_no_weights_and_says_so():
    at = open_app(PAGE, model="toy", lang="en")
    said = words(at)
    assert catalog("en")("fault.lab_needs_weights") in said
    assert not at.exception


def test_two_readers_of_one_question_share_its_answer():
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", precision="bits=5")
    at = ran(at, "precision_effect")
    other = open_app(PAGE, model="tiny", lang="zh", prompt="the thing", precision="bits=5")
    assert f"KL {_kl(at)}" in words(at)
    assert f"KL {_kl(at)}" in words(other)


def _kl(at):
    key = at.session_state["lab_wanted_precision_effect"]
    return f"{lab.jobs().known(key).point.kl:.3g}"


def test_a_model_without_matrices_is_a_sentence(monkeypatch):
    monkeypatch.setattr("core.lab.quantize_look.matrix_names", lambda engine: ())
    at = open_app(PAGE, model="tiny", lang="en", prompt="hi")
    assert catalog("en")("precision.no_matrices") in words(at)


def test_figures_of_another_model_are_named_as_such():
    at = open_app(PAGE, model="tiny", lang="en", prompt="hi")
    assert "SmolLM2 135M Instruct" in words(at)


def test_a_changed_model_is_said_in_the_sidebar_too(monkeypatch):
    asked, session = [], {}
    monkeypatch.setattr("ui.precision_effect.state.ask", lambda **what: asked.append(what))
    monkeypatch.setattr("ui.precision_effect.st.session_state", session)
    _use("tiny#int8")
    assert asked == [{"model": "tiny#int8"}]
    # The sidebar stands outside the fragment in which the button is.
    assert session == {"whole_page": True}
