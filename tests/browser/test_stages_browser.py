"""The further stages of Probabilities in a real browser: what moves, what is heard, the focus."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_probabilities_browser import agreed, card, open_page, rows
from tools.browser import sideways, tracebacks

TEXT = "&prompt=the cat sat on the mat and the cat&made=3&step=2"


def drag(page: Page, name: str, parts: tuple[float, ...]) -> None:
    """Press a card's slider and move along it; the button stays pressed."""
    slider = card(page, name).get_by_role("slider")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.wait_for_timeout(300)
    page.mouse.move(box["x"] + box["width"] * parts[0], middle)
    page.mouse.down()
    for part in parts[1:]:
        page.mouse.move(box["x"] + box["width"] * part, middle)
        page.wait_for_timeout(40)


def test_a_penalty_moves_the_bars_without_the_server_and_python_agrees(page, ready):
    sent: list[object] = []
    page.on("websocket", lambda ws: ws.on("framesent", lambda _: sent.append(1)))
    open_page(page, ready, TEXT + "&repeat=1.1")
    agreed(page)
    shown = card(page, "repetition_penalty")
    assert int(shown.get_attribute("data-changed")) >= 6
    first = shown.locator(".touched li").first
    before = first.inner_text()
    sent.clear()
    drag(page, "repetition_penalty", (0.35, 0.5, 0.6))
    assert first.inner_text() != before
    assert sent == []
    page.mouse.up()
    expect(page).not_to_have_url(re.compile(r"repeat=1\.1(&|$)"), timeout=30_000)
    agreed(page)
    page.locator(".add[data-add=no_repeat_ngram]").click()
    expect(card(page, "no_repeat_ngram")).to_be_visible()
    expect(page).to_have_url(re.compile("ngram=3"), timeout=30_000)
    agreed(page)
    number = card(page, "no_repeat_ngram").get_by_role("spinbutton")
    number.fill("1")
    number.press("Enter")
    expect(page).to_have_url(re.compile("ngram=1"), timeout=30_000)
    agreed(page)
    left = card(page, "no_repeat_ngram").locator(".left")
    expect(left).to_have_text(re.compile(r"^\d+ tokens forbidden$"))
    assert card(page, "no_repeat_ngram").get_attribute("data-forbidden") != "0"
    page.get_by_role("button", name="All filters off").click()
    expect(shown).to_have_count(0)
    expect(page).not_to_have_url(re.compile("repeat=|ngram="), timeout=30_000)
    agreed(page)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_all_stages_at_once_fit_a_phone_and_stay_text(page, ready, lang):
    page.set_viewport_size({"width": 390, "height": 900})
    alerts: list[str] = []
    page.on("dialog", lambda d: (alerts.append(d.message), d.dismiss()))
    every = "&typical=0.9&repeat=1.3&presence=0.5&frequency=0.5&ngram=2&pattern=.*"
    page.goto(f"/Probabilities?lang={lang}{TEXT}{every}&ban=<img src=x onerror=alert(1)>{'x' * 20}")
    page.locator(".cards").wait_for(timeout=60_000)
    ready(page)
    expect(page.locator(".card[data-stage]")).to_have_count(11)
    agreed(page)
    expect(card(page, "banned").locator(".rule")).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator(".root img").count() == 0
    assert alerts == []
    assert sideways(page) == []
    assert tracebacks(page) == []


def test_typical_p_is_added_dragged_moved_and_taken_away(page, ready):
    sent: list[object] = []
    page.on("websocket", lambda ws: ws.on("framesent", lambda _: sent.append(1)))
    open_page(page, ready, "&own=p:a 0.6, b 0.2, c 0.12, d 0.08&p=off")
    expect(card(page, "typical_p")).to_have_count(0)
    add = page.get_by_role("button", name="typical-p", exact=True)
    add.click()
    expect(add).to_have_attribute("aria-pressed", "true")
    expect(page).to_have_url(re.compile(r"[?&]typical=0\.9"), timeout=30_000)
    agreed(page)
    before = rows(page)
    sent.clear()
    drag(page, "typical_p", (0.85, 0.5, 0.2, 0.15))
    during = rows(page)
    assert sent == []
    # The entropy is 1.57 bits: b with 2.32 bits is no nearer than a with 0.74, and a goes first.
    assert during != before
    assert sum(during.values()) == pytest.approx(1)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"[?&]typical=0\.[12]"), timeout=30_000)
    agreed(page)
    assert rows(page) == during
    earlier = page.get_by_role("button", name="Move typical-p one place earlier")
    earlier.focus()
    earlier.press("Enter")
    expect(earlier).to_be_focused()
    expect(page.locator(".root .sr-only", has_text="typical-p is now filter 4 of 5")).to_have_count(
        1
    )
    expect(page.get_by_text("The order is not the usual one (temperature, top-k")).to_be_visible()
    expect(page).to_have_url(re.compile("order=temperature"), timeout=30_000)
    agreed(page)
    card(page, "typical_p").get_by_role("switch").press("Enter")
    expect(card(page, "typical_p")).to_have_count(0)
    expect(add).to_be_focused()
    expect(page).not_to_have_url(re.compile("typical="), timeout=30_000)
    agreed(page)
