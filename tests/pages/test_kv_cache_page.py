"""The KV cache page without a browser: what it says in both languages, and its figures."""

import numpy as np
import pytest

from core.lab.kv_held import rows
from core.lab.kv_stored import stored
from tests.pages.app import chart, healthy, metrics, open_app, query_of, ran, words
from ui.i18n import catalog
from ui.state import store

PAGE = "9_KV_cache"
EXPERIMENTS = ("kv_steps", "kv_lengths", "kv_trick", "kv_tricks", "kv_reuse")


def run_all(at, names=EXPERIMENTS):
    """Run each experiment whose answer is not known yet."""
    for name in names:
        if not any(b.key == f"lab_again_{name}" for b in at.button):
            ran(at, name)
    return at


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_five_parts_are_there_at_once(lang):
    at = open_app(PAGE, model="tiny", lang=lang, prompt="the thing", made="2", step="1")
    t, said = catalog(lang), words(at)
    for number, key in enumerate(("steps", "rows", "sizes", "tricks", "reuse"), 1):
        assert f"## {number}. {t(f'kv_cache.{key}_title')}" in said
    engine = store().engine("tiny")
    tokens = len(engine.vocabulary.read("the thing").ids) + 1
    assert metrics(at) == {
        t("kv_cache.so_far", n=tokens): f"{256 * tokens / 1000:.2f} kB",
        t("kv_cache.per_token"): "256 B",
        t("kv_cache.next_token"): "256 B",
    }
    # Each figure says where it comes from.
    for kind in ("recorded", "computed", "published"):
        assert t(f"lab.{kind}") in said
    assert "bench.kv_cache --store" in said
    assert not at.error


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_experiment_is_done_to_the_model_in_use(lang):
    at = run_all(open_app(PAGE, model="tiny", lang=lang, prompt="the thing", kv="steps=4"))
    t, said = catalog(lang), words(at)
    assert t("lab.measured") in said
    assert t("kv_cache.same", text="").split("“")[0] in said
    assert t("kv_cache.scores_text") in said
    assert "12,800" in said  # bytes of 256 tokens at 4 bits, keys per channel
    found = metrics(at)
    assert found[t("kv_cache.col_ratio")].startswith("× ")
    assert found[t("kv_cache.metric_bytes")] == "12.8 kB"
    # 256 tokens before both prompts, and the prompt itself, with which the example begins.
    same = 256 + len(store().engine("tiny").vocabulary.read("the thing").ids)
    assert found[t("kv_cache.reuse_positions")].startswith(f"{same} / ")
    steps = chart(at, "kv_steps_chart")["data"]
    tokens = len(store().engine("tiny").vocabulary.read("the thing").ids)
    assert steps[1]["y"] == [tokens, 1, 1, 1]
    assert steps[3]["y"] == [tokens, tokens + 1, tokens + 2, tokens + 3]
    assert not at.error


def test_the_drawn_rows_are_the_cache_s_own_and_grow_by_one():
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", made="3", step="1", layer="1",
                  kv="head=1")  # fmt: skip
    engine = store().engine("tiny")
    prompt = engine.vocabulary.read("the thing").ids
    assert f"the table has {len(prompt) + 1} rows" in words(at)
    drawn = chart(at, "kv_keys")["data"][0]
    shown = np.array(_numbers(drawn["z"]))
    at_step = at.session_state["place"].view.step
    assert at_step == 1
    before = rows(engine, prompt, 1, 1)
    assert shown[:-1] == pytest.approx(before.keys, abs=1e-6)
    frame = chart(at, "kv_keys")["layout"]["shapes"][0]
    assert (frame["y0"], frame["y1"]) == (len(prompt) - 0.5, len(prompt) + 0.5)
    first = open_app(PAGE, model="tiny", lang="en", prompt="the thing")
    assert f"Prefill wrote {len(prompt)} rows at once" in words(first)


def _numbers(field):
    """An array as Plotly sends it: plain lists, or bytes in base 64."""
    import base64

    if isinstance(field, list):
        return field
    shape = [int(n) for n in field["shape"].split(",")]
    return np.frombuffer(base64.b64decode(field["bdata"]), field["dtype"]).reshape(shape)


def test_settings_stand_in_the_link_and_a_damaged_link_opens():
    damaged = "bits=3,keys=row,steps=9999,head=77,at=31,window=64,sinks=1,length=7"
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", kv=damaged)
    # What is not allowed fell back; the window and its first token are kept.
    assert at.button(key="lab_run_kv_trick").label == (
        "Measure: 4 bits, keys per channel + first 1 + last 64"
    )
    healthy(at.segmented_control(key="kv_set_bits").set_value("full").run())
    assert "bits=full" in query_of(at)["kv"]
    assert at.button(key="lab_run_kv_trick").label == "Measure: first 1 + last 64"
    healthy(at.text_input(key="kv_second").set_value("a, b=c%").run())
    assert "second=a%2C b%3Dc%25" in query_of(at)["kv"]
    assert at.text_input(key="kv_second").value == "a, b=c%"


def test_a_window_that_is_full_is_explained(monkeypatch):
    from core.engine.local import LocalEngine
    from core.models.tiny import tiny_of
    from ui import state

    sliding = LocalEngine(tiny_of("gemma3"))
    monkeypatch.setattr(state, "engine_for", lambda spec: sliding)
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing is what it is and so on")
    said = words(at)
    assert "has dropped the rows of positions 0 to" in said
    assert "2 of 3 layers have a sliding window of 8 positions and are full" in said
    found = metrics(at)
    assert (found["per token"], found["the next token adds"]) == ("768 B", "256 B")


def test_without_weights_there_is_what_was_recorded_and_what_a_formula_says(monkeypatch):
    at = open_app(PAGE, model="toy", lang="en")
    assert any("has none" in info.value for info in at.info)
    assert len(at.get("plotly_chart")) == 3
    from ui import state

    monkeypatch.setattr(state, "engine_for", lambda spec: state.recorded_engine())
    loading = open_app(PAGE, lang="en", ready=False)
    assert len(loading.get("plotly_chart")) == 3
    assert not loading.error
    # The page has the model loaded; a process that ends meanwhile is torn apart.
    store().wait("smollm2-135m", timeout=120)


def test_what_is_stored_keeps_the_promises():
    for name in ("smollm2-135m", "gemma3-270m"):
        contexts, tricks = stored()[name]
        assert [point.length for point in contexts.points] == [16, 64, 128, 256, 512, 1024]
        assert all(point.difference <= 5e-4 for point in contexts.points)
        ratios = [point.ratio for point in contexts.points]
        assert ratios == sorted(ratios)
        assert ratios[-1] > 10
        by_name = {(x.trick.bits, x.trick.keys): x.kl for x in tricks.results if x.trick.bits}
        assert max(by_name[8, "token"], by_name[8, "channel"]) < 0.001
        assert by_name[4, "channel"] < 0.5 * by_name[4, "token"]
