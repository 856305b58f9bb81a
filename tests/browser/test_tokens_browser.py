"""The Tokens page in a real browser: choosing, playing merges, hostile text, narrow screens."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tools.browser import sideways


@pytest.fixture
def open_page(page, ready):
    def go(prompt: str, more: str = "lang=en"):
        page.goto(f"/Tokens?model=tiny&prompt={quote(prompt)}&{more}")
        ready(page)
        expect(page.locator(".st-key-readings .reading").first).to_be_visible(timeout=120_000)
        return page

    return go


def token(page, position: int):
    return page.locator(f".st-key-tokens .flow [data-position='{position}']")


def symbols(page) -> list[str]:
    return page.locator(".st-key-merges .symbol .label").all_text_contents()


def card(page):
    return page.locator(".st-key-tokens .card")


def test_a_click_chooses_a_token_everywhere(open_page):
    page = open_page("in the 法")
    token(page, 1).click()
    expect(card(page).locator(".big")).to_have_text("␣the")
    expect(card(page)).to_contain_text("Ġthe")
    expect(card(page).locator(".byte")).to_have_text(["20", "74", "68", "65"])
    expect(page).to_have_url(re.compile("at=1"), timeout=20_000)
    expect(page.locator(".st-key-merges .chosen")).to_have_text("␣the", timeout=20_000)
    # a part of a character names the others, and leads to them
    token(page, 3).click()
    expect(card(page)).to_contain_text("part 1 of 2 of 法")
    expect(card(page).locator(".byte.mine")).to_have_text(["E6", "B3"])
    card(page).locator(".jump").nth(1).click()
    expect(card(page).locator(".where")).to_have_text("position 4")
    expect(token(page, 4)).to_have_attribute("aria-pressed", "true")
    expect(page).to_have_url(re.compile("at=4"), timeout=20_000)
    # and a word leads to its first token
    page.locator(".st-key-merges button.word", has_text="in").first.click()
    expect(card(page).locator(".big")).to_have_text("in", timeout=20_000)
    expect(page).to_have_url(re.compile("at=0"), timeout=20_000)


def test_the_keyboard_walks_and_chooses(open_page):
    page = open_page("in the of", "lang=en&at=0")
    token(page, 0).focus()
    page.keyboard.press("ArrowDown")
    expect(token(page, 1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(card(page).locator(".big")).to_have_text("␣the")
    page.keyboard.press("End")
    page.keyboard.press(" ")
    expect(card(page).locator(".where")).to_have_text(re.compile(r"position \d+"))
    expect(page.locator(".st-key-strip .readout")).to_have_text(re.compile("^step 1 of"))


def test_the_merges_are_played_forward_and_back(open_page):
    page = open_page("in the", "lang=en&at=1")
    merges = page.locator(".st-key-merges")
    assert symbols(page) == ["␣", "t", "h", "e"]
    expect(merges.locator(".link")).to_have_text(["2", "0", "·"])
    expect(merges.locator(".link.wins")).to_have_text(["0"])
    expect(merges.locator("tr.wins")).to_contain_text("wins")
    merges.locator(".control.next").click()
    assert symbols(page) == ["␣", "th", "e"]
    expect(merges.locator(".symbol.fresh .label")).to_have_text("th")
    merges.locator(".control.next").click()
    merges.locator(".control.next").click()
    assert symbols(page) == ["␣the"]
    expect(merges.locator(".said")).to_contain_text("exactly the tokenizer's own result")
    expect(merges.locator(".control.next")).to_be_disabled()
    merges.locator(".control.back").click()
    assert symbols(page) == ["␣", "the"]
    merges.locator(".log button").first.click()
    assert symbols(page) == ["␣", "t", "h", "e"]
    merges.locator("input[type=range]").press("End")
    assert symbols(page) == ["␣the"]
    merges.locator(".control.start").click()
    merges.locator(".control.play").click()
    expect(merges.locator(".readout")).to_have_text("merge 3 of 3", timeout=8_000)
    expect(merges.locator(".control.play")).to_have_attribute("aria-pressed", "false")
    assert symbols(page) == ["␣the"]


def test_hostile_text_is_text_and_fits_a_phone(open_page, page):
    page.set_viewport_size({"width": 390, "height": 900})
    prompt = (
        "<b>x</b> $y$ \n"
        + "q" * 300
        + " مرحبا 👨\u200d👩\u200d👧\u200d👦 <img src=x onerror=alert(1)>"
    )
    open_page(prompt, "lang=zh&at=0")
    assert sideways(page) == []
    root = page.locator(".st-key-tokens .root")
    expect(root).to_have_attribute("lang", "zh-Hans")
    assert root.locator("img, b:not(.number)").count() == 0
    expect(token(page, 0)).to_contain_text("<")
    # right-to-left letters keep the order of the tokens
    places = root.locator(".flow [data-position]").evaluate_all(
        "nodes => nodes.map(n => Number(n.dataset.position))"
    )
    assert places == sorted(places)
    family = root.locator(".together .whole", has_text="👨\u200d👩\u200d👧\u200d👦")
    expect(family).to_have_count(1)
    expect(page.locator(".st-key-readings .reading")).not_to_have_count(0)


def test_every_language_of_the_price_chart_is_named_on_a_phone(open_page, page):
    page.set_viewport_size({"width": 390, "height": 900})
    open_page("the")
    names = page.locator("[data-testid=stPlotlyChart] .xtick text")
    expect(names).to_have_count(10, timeout=60_000)
    expect(names.last).to_have_text("Kiswahili")
    for place in range(10):
        expect(names.nth(place)).to_be_visible()
