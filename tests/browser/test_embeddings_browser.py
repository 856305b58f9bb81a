"""Embeddings in a real browser: what turns at once, what is heard, what stays text."""

import re

import pytest
from playwright.sync_api import Page, expect

from tools.browser import sideways, tracebacks


def open_page(page: Page, ready, query: str = "") -> None:
    page.goto(f"/Embeddings?lang=en{query}")
    expect(page.get_by_text("is not ready yet")).to_have_count(0, timeout=120_000)
    expect(page.get_by_text("This is a stored real run")).to_have_count(0, timeout=120_000)
    page.locator("svg.dial").wait_for(timeout=120_000)
    ready(page)


def turning(page: Page):
    return page.locator(".root:has(svg.dial)")


def dot(page: Page) -> float:
    return float(turning(page).get_attribute("data-dot"))


def test_any_number_of_any_row_can_be_read(page, ready, smollm2):
    open_page(page, ready)
    page.locator(".tokens button").nth(3).click()
    expect(page.locator(".road")).to_contain_text("row 4,649 of 49,152")
    expect(page).to_have_url(re.compile(r"[?&]at=3"), timeout=30_000)
    row = smollm2.embeddings([4649])[0]
    field = page.get_by_label("Index of a number, counted from 0")
    field.fill("575")
    expect(page.locator(".reading output")).to_have_text(f"{row[575]:.4f}".replace("-", "−"))
    # The third line begins where the first two end: cells run along the lines.
    starts = page.locator(".starts span").all_inner_texts()
    box = page.locator(".cells canvas").bounding_box()
    columns, lines = int(starts[1]), len(starts)
    page.mouse.move(box["x"] + 1.5 * box["width"] / columns, box["y"] + 2.5 * box["height"] / lines)
    expect(field).to_have_value(str(2 * columns + 1))
    expected = f"{row[2 * columns + 1]:.4f}".replace("-", "−")
    expect(page.locator(".reading output")).to_have_text(expected)
    page.get_by_text("All 576 numbers as text").click()
    expect(page.locator(".all")).not_to_be_empty()
    assert len(page.locator(".all").inner_text().split()) == 576
    expect(page.locator(".near tbody tr")).to_have_count(12)


def test_repeated_tokens_have_a_ring_each_and_the_map_turns(page, ready):
    open_page(page, ready, "&prompt=the cat and the dog and the bird")
    spots = page.locator(".map circle.spot")
    expect(spots).to_have_count(8)
    assert page.locator(".map text.name").all_text_contents().count("␣the ×2") == 1
    rings = page.locator(".map circle[data-position='3'], .map circle[data-position='6']")
    places = rings.evaluate_all("all => all.map(c => [c.getAttribute('cx'), c.getAttribute('r')])")
    assert places[0][0] == places[1][0]
    assert places[0][1] != places[1][1]
    page.get_by_role("group", name="Rows shown").get_by_role("button", name="with nearest").click()
    assert page.locator(".map circle.other").count() > 6
    page.get_by_role("group", name="Dimensions").get_by_role("button", name="3-D").click()
    before = spots.first.get_attribute("cx")
    box = page.locator(".map svg").bounding_box()
    page.mouse.move(box["x"] + 8, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 20)
    page.mouse.up()
    assert spots.first.get_attribute("cx") != before
    page.get_by_role("slider", name="Turn").press("ArrowRight")
    page.locator(".map circle[data-position='4']").click(force=True)
    expect(page).to_have_url(re.compile(r"[?&]at=4"), timeout=30_000)


def test_both_positions_move_and_the_product_stays_without_the_server(page, ready):
    open_page(page, ready)
    sent: list[object] = []
    page.on("websocket", lambda ws: ws.on("framesent", lambda _: sent.append(1)))
    here = dot(page)
    both = page.get_by_label("both together")
    both.focus()
    before = page.locator("svg.dial .arrow.q:not(.before)").get_attribute("x2")
    for _ in range(5):
        both.press("ArrowRight")
    assert turning(page).get_attribute("data-m") == "9"
    assert turning(page).get_attribute("data-n") == "8"
    assert dot(page) == here
    assert page.locator("svg.dial .arrow.q:not(.before)").get_attribute("x2") != before
    law = page.locator(".law").inner_text()
    long, short = re.findall(r"−?\d+\.\d{4}", law)
    assert long == short
    page.get_by_label("query “␣is” at position m").press("ArrowRight")
    assert turning(page).get_attribute("data-m") == "10"
    assert dot(page) != here
    assert sent == []
    page.get_by_role("button", name="Back to the text: m = 4, n = 3").click()
    assert dot(page) == here
    law = page.locator(".law").inner_text()
    assert len(set(re.findall(r"−?\d+\.\d{4}", law))) == 1
    assert "The model's own q·k here" in law


def test_layer_tokens_and_pair_are_chosen_and_stand_in_the_link(page, ready):
    open_page(page, ready)
    page.get_by_role("combobox", name="Layer", exact=True).select_option(label="8")
    expect(page).to_have_url(re.compile(r"[?&]layer=7"), timeout=30_000)
    expect(page.get_by_text("In this first layer")).to_have_count(0)
    page.get_by_role("combobox", name="Key of").select_option("1")
    expect(page).to_have_url(re.compile(r"[?&]key=1"), timeout=30_000)
    assert turning(page).get_attribute("data-n") == "1"
    bar = page.locator(".wave[data-pair='20']")
    bar.click(force=True)
    expect(page).to_have_url(re.compile(r"[?&]pair=20"), timeout=30_000)
    expect(page.get_by_text("What pair 20 adds to q·k")).to_be_visible()
    expect(page.locator(".fact").first).to_contain_text("a whole turn in")
    expect(turning(page)).not_to_have_attribute("aria-busy", "true")
    assert page.locator(".checks .bad").count() == 0
    page.reload()
    open_page(page, ready, "&layer=7&key=1&pair=20")
    assert turning(page).get_attribute("data-pair") == "20"


def test_the_order_is_undone_on_a_click(page, ready):
    open_page(page, ready)
    page.get_by_role("radio", name="without positions").or_(
        page.get_by_role("button", name="without positions")
    ).first.click()
    expect(page).to_have_url(re.compile(r"[?&]place=none"), timeout=30_000)
    expect(page.get_by_text("bits (KL divergence")).to_be_visible(timeout=30_000)
    first = page.locator(".rows").nth(3).locator("li").first
    expect(first.locator(".label")).to_have_text("␣Paris")
    expect(first.locator(".value")).to_have_text("27.3 %")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_hostile_tokens_stay_text_and_a_phone_does_not_scroll_sideways(page, ready, lang):
    page.set_viewport_size({"width": 390, "height": 900})
    text = "<b>x</b> $x$ <img src=x onerror=alert(1)> שלום 国王 😀 the the"
    open_page(page, ready, f"&lang={lang}&prompt={text}&words=<b>%0A$x$%0A**king**&place=shuffled")
    assert page.locator(".root img, .root b b, [data-testid=stCaptionContainer] b").count() == 0
    assert sideways(page) == []
    assert tracebacks(page) == []
