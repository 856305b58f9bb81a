"""Dice, draws and branches as data; why a draw did not fall on the favourite."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from core.decode.choose import choose
from core.decode.draw import uniform
from core.decode.draws import chi_square, draws
from core.decode.generate import run
from core.decode.past import Past
from core.decode.rules import rules_for
from core.engine.toy import ToyEngine, default_table, toy_from_numbers
from core.faults import Fault
from core.settings import MAX_SEED, RunSpec, Settings
from core.trace import StepTrace
from ui.branches import BRANCHES_CAP, LINK_CAP, Branch, fitting, from_link, keep, read, spell
from ui.branches_file import opened, written
from ui.figures.branches import (
    Path,
    Taken,
    branches_data,
    branches_table,
    lanes,
    parts,
    tokens_of,
    tree,
)
from ui.figures.chance import draws_alt, draws_chart, draws_table, rows, verdict
from ui.figures.dice import dice_data, rolls_text
from ui.figures.drawbar import question, why
from ui.i18n import bound, catalog

EN, ZH = catalog("en"), catalog("zh")
LABELS = ("a", "b", "c", "d")
TYPED = (0.5, 0.3, 0.15, 0.05)


def toy(p=TYPED, labels=LABELS) -> ToyEngine:
    return ToyEngine(toy_from_numbers(probabilities=p, labels=labels))


def step_of(settings: Settings, text=(0,), prompt=1, p=TYPED) -> StepTrace:
    """The step after ``text``, of which the first ``prompt`` tokens are the prompt."""
    engine = toy(p)
    forward = engine.forward(list(text))
    past = Past(tuple(text), prompt)
    rules = rules_for(settings, engine.vocabulary)
    choice = choose(forward.logits, settings, step=len(text) - prompt, past=past, rules=rules)
    return StepTrace(len(text) - prompt, forward, choice)


def said(settings: Settings, t=EN, **kw) -> str:
    greedy = settings.strategy == "greedy"
    return why(step_of(settings, **kw), LABELS.__getitem__, t, greedy=greedy)


# --- why not the favourite


def seed_for(low: float, high: float, step: int = 0) -> int:
    return next(seed for seed in range(10_000) if low < uniform(seed, step) < high)


def test_a_draw_behind_the_favourite_answers_why_not():
    text = said(Settings(seed=seed_for(0.6, 0.7)))
    assert text.startswith(bound("Why not the top token, “a” (50.0 %)? u = 0.6"))
    assert "“a” covers 0.000 … 0.500, “b” covers 0.500 … 0.800: so the draw fell on “b”." in text
    assert said(Settings(seed=seed_for(0.1, 0.4))).startswith("u = 0.")


def test_tokens_between_are_counted():
    text = said(Settings(seed=seed_for(0.85, 0.9)), ZH)
    assert text.startswith(bound("为什么不是第一名“a”（50.0 %）？u = 0.8"))
    assert text.endswith(
        bound("“a”占 0.000 … 0.500，接着是 1 个词元，“c”占 0.800 … 0.950，所以抽中了“c”。")
    )


def test_a_penalty_that_lowered_the_favourite_is_named():
    # a was generated: the scores ln p of a and d are doubled, so 0.25 : 0.3 : 0.15 : 0.0025 remain.
    settings = Settings(repetition_penalty=2.0, seed=seed_for(0.05, 0.35, 1))
    text = said(settings, text=(3, 0), prompt=1)
    assert text.startswith(
        bound(
            "Why not the top token, “a” (50.0 %)? "
            "The repetition penalty lowered it from 50.0 % to 35.6 %. u = 0."
        )
    )
    assert text.endswith("so the draw fell on “b”.")
    greedy = said(replace(settings, strategy="greedy"), text=(3, 0), prompt=1)
    assert greedy == bound(
        "Why not the top token, “a” (50.0 %)? "
        "The repetition penalty lowered it from 50.0 % to 35.6 %. "
        "Greedy takes the highest score (logit): “b” with −1.20; next is “a” with −1.39. "
        "No dice are thrown."
    )


def test_a_stage_that_removed_the_favourite_is_named():
    # b has 0.30 and surprise 1.204, closest to the entropy 1.142; p = 0.2 keeps it alone.
    text = said(Settings(typical_p=0.2, seed=3))
    assert text.startswith(
        bound(
            "Why not the top token, “a” (50.0 %)? The stage “typical-p” removed it. "
            "The filters left only “b”"
        )
    )
    banned = said(Settings(banned=("a",), seed=seed_for(0.1, 0.5)))
    assert "The stage “banned texts” removed it. u = 0." in banned
    both = said(Settings(repetition_penalty=2.0, top_k=1, seed=1), text=(3, 0), prompt=1)
    assert bound("lowered it from 50.0 % to 35.6 %. The stage “top-k” removed it.") in both


def test_the_question_stands_in_bold_once():
    label = LABELS.__getitem__
    first = step_of(Settings(seed=seed_for(0.1, 0.4)))
    other = step_of(Settings(seed=seed_for(0.6, 0.7)))
    forced = step_of(Settings(forced=((0, 3),)))
    assert question(first, label, EN) == question(forced, label, EN) == "Why this token?"
    assert question(other, label, EN) == bound("Why not the top token, “a” (50.0 %)?")
    assert why(other, label, EN, greedy=False).startswith(question(other, label, EN))


# --- the dice


def test_the_dice_tell_every_throw_and_the_exact_seed():
    settings = Settings(seed=MAX_SEED, rolls=((0, 2),))
    found = dice_data(step_of(settings).choice, settings, 0)
    assert found["seed"] == found["most"] == "9223372036854775807"
    assert found["u"] == uniform(MAX_SEED, 0, 2)
    assert found["before"] == [uniform(MAX_SEED, 0), uniform(MAX_SEED, 0, 1)]
    text = rolls_text(found, EN)
    assert text == (
        f"thrown again 2 times: u {uniform(MAX_SEED, 0):.3f} → {uniform(MAX_SEED, 0, 1):.3f} "
        f"→ {uniform(MAX_SEED, 0, 2):.3f}"
    )
    often = Settings(rolls=((0, 2000),))
    many = dice_data(step_of(often).choice, often, 0)
    assert len(many["before"]) == 8
    assert rolls_text(many, ZH).startswith(bound("重掷了 2,000 次：u … → "))
    plain = dice_data(step_of(Settings()).choice, Settings(), 0)
    assert rolls_text(plain, EN) == f"u = {plain['u']:.3f}"
    greedy = Settings(strategy="greedy")
    assert dice_data(step_of(greedy).choice, greedy, 0)["u"] is None


# --- many draws


def made_of(p, count=1000, **settings):
    with np.errstate(divide="ignore"):
        choice = choose(np.log(np.array(p)), Settings(**settings), step=0)
    return draws(choice, seed=0, step=0, count=count)


def test_the_histogram_has_a_bar_for_each_token_and_one_for_the_rest():
    made = made_of(TYPED, top_k=3)
    found = rows(made, LABELS.__getitem__, EN)
    assert [(row.id, row.label) for row in found] == [(0, "a"), (1, "b"), (2, "c")]
    assert [row.p for row in found] == pytest.approx([10 / 19, 6 / 19, 3 / 19])
    assert sum(row.count for row in found) == 1000
    many = made_of(np.full(40, 1 / 40))
    lumped = rows(many, str, EN)
    assert len(lumped) == 13
    assert (lumped[-1].label, lumped[-1].tokens) == ("28 others", 28)
    assert sum(row.count for row in lumped) == 1000
    assert sum(row.p for row in lumped) == pytest.approx(1)
    assert lumped[-1].spread == pytest.approx(math.sqrt(1000 * 0.7 * 0.3))


def test_the_chart_of_the_draws_is_no_markup():
    made = made_of((0.6, 0.4))
    figure = draws_chart(made, ("<b>", "$x$").__getitem__, EN)
    assert list(figure.data[0].x) == made.counts.tolist()
    assert list(figure.data[1].x) == pytest.approx([600, 400])
    assert list(figure.data[1].error_x.array) == pytest.approx([2 * math.sqrt(240)] * 2)
    assert list(figure.layout.yaxis.ticktext) == ["&lt;b&gt;", "&#36;x&#36;"]
    assert "<b>" not in json.dumps(figure.to_plotly_json()["data"][0]["customdata"])


def test_the_table_and_the_sentence_of_the_draws():
    made = made_of(TYPED, 10_000)
    table = draws_table(made, LABELS.__getitem__, EN)
    assert table["token"].tolist() == list(LABELS)
    assert table["drawn"].tolist() == made.counts.tolist()
    assert table["expected"].tolist() == [5000, 3000, 1500, 500]
    off = (made.counts[0] - 5000) / 50
    assert table["off by (σ)"].iloc[0] == pytest.approx(off, abs=0.01)
    assert draws_alt(made, LABELS.__getitem__, EN) == (
        "10,000 draws, bars against the exact distribution: "
        f"“a” {made.counts[0]:,} times, 5,000.0 expected, "
        f"“b” {made.counts[1]:,} times, 3,000.0 expected, "
        f"“c” {made.counts[2]:,} times, 1,500.0 expected."
    )


def test_the_verdict_does_not_overrate_a_small_p():
    made = made_of((0.6, 0.34, 0.03, 0.03), 100)
    test = chi_square(made.counts, made.probabilities)
    assert "rare tokens share one cell" in verdict(made, test, EN)
    assert "nothing unusual" in verdict(made, replace(test, p=0.5), EN)
    assert "once in twenty times" in verdict(made, replace(test, p=0.01), EN)
    assert "二十次" in verdict(made, replace(test, p=0.01), ZH)
    assert "< 0.0001" in verdict(made, replace(test, p=1e-9), EN)
    single = made_of((1.0, 0.0))
    assert verdict(single, chi_square(single.counts, single.probabilities), EN) == EN(
        "generate.chi_single"
    )


# --- branches


def path(name, ids, *, index=0, current=False, **kw) -> Path:
    tokens = tuple(Taken(i, f"t{i}", 0.5, 0.6, 1, "sample", 0.1) for i in ids)
    logprob = len(tokens) * math.log(0.5)
    text = " ".join(map(str, ids))
    return Path(index, name, current, tokens, text, logprob, None, **kw)


PATHS = [
    path("A", [1, 2, 3, 4], index=0),
    path("B", [1, 2, 9], index=1),
    path("C", [1, 2, 9, 8, 7], index=2),
    path("", [1, 5, 6], index=None, current=True),
    path("E", [0], index=3),
    path("F", [1, 5], index=4),
]


def test_each_path_hangs_on_the_one_with_which_it_shares_most():
    found = [(lane.path.name, lane.parent, lane.start) for lane in lanes(PATHS)]
    assert found == [("", None, 0), ("A", 0, 1), ("B", 1, 2), ("C", 2, 3), ("E", 0, 0), ("F", 0, 2)]


def test_the_tree_cuts_a_path_where_another_parts_from_it():
    columns, rows_ = tree(PATHS)
    assert columns == [
        {"step": 1, "weight": 1},
        {"step": 2, "weight": 1},
        {"step": 3, "weight": 1},
        {"step": 4, "weight": 2},
    ]
    spans = [[(c["from"], c["to"], c["first"] + c["rest"]) for c in row["cells"]] for row in rows_]
    assert spans == [
        [(0, 1, "t1"), (1, 2, "t5"), (2, 3, "t6")],
        [(1, 2, "t2"), (2, 4, "t3t4")],
        [(2, 3, "t9")],
        [(3, 4, "t8t7")],
        [(0, 1, "t0")],
        [],
    ]
    assert [row["column"] for row in rows_] == [0, 1, 2, 3, 0, 2]


def test_where_a_path_parts_from_the_one_in_view():
    current = PATHS[3]
    assert [parts(p, current) for p in PATHS] == [1, 1, 1, None, 0, 2]
    table = branches_table(PATHS, EN)
    assert table["branch"].tolist() == ["A", "B", "C", "this run", "E", "F"]
    assert table["parts at step"].tolist() == [2, 2, 2, pd.NA, 1, 3]
    assert table["Σ ln p"].iloc[0] == pytest.approx(4 * math.log(0.5))


def test_the_component_gets_plain_data():
    broken = Path(5, "<i>", current=False, fault="No.", comparable=False)
    data = branches_data([*PATHS, broken], "␣prompt", 2, ZH)
    json.dumps(data, allow_nan=False)
    assert data["paths"][0]["logprob"] == "−2.773"
    assert data["paths"][-1]["fault"] == "No."
    assert data["lanes"][-1]["cells"] == []
    forced = replace(PATHS[0], tokens=(replace(PATHS[0].tokens[0], rule="forced"),))
    rolled = replace(PATHS[3], rolls=((0, 2),))
    cells = [lane["cells"][0]["how"] for lane in tree([rolled, forced])[1] if lane["cells"]]
    assert cells == ["rolled"]
    assert (
        tree([replace(rolled, current=False), replace(forced, current=True)])[1][0]["cells"][0][
            "how"
        ]
        == "forced"
    )


def test_branches_are_spelled_and_what_is_none_is_left_out():
    branch = Branch("London; the\n2nd", ((2, 345), (4, 12)), ((3, 1),), 7, 5)
    assert spell(branch) == "5;7;2:345+4:12;3:1;London; the 2nd"
    assert read([spell(branch), "", "x", "1;2;3", "0;0;;;x", "5;-1;;;", "5;0;a:b;;"]) == (branch,)
    with pytest.raises(ValueError, match="unpack"):
        from_link("5;0;;;A\nno branch")


def test_a_link_takes_the_newest_branches_that_fit():
    lines: tuple[str, ...] = ()
    for n in range(BRANCHES_CAP):
        pairs = tuple((step, 40_000 + n) for step in range(20))
        lines = keep(lines, Branch("", pairs, (), 0, 24))
    assert len(lines) == BRANCHES_CAP
    kept = fitting(lines)
    assert 0 < len(kept) < BRANCHES_CAP
    assert kept == lines[-len(kept) :]
    assert sum(map(len, kept)) <= LINK_CAP
    huge = keep(lines, Branch("", tuple((step, 9) for step in range(200)), (), 0, 24))
    assert fitting(huge) == kept
    assert from_link("\n".join(kept)) == kept


# --- the file


SPEC = RunSpec("toy", "tell me", Settings(strategy="sample", seed=3))


def walked(branch: Branch, index, current=False) -> Path:
    engine = ToyEngine(default_table())
    spec = replace(SPEC, settings=branch.settings(SPEC.settings))
    made = run(engine, spec, steps=branch.made)
    return Path(
        index,
        branch.name,
        current,
        tokens_of(made, engine.vocabulary.label),
        engine.vocabulary.text([s.choice.id for s in made.steps]),
        made.logprob,
        made.stop,
        branch.rolls,
    )


def test_the_file_holds_every_branch_and_gives_it_back():
    branches = [Branch("", (), (), 3, 2), Branch("moon", ((0, 1),), ((1, 1),), MAX_SEED, 3)]
    paths = [walked(branches[0], None, current=True), walked(branches[1], 0)]
    blob = written(SPEC, paths, branches)
    content = json.loads(blob)
    assert content["branches"][1]["forced"] == [[0, 1]]
    assert content["branches"][1]["steps"][0]["rule"] == "forced"
    assert content["branches"][1]["logprob"] == pytest.approx(paths[1].logprob)
    assert content["branches"][0]["in_view"] is True
    assert opened(blob, SPEC) == tuple(branches)
    with pytest.raises(Fault) as caught:
        opened(blob, replace(SPEC, prompt="another"))
    assert caught.value.code == "branches_other_text"


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\xff\x00",
        b"[]",
        b"{}",
        b"3",
        b'{"format": "token-by-token branches", "version": 2}',
        b'{"format": "token-by-token branches", "version": 1, "model": "toy"}',
        b"[" * 100_000,
        b" " * 5_000_001,
    ],
)
def test_any_other_file_is_answered_with_a_sentence(blob):
    with pytest.raises(Fault) as caught:
        opened(blob, SPEC)
    assert caught.value.code == "branches_file"


@pytest.mark.parametrize(
    "change",
    [
        {"forced": [[0, -1]]},
        {"forced": [[0]]},
        {"forced": 7},
        {"rolls": [["0", 1]]},
        {"seed": "7"},
        {"seed": True},
        {"made": 10**9},
        {"made": "3"},
        {"name": None},
    ],
)
def test_a_branch_in_a_file_is_checked(change):
    content = json.loads(written(SPEC, [walked(Branch(), None, current=True)], [Branch()]))
    content["branches"][0] |= change
    with pytest.raises(Fault) as caught:
        opened(json.dumps(content).encode(), SPEC)
    assert catalog("en").fault(caught.value)
