"""The Training page without a browser: what it says in both languages, and its figures."""

from dataclasses import replace

import pytest

from core.decode.generate import generate
from core.lab.training_bytes import needed_bytes
from core.lab.training_records import OTHER, SENTENCE, Training, ask_of
from core.lab.training_run import trained
from core.lab.training_stored import stored
from tests.pages.app import chart, healthy, metrics, open_app, query_of, ran, words
from ui import state
from ui.figures.words import in_bytes, two_digits, unbroken
from ui.i18n import catalog, plain
from ui.lab import jobs
from ui.state import store
from ui.training import doing

PAGE = "14_Training"
QUICK = "text=the thing is,other=a thing,steps=5,rate=0.001,draft=#bits:4:group:32,new=16"
STOPPED = "text=the thing is,other=a thing,steps=10,rate=0.001"
EXPERIMENTS = ("training_steps", "training_draft")


def run_all(at, names=EXPERIMENTS):
    """Run each experiment whose answer is not known yet."""
    for name in names:
        if not any(b.key == f"lab_again_{name}" for b in at.button):
            ran(at, name)
    return at


def frame(at, *columns):
    """The table that has these columns."""
    found = [d.value for d in at.dataframe if set(columns) <= set(d.value.columns)]
    assert len(found) == 1, columns
    return found[0]


def results():
    """(the training, the text with a draft) that this process knows."""
    known = [jobs().known(key) for key in jobs()._kept.known()]
    return (
        next(x for x in known if type(x).__name__ == "Training" and x.model == "tiny"),
        next(x for x in known if type(x).__name__ == "Speculation" and x.model == "tiny"),
    )


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_something_true_is_there_at_once(lang):
    at = open_app(PAGE, model="tiny", lang=lang, prompt="the thing")
    t, said = catalog(lang), words(at)
    known = stored()
    assert f"## 1. {t('training.steps_title')}" in said
    assert f"## 2. {t('training.draft_title')}" in said
    assert said.count(f"**{t('lab.recorded')}**") == 2
    assert unbroken(known.training.machine.date) in said
    losses, kept = known.training.losses, known.training.kept
    assert metrics(at) == {
        t("training.metric_loss"): f"{losses[0]:.2f} → {losses[-1]:.2f}",
        t("training.metric_time"): "× "
        f"{known.training.step_ms.median / known.training.inference_ms.median:.1f}",
        t("training.metric_bytes"): f"× {kept.training / kept.inference:.1f}",
        t("training.metric_served"): t("training.untouched"),
        t("training.metric_accepted"): f"{100 * known.speculation.acceptance:.0f} %",
        t("training.metric_pass"): f"{known.speculation.tokens_per_pass:.2f}",
        t("training.metric_expected"): f"{known.speculation.expected:.2f}",
        t("training.metric_speed"): f"× {known.speculation.speed:.2f}",
    }
    assert "Lyon is a major city in France" in said
    slower = {
        "drafted": two_digits(known.speculation.ms_a_token),
        "alone": two_digits(known.speculation.plain_ms_a_token),
        "times": f"{known.speculation.speed:.2f}",
    }
    assert known.speculation.speed < 1
    assert t("training.speed_slower", **slower) in said
    (speed,) = (m for m in at.metric if m.label == t("training.metric_speed"))
    assert speed.delta == t("training.metric_slower", times=slower["times"])
    # What it would take here is said before anything is done.
    engine = store().engine("tiny")
    ask = ask_of(engine.vocabulary, SENTENCE, "", OTHER)
    needed = in_bytes(needed_bytes(engine.info, ask))
    cost = t("training.steps_cost", bytes=needed, steps=ask.steps, tokens=len(ask.sentence))
    assert cost in said
    assert not at.error


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_run_shows_its_own_figures(lang):
    at = run_all(open_app(PAGE, model="tiny", lang=lang, prompt="the thing", training=QUICK))
    t, said = catalog(lang), words(at)
    training, drafted = results()
    assert said.count(f"**{t('lab.measured')}**") == 2
    assert f"**{t('lab.recorded')}**" not in said
    assert training.frozen.sum_after[:16] in said
    shown = metrics(at)
    losses = training.losses
    assert shown[t("training.metric_loss")] == f"{losses[0]:.2f} → {losses[-1]:.2f}"
    assert shown[t("training.metric_served")] == t("training.untouched")
    assert shown[t("training.metric_accepted")] == f"{100 * drafted.acceptance:.0f} %"
    kept = training.kept
    table = frame(at, t("training.way_training"), t("training.way_inference"))
    sums = table[table[t("training.col_part")] == t("training.sum")]
    assert int(sums[t("training.way_training")].iloc[0]) == kept.training
    assert int(sums[t("training.way_inference")].iloc[0]) == kept.inference
    moving = table[table[t("training.col_part")] == t("training.moving")]
    assert list(moving.iloc[0])[1:] == [0, kept.trained]
    assert len(frame(at, t("training.col_kl"))) == 4
    rounds = frame(at, t("training.col_verdict"))
    assert len(rounds) == drafted.proposed + sum(r.extra is not None for r in drafted.rounds)
    kept_rows = rounds[rounds[t("training.col_verdict")] == t("training.sign_kept")]
    assert len(kept_rows) == drafted.accepted
    # Greedy writes one text, and it is told once.
    text = store().engine("tiny").vocabulary.text(drafted.ids)
    line = " ".join(text.replace("\n", " ↵ ").split())
    assert t("training.same_text", text=plain(line)) in said
    assert not at.error


def test_charts_draw_the_records():
    at = run_all(open_app(PAGE, model="tiny", lang="en", prompt="the thing", training=QUICK))
    training, drafted = results()
    line, cells = chart(at, "training_loss_chart")["data"]
    assert list(_numbers(line["y"])) == pytest.approx(training.losses)
    assert cells["type"] == "heatmap"
    stacks = chart(at, "training_memory_chart")["data"]
    assert sum(_numbers(bar["x"])[0] for bar in stacks) == pytest.approx(
        training.kept.training / 1e6
    )
    stacks = chart(at, "training_speed_chart")["data"]
    assert sum(_numbers(bar["x"])[0] for bar in stacks) == pytest.approx(drafted.plain_ms_a_token)
    assert sum(_numbers(bar["x"])[1] for bar in stacks) == pytest.approx(drafted.ms_a_token)
    curve, point = chart(at, "training_rates_chart")["data"]
    assert _numbers(curve["y"])[drafted.gamma - 1] == pytest.approx(drafted.expected)
    assert _numbers(point["y"]) == pytest.approx([drafted.tokens_per_pass])
    # Parts of a bar differ by their pattern as well.
    patterns = {bar["marker"]["pattern"].get("shape") for bar in stacks}
    assert len(patterns) == len(stacks)


def _numbers(values):
    if isinstance(values, dict):
        import base64

        import numpy as np

        return np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"]).tolist()
    return values


def test_widgets_write_the_link_and_the_link_sets_them():
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", training=QUICK)
    assert at.text_input(key="training_text").value == "the thing is"
    assert at.text_input(key="training_ask").value == "the thing"
    healthy(at.text_input(key="training_text").set_value("one, two = three").run())
    assert "text=one%2C two %3D three" in query_of(at)["training"]
    assert at.text_input(key="training_ask").value == "one, two ="
    healthy(at.selectbox(key="training_draft").set_value("#bits:4:group:64").run())
    assert "draft=#bits:4:group:64" in query_of(at)["training"]


@pytest.mark.parametrize(
    ("training", "said"),
    [
        ("draft=nonsense", "nonsense"),
        ("draft=smollm2-135m", "cannot draft for tiny"),
        ("draft=gemma3-270m", "cannot draft for tiny"),
        ("draft=<script>alert(1)</script>", "script"),
        ("text=a", "single token"),
        ("text=" + "水" * 50, "at most 128"),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_the_rest_stays(training, said):
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", training=training)
    assert any(said in info.value for info in at.info), [info.value for info in at.info]
    assert len(at.info) == 1
    assert sum("lab_run" in str(b.key) for b in at.button) == 1


@pytest.mark.parametrize(
    "training",
    ["steps=1e9,rate=nan,opt=evil,gamma=99,new=-1,rule=x", "%%%,,==,steps", "rate=" + "9" * 300],
)
def test_a_damaged_link_falls_back(training):
    at = open_app(PAGE, model="tiny", lang="en", prompt="the thing", training=training)
    assert at.select_slider(key="training_steps").value == 20
    assert at.select_slider(key="training_rate").value == 1e-5
    assert at.select_slider(key="training_gamma").value == 4
    assert not at.error


def test_a_table_of_probabilities_has_no_weights():
    at = open_app(PAGE, model="toy", lang="en")
    assert any("table of probabilities" in info.value for info in at.info)
    assert f"**{catalog('en')('lab.recorded')}**" in words(at)


def test_the_stored_run_is_shown_while_the_model_loads(monkeypatch):
    from ui import state

    monkeypatch.setattr(state, "engine_for", lambda spec: state.recorded_engine())
    at = open_app(PAGE, lang="en", ready=False)
    assert words(at).count(f"**{catalog('en')('lab.recorded')}**") == 2
    assert not any("lab_run" in str(b.key) for b in at.button)


def test_sampling_takes_the_settings_of_the_sidebar():
    at = open_app(
        PAGE,
        model="tiny",
        lang="en",
        prompt="the thing",
        training=QUICK + ",rule=own",
        t="0.7",
        k="5",
    )
    run_all(at, ("training_draft",))
    known = [jobs().known(key) for key in jobs()._kept.known()]
    found = next(x for x in known if type(x).__name__ == "Speculation" and not x.greedy)
    own = at.session_state["place"].spec.settings
    assert (own.temperature, own.top_k) == (0.7, 5)
    settings, engine = replace(own, max_new=16), store().engine("tiny")
    steps = generate(engine, engine.vocabulary.read("the thing").ids, settings)
    assert list(found.plain_ids) == [step.choice.id for step in steps]
    assert catalog("en")("training.same_law") in words(at)


@pytest.fixture(scope="module")
def turns(tiny) -> list[Training]:
    """Every record of a training of three steps, in their order."""
    ask = ask_of(tiny.vocabulary, "the thing is", "the thing", "a thing", 3, 0.001)
    return list(trained(tiny, ask))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_sentence_of_the_progress_moves_on_with_the_work(lang, turns):
    t = catalog(lang)
    said = list(dict.fromkeys(doing(t, found) for found in turns))
    steps = [t("training.phase_steps", step=n, steps=3) for n in (1, 2, 3)]
    before = [t(f"training.phase_{name}") for name in ("original", "copy", "look", "kept")]
    after = [t(f"training.phase_{name}") for name in ("after", "frozen")]
    assert said == [*before, *steps, *after]


def stopped_at(found: Training, lang: str):
    """The page after "Stop" was pressed when the work had come so far."""
    at = open_app(PAGE, model="tiny", lang=lang, prompt="the thing", training=STOPPED)
    engine = store().engine("tiny")
    ask = ask_of(engine.vocabulary, "the thing is", "the thing", "a thing", 10, 0.001)
    key = ("training_steps", (state.number(engine), ask))
    at.session_state["lab_stopped_training_steps"] = (key, found)
    return healthy(at.run())


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_after_stop_what_there_is_is_drawn_and_nothing_goes_on(lang, turns):
    t = catalog(lang)
    early = next(found for found in turns if found.phase == "copy")
    said = words(stopped_at(early, lang))
    assert t("lab.stopped_early") in said
    assert t("training.phase_copy") not in said
    assert t("training.phase_look") not in said
    looked = next(found for found in turns if found.phase == "kept")
    at = stopped_at(looked, lang)
    assert chart(at, "training_prompt_chart")["data"]
    assert t("lab.stopped") in words(at)
    assert t("training.phase_kept") not in words(at)
    trained_two = next(found for found in turns if len(found.steps) == 2)
    at = stopped_at(trained_two, lang)
    first, last = trained_two.losses[0], trained_two.losses[-1]
    assert metrics(at)[t("training.metric_loss")] == f"{first:.2f} → {last:.2f}"
    assert t("training.phase_steps", step=3, steps=3) not in words(at)
