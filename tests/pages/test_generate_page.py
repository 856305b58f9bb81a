"""The Generate page without a browser, on the toy's story, whose every number is known."""

import json
import math
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from ui.i18n import catalog

ROOT = Path(__file__).resolve().parents[2]


def open_page(**query: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in {"model": "toy", "prompt": "tell me", "p": "off", **query}.items():
        at.query_params[name] = value
    at.switch_page("pages/6_Generate.py")
    at.run()
    assert not at.exception
    assert [error.value for error in at.error] == []
    return at


def sent(at: AppTest, name: str) -> dict:
    found = [b.proto for b in at.get("bidi_component") if b.proto.component_name == f"tbt_{name}"]
    return json.loads(found[0].json)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_greedy_run_to_its_end(lang):
    at = open_page(lang=lang, strategy="greedy", made="4", step="1")
    t = catalog(lang)
    strip = sent(at, "strip")
    assert [c["label"] for c in strip["chips"]][2:] == ["sun", "shines", "brightly", "<end>"]
    assert (strip["view"], strip["made"], strip["stop"]) == (1, 4, "end_token")
    table = sent(at, "candidates")
    assert [row["label"] for row in table["rows"] if row["chosen"]] == ["shines"]
    assert table["step"] == 1
    assert table["bar"]["u"] is None
    assert "shines" in table["why"]
    assert "rises" in table["why"]
    metrics = {m.label: m.value for m in at.metric}
    assert metrics[t("generate.logprob")] == "−2.631"
    assert metrics[t("generate.perplexity")] == "1.93"
    assert metrics[t("generate.made")] == "4"
    assert [code.value for code in at.code] == ["tell me sun shines brightly"]
    assert t("strip.stop_end_token", token="<end>") in [text.value for text in at.text]
    chain = at.latex[0].value
    assert r"0.500 \cdot 0.400 \cdot 0.450 \cdot 0.800" in chain
    frames = [frame.value for frame in at.dataframe]
    sums = next(f for f in frames if t("generate.col_sum") in f)[t("generate.col_sum")]
    assert sums.iloc[-1] == pytest.approx(math.log(0.072))


def test_a_drawn_step_says_on_what_u_fell():
    at = open_page(seed="3", lang="en")
    table = sent(at, "candidates")
    u = table["bar"]["u"]
    here = next(s for s in table["bar"]["segments"] if s["low"] <= u < s["high"])
    assert table["bar"]["chosen"] == table["bar"]["dice"] == here["id"]
    assert f"so the draw fell on “{here['label']}”" in table["why"]
    assert table["others"]["10"] is None


def test_a_forced_token_that_the_filters_removed():
    at = open_page(strategy="sample", k="1", force="0:6", made="1", lang="en")
    table = sent(at, "candidates")
    assert table["why"] == (
        "You forced “tonight”. The filters had removed it, so the dice could never have picked it. "
        f"The dice (u = {table['bar']['u']:.3f}) would have picked “sun”."
    )
    removed = {row["label"]: row["removed"] for row in table["rows"]}
    assert removed["tonight"] == "top_k"
    assert removed["sun"] is None
    assert sent(at, "strip")["chips"][-1]["steps"][0]["rule"] == "forced"


def test_a_step_beyond_the_end_shows_the_end():
    at = open_page(strategy="greedy", made="20", step="19")
    strip = sent(at, "strip")
    assert (strip["view"], strip["made"]) == (3, 4)


def test_the_stored_run_or_the_model_answers_for_the_default():
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at.switch_page("pages/6_Generate.py")
    at.run()
    assert not at.exception
    row = sent(at, "candidates")["rows"][0]
    assert row["label"] == "␣Paris"
    assert row["model"] == pytest.approx(0.773, abs=0.01)
