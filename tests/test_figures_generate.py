"""The Generate page's numbers: candidates, the draw bar, the chain rule, the chart."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import pytest

from core.decode.choose import choose
from core.decode.generate import run
from core.engine.toy import ToyEngine, default_table, toy_from_numbers
from core.settings import RunSpec, Settings
from core.trace import Choice, Generation, StepTrace
from ui.figures.candidates import candidates_data
from ui.figures.charts import per_step, plain, short
from ui.figures.drawbar import Bar, bar_data, why
from ui.figures.generate import (
    chain_latex,
    chain_table,
    run_figures,
    steps_table,
    stop_sentence,
)
from ui.figures.words import (
    digits_for,
    latex_probability,
    percent,
    real_minus,
    scientific,
    signed,
    two_digits,
    whole_percent,
)
from ui.i18n import bound, catalog

EN, ZH = catalog("en"), catalog("zh")
LABELS = ("a", "b", "c", "d")
TYPED = (0.5, 0.3, 0.15, 0.05)


def engine_of(probabilities=TYPED, labels=LABELS) -> ToyEngine:
    return ToyEngine(toy_from_numbers(probabilities=probabilities, labels=labels))


def step_of(settings: Settings, *, u: float | None = None, engine=None) -> StepTrace:
    """Step 0 with its stages; with ``u``, as if the dice had said so."""
    engine = engine or engine_of()
    forward = engine.forward([0])
    choice = choose(forward.logits, settings, step=0)
    if u is not None:
        bar = Bar.of(choice)
        drawn = int(bar.order[bar.at(u)])
        choice = replace(choice, u=u, id=choice.id if choice.rule == "forced" else drawn)
    return StepTrace(0, forward, choice)


def data_of(settings: Settings, t=EN, **kw) -> dict:
    engine = kw.pop("engine", None) or engine_of()
    step = step_of(settings, engine=engine, **kw)
    data = candidates_data(step, settings, engine.vocabulary, t)
    json.dumps(data, allow_nan=False)  # what a browser can read
    return data


# --- candidates


def test_each_row_has_its_probability_before_and_after_every_stage():
    data = data_of(Settings(top_k=3, top_p=0.6))
    assert [s["name"] for s in data["stages"]] == ["temperature", "top_k", "top_p", "min_p"]
    assert [s["on"] for s in data["stages"]] == [False, True, True, False]
    assert [s["survivors"] for s in data["stages"]] == [4, 3, 2, 2]
    rows = {row["label"]: row for row in data["rows"]}
    assert list(rows) == ["a", "b", "c", "d"]
    assert [row["model"] for row in rows.values()] == pytest.approx(TYPED)
    assert rows["a"]["after"] == pytest.approx([0.5, 10 / 19, 0.625, 0.625])
    assert rows["c"]["after"] == pytest.approx([0.15, 3 / 19, 0, 0])
    assert [row["removed"] for row in rows.values()] == [None, None, "top_p", "top_k"]
    assert data["others"]["10"] is None
    assert data["sizes"] == [4]


def test_all_others_make_every_column_1():
    shares = [2.0**-i for i in range(1, 120)]
    engine = engine_of([*shares, 2.0**-119], [str(i) for i in range(120)])
    data = data_of(Settings(strategy="sample", forced=((0, 60),)), engine=engine)
    assert data["sizes"] == [10, 20, 50, 100]
    for n in data["sizes"]:
        rows = [r for r in data["rows"] if r["rank"] <= n or r["chosen"]]
        rest = data["others"][str(n)]
        assert len(rows) + rest["count"] == 120
        assert sum(r["model"] for r in rows) + rest["model"] == pytest.approx(1, abs=1e-12)
        assert sum(r["after"][-1] for r in rows) + rest["after"][-1] == pytest.approx(1, abs=1e-12)
    chosen = [r for r in data["rows"] if r["chosen"]]
    assert [(r["id"], r["rank"]) for r in chosen] == [(60, 61)]


def test_an_impossible_token_has_no_logit():
    data = data_of(Settings(), engine=engine_of((0.5, 0.5, 0.0), LABELS[:3]))
    assert data["rows"][2]["logit"] is None
    assert data["rows"][2]["removed"] is None


# --- the bar


def test_the_bar_lines_up_the_survivors():
    choice = step_of(Settings(top_p=0.7)).choice
    data = bar_data(choice, LABELS.__getitem__)
    spans = [(s["label"], s["low"], s["high"]) for s in data["segments"]]
    assert spans == [("a", 0.0, pytest.approx(0.625)), ("b", pytest.approx(0.625), 1.0)]
    assert data["count"] == 2


def test_a_long_tail_becomes_a_gap_but_the_drawn_token_is_drawn():
    engine = engine_of([1 / 200] * 200, [str(i) for i in range(200)])
    step = step_of(Settings(), u=0.5 + 1e-9, engine=engine)
    assert step.choice.id == 100
    segments = bar_data(step.choice, str)["segments"]
    singles = [s["id"] for s in segments if s["id"] is not None]
    assert singles == [*range(40), *range(94, 107)]
    assert [s["count"] for s in segments if s["id"] is None] == [54, 93]
    assert segments[-1]["high"] == 1.0
    assert all(a["high"] == b["low"] for a, b in pairwise(segments))


@pytest.mark.parametrize(
    ("u", "token", "sentence"),
    [
        (
            0.6,
            1,
            "Why not the top token, “a” (50.0 %)? "
            "u = 0.600; “a” covers 0.000 … 0.500, “b” covers 0.500 … 0.800: "
            "so the draw fell on “b”.",
        ),
        (
            0.0,
            0,
            "u = 0.000; “a” covers 0.000 … 0.500, “b” covers 0.500 … 0.800: "
            "so the draw fell on “a”.",
        ),
        (
            0.7999,
            1,
            "Why not the top token, “a” (50.0 %)? "
            "u = 0.7999; “a” covers 0.0000 … 0.5000, “b” covers 0.5000 … 0.8000: "
            "so the draw fell on “b”.",
        ),
    ],
)
def test_why_a_token_was_drawn(u, token, sentence):
    step = step_of(Settings(), u=u)
    assert step.choice.id == token
    assert why(step, LABELS.__getitem__, EN, greedy=False) == bound(sentence)


def reason(settings: Settings, t=EN, **kw) -> str:
    return why(step_of(settings, **kw), LABELS.__getitem__, t, greedy=settings.strategy == "greedy")


def test_why_without_dice():
    assert reason(Settings(strategy="greedy")) == (
        "Greedy takes the highest score (logit): “a” with −0.69; next is “b” with −1.20. "
        "No dice are thrown."
    )
    assert reason(Settings(temperature=0)).startswith("Temperature 0 means greedy: “a”")
    assert reason(Settings(top_k=1), u=0.25) == (
        "The filters left only “a”, so it is taken whatever the dice say (u = 0.250)."
    )
    alone = step_of(Settings(strategy="greedy"), engine=engine_of((1.0,), ("a",)))
    assert why(alone, LABELS.__getitem__, EN, greedy=True) == (
        "The vocabulary has no other token than “a”."
    )


def test_why_a_forced_token():
    forced = Settings(top_k=2, forced=((0, 3),))
    assert reason(forced, u=0.9) == (
        "You forced “d”. The filters had removed it, so the dice could never have picked it. "
        "The dice (u = 0.900) would have picked “b”."
    )
    assert reason(replace(forced, strategy="greedy", top_k=None), ZH) == (
        "“d”是你强制选择的。贪心本来会取“a”。"
    )


# --- the run in numbers


def story(settings: Settings | None = None, steps: int | None = None) -> Generation:
    settings = settings or Settings(strategy="greedy", max_new=9)
    return run(ToyEngine(default_table()), RunSpec("toy", "a", settings), steps=steps)


def full(made: Generation, index: int) -> StepTrace:
    step = made.steps[index]
    choice: Choice = choose(step.forward.logits, made.spec.settings, step=index)
    return replace(step, choice=choice)


def test_the_chain_rule_of_the_toy_s_story():
    made = story()
    table = chain_table(made, ["sun", "shines", "brightly", "<end>"], EN)
    assert table["token"].tolist() == ["sun", "shines", "brightly", "<end>"]
    assert table["p (model)"].tolist() == pytest.approx([0.5, 0.4, 0.45, 0.8])
    assert table["Σ ln p"].iloc[-1] == pytest.approx(math.log(0.072))
    assert table["how"].tolist() == ["greedy"] * 4
    assert chain_latex(made, EN) == (
        r"\begin{aligned}&P(x_1,\dots,x_{4}\mid\text{prompt})=\prod_{i=1}^{4}p_i"
        r"\\&=0.500 \cdot 0.400 \cdot 0.450 \cdot 0.800\\&=e^{-2.631}=0.072\end{aligned}"
    )


def test_a_long_chain_shows_its_first_factors_and_its_last():
    engine = engine_of()
    made = run(engine, RunSpec("toy", "a", Settings(strategy="greedy", max_new=8)))
    assert r"&=0.500 \cdot 0.500 \cdot 0.500 \cdot \cdots \cdot 0.500\\" in chain_latex(made, EN)
    assert r"e^{-5.545}=3.91\times 10^{-3}" in chain_latex(made, EN)
    four = run(engine, RunSpec("toy", "a", Settings(strategy="greedy", max_new=4)))
    assert r"\cdots" not in chain_latex(four, EN)


def test_an_impossible_forced_token_makes_the_text_impossible():
    made = story(Settings(strategy="greedy", forced=((0, 2),)), steps=1)
    assert chain_latex(made, ZH).startswith(r"\begin{aligned}&P(x_1\mid\text{提示词})=")
    assert chain_latex(made, ZH).endswith(r"p_i\\&=0\\&=e^{-\infty}=0\end{aligned}")
    figures = {f.name: f.value for f in run_figures(made, full(made, 0), EN)}
    assert figures["Total log-probability"] == "−∞"
    assert figures["Perplexity"] == "∞"


@pytest.mark.parametrize("t", [EN, ZH], ids=["en", "zh"])
def test_the_mean_time_says_of_which_steps_it_is(t):
    """The first step reads the whole prompt and is no part of it."""
    made = story()

    def shown(*times: float) -> tuple[str, str]:
        steps = tuple(
            replace(step, forward=replace(step.forward, ms=ms))
            for step, ms in zip(made.steps, times, strict=False)
        )
        figure = run_figures(replace(made, steps=steps), steps[0], t)[-1]
        return figure.value, figure.note

    ms, s = t("generate.milliseconds", n="{}"), t("generate.seconds", n="{}")
    note = t("generate.ms_note", last=3, mean=ms.format(519))
    assert shown(9000, 400, 637.2) == (s.format("9.0"), note)
    note = t("generate.ms_note_one", mean=ms.format(12))
    assert shown(41.63, 12) == (ms.format(41.6), note)
    assert shown(41.63) == (ms.format(41.6), t("generate.ms_first"))


def test_the_figures_of_the_story():
    made = story()
    figures = run_figures(made, full(made, 0), EN)
    values = {f.name: f.value for f in figures}
    assert values["Total log-probability"] == "−2.631"
    assert values["Perplexity"] == "1.93"
    assert values["Steps made"] == "4"
    # H(0.5, 0.4, 0.1) = 1.361 bit
    assert values["Entropy, model"] == "1.36 bit"
    assert [f.note for f in figures if f.name == "Entropy, model"] == [
        "0.943 nat; as unsure as 2.6 equal choices"
    ]
    assert stop_sentence(made, "<end>", EN) == (
        "Stopped: the model chose its end token (<end>), which says that the text is finished."
    )
    assert stop_sentence(story(steps=2), "shines", ZH) == ZH("generate.stop_none")


def test_the_table_of_the_steps():
    table = steps_table(story(), ["sun", "shines", "brightly", "<end>"], EN)
    assert table["p"].tolist() == ["50.0 %", "40.0 %", "45.0 %", "80.0 %"]
    assert table["rank"].tolist() == [1, 1, 1, 1]
    assert table["entropy, model (bit)"].iloc[0] == pytest.approx(1.361)


# --- the chart


def test_the_chart_holds_the_run_and_marks_the_step_in_view():
    made = story()
    figure = per_step(made, ["sun", "sun", "<b>", "$x$"], 2, EN)
    bars = figure.data[0]
    assert list(bars.y) == pytest.approx([0.5, 0.4, 0.45, 0.8])
    assert list(bars.x) == [1, 2, 3, 4]
    assert list(bars.marker.line.width) == [0, 0, 3, 0]
    assert list(figure.layout.xaxis2.ticktext) == ["sun", "sun", "&lt;b&gt;", "&#36;x&#36;"]
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (2.5, 3.5)
    assert figure.data[1].y[0] == pytest.approx(1.361, abs=1e-3)


def test_labels_in_charts_are_no_markup():
    assert plain("<a href='x'>&$") == "&lt;a href='x'&gt;&amp;&#36;"
    assert short("x" * 300) == "x" * 11 + "…"


# --- numbers in words


def test_numbers_in_words():
    assert [percent(p) for p in (0, 5e-5, 0.0042, 0.5, 1)] == [
        "0 %",
        "< 0.01 %",
        "0.42 %",
        "50.0 %",
        "100.0 %",
    ]
    assert [signed(x) for x in (-1.5, 2, -math.inf)] == ["−1.500", "2.000", "−∞"]
    assert scientific(-1000 * math.log(10)) == ("1.00", -1000)
    assert latex_probability(math.log(0.77)) == "0.770"
    assert latex_probability(math.log(0.05)) == "0.050"
    assert latex_probability(math.log(4.4e-6)) == r"4.40\times 10^{-6}"


@pytest.mark.parametrize(
    ("u", "low", "high", "digits"),
    [(0.41, 0.0, 0.9, 3), (0.0004, 0.0, 0.9, 4), (0.50004, 0.5, 0.9, 5), (0.89996, 0.5, 0.9, 5)],
)
def test_digits_keep_u_between_the_ends(u, low, high, digits):
    assert digits_for(u, low, high) == digits


def test_numbers_in_the_laboratory():
    assert [two_digits(x) for x in (1527.4, 84, 1.34, 0.072)] == ["1,527", "84", "1.3", "0.072"]
    assert [whole_percent(p) for p in (0.566, 1.0, 0.0)] == ["57 %", "100 %", "0 %"]
    assert real_minus("-2.875") == "−2.875"
