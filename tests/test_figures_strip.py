"""The strip's data: which tokens share a chip, and what is said of each step."""

from dataclasses import replace

import pytest

from core.decode.generate import run
from core.engine.toy import ToyEngine, default_table, toy_from_numbers
from core.settings import RunSpec, Settings
from core.trace import Token
from ui.figures.strip import groups, strip_data, whole
from ui.i18n import catalog


def token(position: int, data: bytes, group: tuple[int, int], label: str) -> Token:
    return Token(
        id=position + 100,
        position=position,
        text=data.decode(errors="ignore"),
        label=label,
        piece=label,
        bytes=data,
        special=False,
        source="prompt",
        group=group,
        span=(0, 1),
    )


COUNTRY = "国".encode()
PARTS = (
    token(0, b"a", (0, 1), "a"),
    token(1, b" " + COUNTRY[:1], (1, 3), "␣‹E5›"),
    token(2, COUNTRY[1:], (1, 3), "‹9B BD›"),
    token(3, b"b", (3, 4), "b"),
)


def shown(settings: Settings, view: int, lang: str = "en", prompt: str = "a") -> dict:
    engine = ToyEngine(default_table())
    made = run(engine, RunSpec("toy", prompt, settings), steps=3)
    tokens = engine.vocabulary.tokens(made.ids, len(made.prompt))
    return strip_data(made, tokens, view, catalog(lang))


def test_tokens_of_one_character_share_a_chip():
    assert [len(group) for group in groups(PARTS)] == [1, 2, 1]
    assert [whole(group) for group in groups(PARTS)] == ["a", "␣国", "b"]
    assert groups(()) == []


def test_a_character_that_stays_unfinished_shows_its_bytes():
    half = (replace(PARTS[1], group=(1, 3)), replace(PARTS[2], bytes=COUNTRY[1:2]))
    assert whole(half) == "␣‹E5 9B›"


def test_a_greedy_run_of_the_toy():
    data = shown(Settings(strategy="greedy", max_new=9), view=1)
    assert [chip["label"] for chip in data["chips"]] == ["a", "sun", "shines", "brightly"]
    assert data["chips"][0]["steps"] == []
    assert [chip["steps"][0]["index"] for chip in data["chips"][1:]] == [0, 1, 2]
    probabilities = [chip["steps"][0]["p"] for chip in data["chips"][1:]]
    assert probabilities == pytest.approx([0.5, 0.4, 0.45])
    assert data["steps"] == ["sun", "shines", "brightly"]
    assert {k: data[k] for k in ("view", "made", "limit", "stop", "prompt")} == {
        "view": 1,
        "made": 3,
        "limit": 9,
        "stop": None,
        "prompt": 1,
    }


def test_a_forced_token_and_the_end_are_marked():
    data = shown(Settings(strategy="greedy", forced=((1, 7),)), view=1)
    assert [chip["label"] for chip in data["chips"]] == ["a", "sun", "<end>"]
    end = data["chips"][2]
    assert end["special"]
    assert end["steps"][0]["rule"] == "forced"
    assert end["steps"][0]["p"] == pytest.approx(0.2)
    assert data["stop"] == "end_token"


def test_the_run_s_name_follows_prompt_and_not_settings():
    plain = shown(Settings(), view=0)
    assert plain["run"] == shown(Settings(seed=5, top_k=2), view=1)["run"]
    assert plain["run"] != shown(Settings(), view=0, prompt="b")["run"]


@pytest.mark.parametrize(("lang", "html"), [("en", "en"), ("zh", "zh-Hans")])
def test_the_words_come_along(lang, html):
    data = shown(Settings(), view=0, lang=lang)
    assert data["lang"] == html
    assert data["strings"]["step"] == {"en": "Step", "zh": "下一步"}[lang]


def test_a_hostile_label_is_passed_on_as_it_is():
    engine = ToyEngine(toy_from_numbers(probabilities=[0.6, 0.4], labels=["<b>x</b>", "${y}"]))
    made = run(engine, RunSpec("toy", "<i>", Settings(strategy="greedy")), steps=1)
    tokens = engine.vocabulary.tokens(made.ids, len(made.prompt))
    data = strip_data(made, tokens, 0, catalog("en"))
    assert [chip["label"] for chip in data["chips"]] == ["<i>", "<b>x</b>"]
