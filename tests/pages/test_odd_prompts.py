"""Every page with every odd prompt: it answers, or says in a sentence why not."""

import pytest

from tests.pages.app import healthy, open_app, words
from ui.controls import page_files

PAGES = [None, *(address.removeprefix("pages/")[:-3] for address, _ in page_files())]
ODD = {
    "a family": "👨‍👩‍👧‍👦 ok",
    "Arabic": "مرحبا بالعالم",
    "markup": "<script>alert(1)</script> $x$ **b**",
    "an end token": "a<|im_end|>b",
    "only white space": "\n\t ",
    "one long word": "x" * 300,
}
BROKEN = ("Something went wrong", "Traceback")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("prompt", ODD.values(), ids=ODD)
def test_it_is_read(page, prompt):
    at = open_app(page, model="tiny", prompt=prompt)
    assert [error.value for error in at.error] == []
    assert not any(broken in words(at) for broken in BROKEN)
    assert at.session_state["place"].spec.prompt == prompt


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_typed(page):
    (error,) = open_app(page, model="tiny", prompt="").error
    assert error.value.startswith("The prompt is empty; type at least one character")


@pytest.mark.parametrize("page", PAGES)
def test_ten_thousand_characters_are_typed(page):
    at = open_app(page, model="tiny", prompt="x")
    typed = at.text_area(key="w_prompt").set_value("abcde " * 1667)
    (error,) = healthy(typed.run()).error
    assert "tiny reads at most 511 here; shorten the text." in error.value
    healthy(at.text_area(key="w_prompt").set_value("short").run())
    assert not at.error


@pytest.mark.parametrize("page", PAGES)
def test_two_readers_do_not_meet(page):
    """Each keeps a text, a seed and a language, whatever the other does in between."""
    here = open_app(page, model="tiny", prompt="one", seed="3", lang="en")
    there = open_app(page, model="tiny", prompt="two", seed="5", lang="zh")
    healthy(there.text_input(key="w_seed").set_value("9").run())
    healthy(here.run())
    for at, prompt, seed, lang in ((here, "one", 3, "en"), (there, "two", 9, "zh")):
        place = at.session_state["place"]
        assert (place.spec.prompt, place.spec.settings.seed) == (prompt, seed)
        assert place.view.lang == lang
        assert at.text_area(key="w_prompt").value == prompt
