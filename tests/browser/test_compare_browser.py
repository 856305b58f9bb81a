"""Strategies side by side in a real browser, on the toy's story."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_accessibility_browser import AXE, GRAVE, RUN
from tools.browser import sideways

TOY = "/Compare?model=toy&prompt=tell+me&p=off&lang=en"
FOUR = "&columns=greedy%0Abeam%0Asample%2Ctop_k%3D1%0Asample&ref=3"


@pytest.fixture
def open_page(page, ready):
    def go(address: str):
        page.goto(address)
        expect(page.locator(".st-key-compare_figures table")).to_be_visible(timeout=45_000)
        ready(page)
        return page

    return go


def row(page, letter: str):
    return page.locator(".st-key-columns tr.line").filter(
        has=page.locator(f"b.letter:text-is('{letter}')")
    )


def step_title(page, text: str):
    expect(page.locator(".st-key-columns .panel .head")).to_have_text(text)


def test_tokens_are_pointed_at_and_walked_over(open_page, ready):
    page = open_page(TOY + FOUR)
    expect(row(page, "C").locator(".cell .label")).to_have_text(
        ["sun", "shines", "brightly", "<end>"]
    )
    expect(row(page, "C").locator(".cell.first")).to_have_text(re.compile("shines"))
    why = page.locator(".st-key-columns tr.reason").nth(2)
    expect(why).to_contain_text("top-k = 1 removed rises, which the dice had picked in D")
    step_title(page, "Step 1, side by side")  # where the first of all parts
    row(page, "A").locator(".cell").nth(2).hover()
    step_title(page, "Step 3, side by side")
    line = page.locator(".st-key-columns .step tr.on")
    expect(line).to_contain_text("brightly")
    expect(line).to_contain_text("45.0 %")
    row(page, "A").locator(".cell").nth(2).focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".cell:focus")).to_have_text(re.compile("brightly"))
    page.keyboard.press("Home")
    expect(page.locator(".cell:focus")).to_have_text(re.compile("moon"))
    step_title(page, "Step 1, side by side")
    expect(page.locator(".readout")).to_have_text(re.compile("^step 1 of"))  # not the player's keys
    expect(page.locator(".st-key-columns .cell[tabindex='0']")).to_have_count(1)


def test_texts_in_full_and_another_sample(open_page, ready):
    page = open_page(TOY + FOUR + "&samples=4")
    page.get_by_role("button", name="Plain texts").click()
    expect(page.locator(".texts").nth(0).locator(".plain")).to_have_text(
        [re.compile("sun shines brightly")]
    )
    expect(page.locator(".texts").nth(3).locator("li")).to_have_count(4)
    page.get_by_role("button", name="Show text 3 in the rows").last.click()
    ready(page)
    expect(page).to_have_url(re.compile(r"text=2"))
    expect(page.locator(".texts").nth(3).locator("li.on .pick")).to_have_text("3")


def test_a_figure_explains_itself(open_page):
    page = open_page(TOY)
    term = page.get_by_role("button", name="Perplexity")
    term.click()
    expect(page.locator(".meaning")).to_contain_text("exp(−Σ ln p ÷ tokens)")
    expect(term).to_have_attribute("aria-expanded", "true")
    term.click()
    expect(page.locator(".meaning")).to_have_count(0)
    with page.expect_download(timeout=20_000) as download:
        page.get_by_role("button", name="Everything as JSON").click()
    whole = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert whole["strategies"] == ["greedy", "beam", "sample,top_p=0.9", "sample"]
    assert whole["columns"][1]["texts"][0]["text"].strip() == "moon shines brightly"


def test_a_text_goes_on_the_generate_page(open_page, ready):
    page = open_page(TOY + FOUR)
    row(page, "B").locator(".cell").nth(1).click()
    page.get_by_role("button", name="Open B on the Generate page, at this step").click()
    expect(page).to_have_url(re.compile("/Generate"), timeout=20_000)
    expect(page.locator(".st-key-candidates")).to_be_visible(timeout=20_000)
    ready(page)
    expect(page.locator("button.chip .label")).to_have_text(["moon", "shines", "brightly", "<end>"])
    expect(page.locator(".readout")).to_have_text(re.compile("^step 2 of"))


def test_a_long_comparison_is_asked_for_and_stopped(page, ready):
    page.goto(
        "/Compare?model=tiny&prompt=a+b+c&p=off&lang=en&max=400&samples=100"
        "&columns=sample%0Asample%2Ctop_p%3D0.9%0Agreedy"
    )
    run = page.get_by_role("button", name="Run the comparison")
    run.click(timeout=90_000)  # the tiny model is made first
    expect(page.locator(".st-key-columns .cell").first).to_be_visible(timeout=30_000)
    page.get_by_role("button", name="Stop", exact=True).last.click()
    expect(page.get_by_text("You stopped here:")).to_be_visible(timeout=20_000)
    expect(page.locator(".st-key-columns .cell").first).to_be_visible()
    ready(page)
    made = page.locator(".st-key-columns .cell").count()
    page.wait_for_timeout(1000)
    assert page.locator(".st-key-columns .cell").count() == made


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_phone_shows_it_all_and_nothing_hostile_runs(page, open_page, lang):
    page.set_viewport_size({"width": 390, "height": 844})
    evil = "%3Cimg+src%3Dx+onerror%3Dwindow.hacked%3D1%3E%D9%85%D8%B1%D8%AD%D8%A8%D8%A7"
    open_page(TOY.replace("lang=en", f"lang={lang}") + f"&columns=greedy%0A{evil}%0Asample")
    assert sideways(page) == []
    expect(page.locator(".st-key-columns .root")).to_have_attribute("data-flow", "true")
    expect(row(page, "B").locator(".what")).to_contain_text("<img src=x")
    assert page.evaluate("window.hacked") is None
    page.locator(".switch").first.click()
    expect(page.locator(".st-key-columns .root")).to_have_attribute("data-flow", "false")
    assert sideways(page) == []


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing_grave(lent, ready, theme, width):
    context = lent(color_scheme=theme, bypass_csp=True, reduced_motion="reduce")
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(TOY + FOUR + "&samples=3")
    expect(page.locator(".st-key-compare_figures table")).to_be_visible(timeout=45_000)
    page.get_by_role("button", name="Perplexity").click()
    ready(page)
    page.add_script_tag(content=AXE)
    assert [text for impact, text in page.evaluate(RUN) if impact in GRAVE] == []
