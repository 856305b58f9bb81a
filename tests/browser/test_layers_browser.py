"""Layers in a real browser: pointing, clicking and typing on the map; nothing scrolls sideways."""

import re

import pytest
from playwright.sync_api import Page, expect

from tools.browser import sideways, tracebacks

BOARD = ".root:has(.board)"


def open_page(page: Page, ready, query: str = "") -> None:
    page.goto(f"/Layers?lang=en{query}")
    page.locator(".board canvas").wait_for(timeout=120_000)
    # The live model takes over from the stored run: wait for it, so that nothing moves later.
    expect(page.get_by_text("This is a stored real run")).to_have_count(0, timeout=120_000)
    page.locator(".neuron").first.wait_for(timeout=120_000)
    ready(page)


def middle(page: Page, layer: int, column: int) -> dict[str, float]:
    """Where the cell's middle lies on the canvas: its size tells the widths of the cells."""
    size = page.locator(".board canvas").bounding_box()
    columns, layers = 5, 30
    row = (size["height"] - 60) / layers
    return {"x": (column + 0.5) * size["width"] / columns, "y": 30 + (layer + 0.5) * row}


def root(page: Page):
    return page.locator(BOARD)


def test_pointing_tells_and_a_click_opens_the_cell_for_the_whole_page(page, ready):
    open_page(page, ready)
    canvas, panel = page.locator(".board canvas"), page.locator(".panel")
    canvas.scroll_into_view_if_needed()
    canvas.hover(position=middle(page, 27, 4))
    expect(panel).to_contain_text("After layer 28 of 30")
    expect(panel.locator("ol li bdi").first).to_have_text("␣the")
    expect(panel).to_contain_text("rank 7")
    # Layers go down, positions across: the mirrored cell says something else.
    canvas.hover(position=middle(page, 4, 1))
    expect(panel).to_contain_text("After layer 5 of 30")
    expect(panel).to_contain_text("at position 1: ␣capital")
    page.mouse.move(5, 5)
    expect(panel).to_contain_text("␣is")
    expect(page).not_to_have_url(re.compile("layer="))
    canvas.click(position=middle(page, 24, 3))
    expect(page).to_have_url(re.compile(r"layer=24(&|$)"), timeout=30_000)
    expect(page).to_have_url(re.compile(r"at=3(&|$)"))
    expect(page.get_by_text("The busiest neurons of layer 25")).to_be_visible(timeout=30_000)
    expect(page.get_by_text("A walk through layer 25")).to_be_visible()
    expect(root(page)).to_have_attribute("data-position", "3")
    # The last column has no number in the link: it follows the text.
    canvas.click(position=middle(page, 29, 4))
    expect(page).not_to_have_url(re.compile("at="), timeout=30_000)


def test_the_map_works_by_keys_alone_and_keeps_them_from_the_player(page, ready):
    open_page(page, ready, "&layer=10&at=2")
    canvas = page.locator(".board canvas")
    canvas.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "PageDown"):
        page.keyboard.press(key)
    expect(root(page)).to_have_attribute("data-layer", "17")
    expect(root(page)).to_have_attribute("data-position", "3")
    expect(
        page.locator("[aria-live=polite]").filter(has_text="Layer 18, position 3")
    ).to_have_count(1)
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"at=0(&|$)"), timeout=30_000)
    expect(page).to_have_url(re.compile(r"layer=17(&|$)"))
    expect(page).not_to_have_url(re.compile("made="))
    expect(page.get_by_text("The busiest neurons of layer 18")).to_be_visible(timeout=30_000)
    expect(canvas).to_be_focused()


def test_another_quantity_can_be_mapped(page, ready):
    open_page(page, ready)
    page.get_by_role("button", name="Size", exact=True).click()
    expect(page).to_have_url(re.compile("cell=norm"), timeout=30_000)
    ready(page)  # the map is drawn anew
    canvas = page.locator(".board canvas")
    canvas.hover(position=middle(page, 11, 0))
    expect(page.locator(".panel .value")).to_contain_text("22.7k")
    page.get_by_role("button", name="Attention adds").click()
    expect(page).to_have_url(re.compile("cell=attention"), timeout=30_000)
    ready(page)
    canvas.hover(position=middle(page, 24, 4))
    expect(page.locator(".panel .value")).to_contain_text("58 %")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_hostile_tokens_stay_text_and_a_phone_does_not_scroll_sideways(page, ready, lang):
    page.set_viewport_size({"width": 390, "height": 900})
    alerts: list[str] = []
    page.on("dialog", lambda d: (alerts.append(d.message), d.dismiss()))
    page.goto(f"/Layers?lang={lang}&model=tiny&prompt=<img src=x onerror=alert(1)>$x$\n的中")
    page.locator(".board canvas").wait_for(timeout=120_000)
    page.locator(".neuron").first.wait_for(timeout=120_000)
    ready(page)
    assert page.locator(".root img, .root script").count() == 0
    assert alerts == []
    assert sideways(page) == []
    assert tracebacks(page) == []
    canvas = page.locator(".board canvas")
    assert canvas.bounding_box()["width"] > 390
    page.get_by_role("button", name={"en": "Earlier", "zh": "前面"}[lang]).click()
    expect(page).to_have_url(re.compile("at="), timeout=30_000)


def test_a_phone_is_not_given_everything_at_once(page, ready):
    page.set_viewport_size({"width": 390, "height": 900})
    open_page(page, ready)
    tall = "document.querySelector('[data-testid=stMain]').scrollHeight"
    assert page.evaluate(tall) < 7_500
    neurons = page.locator(".neuron:visible")
    expect(neurons).to_have_count(3)
    page.get_by_role("button", name="Show all 10").click()
    expect(neurons).to_have_count(10)
    page.get_by_role("button", name="Show fewer").click()
    expect(neurons).to_have_count(3)
    inside = page.locator(".st-key-walk_inside summary")
    expect(inside).to_contain_text("parameters")
    formula = page.locator(".st-key-walk_inside .katex").first
    expect(formula).to_be_hidden()
    inside.click()
    expect(formula).to_be_visible()
