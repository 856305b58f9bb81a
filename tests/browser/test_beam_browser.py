"""Beam search in a real browser: the card of a node, the step player, keys, phones, Generate."""

import re

import pytest
from playwright.sync_api import Page, expect

from tools.browser import sideways

CLASSIC = "&model=toy&prompt=once&table=beam_beats_greedy&beams=2&max=3"


def open_page(page: Page, ready, query: str) -> None:
    page.goto(f"/Beam_search?lang=en{query}")
    page.locator(".ranking").wait_for(timeout=60_000)
    ready(page)


def node(page: Page, name: str):
    return page.locator(f'.node[data-key="{name}"]')


def test_a_click_on_a_loser_says_to_whom_it_lost(page, ready):
    open_page(page, ready, CLASSIC)
    card = page.locator("aside.card")
    expect(page.locator(".node")).to_have_count(6)
    # Without a click the card is the winner's.
    expect(card).to_contain_text("Rank 1 in the final ranking")
    page.get_by_role("button", name="+ 2 lost").click()
    expect(page.locator(".node.lost")).to_have_count(2)
    node(page, "1:2").click()
    expect(card).to_contain_text("Lost: “red rose” took the last of the 2 places")
    expect(card).to_contain_text("better by 0.223")
    expect(page).to_have_url(re.compile(r"node=1%3A2|node=1:2"), timeout=30_000)
    # The whole next-token distribution of that text.
    expect(card.locator(".next li").first).to_contain_text("100.0 %", timeout=30_000)
    expect(card.locator(".next li").first).to_contain_text("not looked at")
    card.get_by_role("button", name="Show the winner").click()
    expect(card).to_contain_text("Live", timeout=30_000)
    expect(node(page, "1:1")).to_have_attribute("aria-pressed", "true")
    # Generate has no such table.
    expect(card.get_by_role("button", name="Continue from here")).to_have_attribute(
        "aria-disabled", "true"
    )


def test_step_by_step_and_by_keys_alone(page, ready):
    open_page(page, ready, CLASSIC)
    page.get_by_role("slider", name="Step of the search").press("Home")
    expect(page.locator(".player output:not(.readout)")).to_have_text("Step 1 of 3")
    expect(page.locator(".node")).to_have_count(2)
    page.get_by_role("button", name="Step forward").press("Enter")
    expect(page.locator(".node")).to_have_count(4)
    expect(page.locator(".summary")).to_contain_text("go on: 2 · complete: 0 · lost: 2")
    page.get_by_role("button", name="Whole", exact=True).press("Enter")
    expect(page.locator(".node")).to_have_count(6)
    node(page, "0:0").focus()
    page.keyboard.press("ArrowDown")
    expect(node(page, "0:1")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(node(page, "1:0")).to_be_focused()
    expect(page.locator("aside.card")).to_contain_text("90.0 %")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(node(page, "1:0")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"node=1%3A0|node=1:0"), timeout=30_000)
    expect(node(page, "1:0")).to_be_focused()
    # The keys belong to the tree, not to the player of the run.
    expect(page).not_to_have_url(re.compile("made="))


def test_pointing_at_a_row_of_the_ranking_shows_its_way(page, ready):
    open_page(page, ready, CLASSIC)
    page.locator(".ranking tbody tr").nth(1).hover()
    expect(node(page, "1:1")).to_have_class(re.compile("on-path"))
    expect(node(page, "1:0")).not_to_have_class(re.compile("on-path"))
    expect(page.locator(".greedy-said")).to_contain_text("the same text as rank 2")


def test_continue_from_here_opens_generate_at_that_branch(page, ready):
    open_page(page, ready, "&model=toy&prompt=tell me&max=4&beams=2")
    page.locator(".node").nth(2).click()
    expect(page).to_have_url(re.compile("node="), timeout=30_000)
    page.get_by_role("button", name="Continue from here").click()
    expect(page).to_have_url(re.compile(r"/Generate\?.*force=0(%3A|:)\d+(%2C|,)1"), timeout=30_000)
    expect(page).to_have_url(re.compile(r"made=2"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_gets_a_list_and_nothing_scrolls_sideways(page, ready, theme):
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme=theme)
    open_page(page, ready, CLASSIC.replace("beams=2", "beams=8"))
    expect(page.locator(".list .item").first).to_be_visible()
    expect(page.locator(".node")).to_have_count(0)
    page.locator(".list .item").first.click()
    expect(page.locator("aside.card")).to_contain_text("Text so far")
    assert sideways(page) == []


@pytest.mark.parametrize("width", [1024, 1280])
def test_a_laptop_cuts_no_choice_off(page, ready, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_page(page, ready, "&model=toy&prompt=tell+me&max=4&beams=4&kind=diverse&groups=2")
    choices = page.locator(".st-key-beam_settings [role=radiogroup]")
    expect(choices).to_have_count(2)
    for choice in choices.all():
        assert choice.evaluate("box => box.scrollWidth - box.clientWidth") <= 1
    assert sideways(page) == []
