"""Penalties, forbidden tokens and typical-p wherever a step's stages are shown."""

import json

import numpy as np
import pytest

from core.decode import choose
from core.decode.past import Past
from core.decode.rules import Rules
from core.engine.toy import ToyEngine, parse_table
from core.settings import Settings
from core.trace import StepTrace
from ui.figures.candidates import candidates_data
from ui.figures.journey_choice import SEGMENTS, candidate_list, dice, filters
from ui.figures.stage_names import LONGEST, shortened, stage_value
from ui.i18n import catalog

EN, ZH = catalog("en"), catalog("zh")
WORDS = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def engine():
    return ToyEngine(parse_table({"vocab": list(WORDS), "next": {"*": [0.5, 0.3, 0.15, 0.05]}}))


def step(engine, settings, text=(0, 1, 0), rules=None) -> StepTrace:
    """A step of a run whose prompt is the first token of ``text``."""
    forward = engine.forward(text)
    past = Past(tuple(text), 1)
    choice = choose(forward.logits, settings, step=len(text) - 1, past=past, rules=rules)
    return StepTrace(len(text) - 1, forward, choice)


def test_a_value_is_said_in_a_few_letters():
    assert stage_value(None, "off") == "off"
    assert stage_value(0.9, "off") == "0.9"
    assert stage_value(50, "off") == "50"
    assert stage_value("foo\nbar", "off") == "foo · bar"
    assert len(stage_value("x" * 400, "off")) == LONGEST
    assert shortened("x" * LONGEST) == "x" * LONGEST
    assert shortened("x" * 30).endswith("x…")


def test_home_shows_the_stages_in_the_order_applied(engine):
    settings = Settings(
        repetition_penalty=2, banned=("d", "c"), typical_p=0.9, order=("typical_p",)
    )
    shown = step(engine, settings, rules=Rules(banned=((3,), (2,))))
    found = filters(shown.choice)
    assert [(f["name"], f["parameter"]) for f in found[:3]] == [
        ("repetition_penalty", 2.0), ("banned", "d · c"), ("typical_p", 0.9),
    ]  # fmt: skip
    assert [f["survivors"] for f in found[:2]] == [4, 2]
    assert json.loads(json.dumps(found)) == found
    removed = {c["label"]: c["removed"] for c in candidate_list(shown, str)["candidates"]}
    assert (removed["2"], removed["3"]) == ("banned", "banned")


def test_home_draws_the_bar_in_the_order_after_the_penalties(engine):
    # ln 0.5 = -0.69 and ln 0.3 = -1.2 are multiplied by 3, so c is now first: 0.15, 0.125, …
    shown = step(engine, Settings(repetition_penalty=3), text=(0, 1))
    drawn = dice(shown, WORDS.__getitem__)
    assert [s["label"] for s in drawn["segments"]] == ["c", "a", "d", "b"]
    weights = np.array([0.15, 0.5**3, 0.05, 0.3**3])
    edges = np.cumsum(weights) / weights.sum()
    assert [s["to"] for s in drawn["segments"]] == pytest.approx(edges, abs=1e-6)
    assert drawn["rest"] == {"count": 0, "from": pytest.approx(1)}
    chosen = WORDS[shown.choice.id]
    here = next(s for s in drawn["segments"] if s["label"] == chosen)
    assert drawn["chosen"] == pytest.approx((here["from"], here["to"]))
    assert drawn["chosen"][0] <= shown.choice.u < drawn["chosen"][1]


def test_home_tells_what_the_dice_would_have_taken_instead_of_a_forbidden_token(engine):
    settings = Settings(no_repeat_ngram=1, forced=((1, 0),))
    shown = step(engine, settings, text=(0, 1))
    drawn = dice(shown, WORDS.__getitem__)
    assert drawn["would"] in ("c", "d")
    assert drawn["chosen"] is None
    assert len(drawn["segments"]) <= SEGMENTS


@pytest.mark.parametrize("t", [EN, ZH])
def test_generate_names_every_stage_and_who_removed_a_token(engine, t):
    settings = Settings(
        no_repeat_ngram=2, presence_penalty=0.5, frequency_penalty=0.5, typical_p=0.5
    )
    shown = step(engine, settings)
    data = candidates_data(shown, settings, engine.vocabulary, t)
    names = [stage["name"] for stage in data["stages"]]
    assert names == [
        "presence_penalty", "frequency_penalty", "no_repeat_ngram",
        "temperature", "top_k", "top_p", "min_p", "typical_p",
    ]  # fmt: skip
    assert [s["label"] for s in data["stages"]] == [t(f"generate.stage_{n}") for n in names]
    assert data["stages"][2]["value"] == "2"
    assert [s["on"] for s in data["stages"]] == [True] * 3 + [False] * 4 + [True]
    # The text is a b a: b would complete "a b" a second time.
    assert {row["label"]: row["removed"] for row in data["rows"]}["b"] == "no_repeat_ngram"
    assert json.loads(json.dumps(data)) == data
