"""The Layers page without a browser: what it says, and that its numbers are the model's."""

import numpy as np
import pytest

from core.lens import lens_column
from tests.pages.app import data_of, healthy, open_app, query_of, words
from ui.i18n import catalog
from ui.state import store

PAGE = "4_Layers"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_part_is_there_and_every_check_holds(lang):
    at = open_app(PAGE, model="tiny", lang=lang, prompt="the thing", made="2", step="1")
    t = catalog(lang)
    said = words(at)
    for key in ("map_title", "way_title", "stream_title", "sparsity_title"):
        assert t(f"layers.{key}") in said, key
    assert t("layers.neurons_title", n=data_of(at, "neurons")["layer"] + 1) in said
    assert len(at.get("plotly_chart")) == 3
    engine = store().engine("tiny")
    folds = [e.label for e in at.expander if e.label.startswith("**")]
    titles = [t("layers.walk_before"), t("layers.walk_inside", n=1, of=2), t("layers.walk_after")]
    assert [fold.split("**")[1] for fold in folds] == titles
    assert all(t("layers.parameters", n="").strip() in fold for fold in folds)
    whole = f"{engine.info.parameters:,}"
    assert t("layers.total_check", n=whole) in said
    assert t("layers.last_row", d="0")[:12] in said
    assert t("layers.sum_check", layers=2, d="0")[:12] in said
    for key in ("last_row_off", "sum_off", "total_off"):
        assert t(f"layers.{key}", d="0", n="0", whole="0")[-12:] not in said
    assert not at.error


def test_the_map_is_the_lens_with_layers_down_and_positions_across():
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", made="3", step="2")
    data = data_of(at, "lens_map")
    engine = store().engine("tiny")
    prompt = engine.vocabulary.read("the thing").ids
    total = len(prompt) + 2
    assert data["layers"] == 2
    assert len(data["best"]) == 2
    assert len(data["best"][0]) == len(data["columns"]) == total
    assert [c["position"] for c in data["columns"]] == list(range(total))
    forward = engine.forward(prompt)
    column = lens_column(engine, forward, 1)
    shown = [data["labels"][row[1][0]] for row in data["best"]]
    assert shown == [engine.vocabulary.label(int(i)) for i in column.ids[:, 0]]
    assert [row[1][0] for row in data["shares"]] == pytest.approx(
        column.probabilities[:, 0], abs=1e-5
    )
    # What follows a column in the text is what stands above the next one.
    assert [c["next"] for c in data["columns"][:-1]] == [c["label"] for c in data["columns"][1:]]


def test_a_cell_of_the_link_is_looked_at_everywhere():
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", layer="1", at="0")
    data = data_of(at, "lens_map")
    assert (data["at"], data["layer"]) == (0, 1)
    assert data_of(at, "neurons")["layer"] == 1
    assert at.slider(key="w_layer").value == 2
    healthy(at.slider(key="w_layer").set_value(1).run())
    assert data_of(at, "lens_map")["layer"] == 0
    assert query_of(at)["layer"] == "0"
    out = open_app(PAGE, model="tiny", lang="en", prompt="the thing", layer="99", at="99")
    assert data_of(out, "lens_map")["at"] == len(data_of(out, "lens_map")["columns"]) - 1


@pytest.mark.parametrize("cell", ["norm", "attention", "feed_forward", "cosine"])
def test_the_map_shows_other_quantities(cell):
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", cell=cell)
    data = data_of(at, "lens_map")
    values = np.array(data["values"])
    assert values.shape == (2, len(data["columns"]))
    engine = store().engine("tiny")
    forward = engine.forward(engine.vocabulary.read("the thing").ids)
    size = np.linalg.norm(forward.residual, axis=-1)
    if cell == "norm":
        assert values == pytest.approx(size, rel=1e-3)
    if cell == "cosine":
        assert values[-1] == pytest.approx(1, abs=1e-3)


def test_a_table_of_probabilities_has_no_layers_and_says_so():
    at = open_app(PAGE, model="toy", lang="en")
    assert any("no layers" in error.value for error in at.info)


def test_the_stored_run_shows_what_it_holds_while_the_model_loads(monkeypatch):
    from ui import state

    monkeypatch.setattr(state, "engine_for", lambda spec: state.recorded_engine())
    at = open_app(PAGE, lang="en", ready=False)
    data = data_of(at, "lens_map")
    known = [cell is not None for cell in data["best"][0]]
    assert known[-1]
    assert not any(known[:-1])
    assert "still loading" in words(at)
