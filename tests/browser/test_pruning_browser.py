"""Pruning in a real browser, on a phone: measured, taken along in the link, never wider than it."""

import re

from playwright.sync_api import Page, expect

from tools.browser import sideways


def test_a_smaller_model_is_measured_and_goes_along_in_the_link(page: Page, ready):
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto("/Pruning?lang=en&model=tiny&pruning=neurons%3D50")
    run = page.locator(".st-key-lab_run_prune_removal button")
    run.wait_for(timeout=120_000)
    ready(page)
    assert sideways(page) == []
    run.click()
    expect(page.get_by_text(re.compile(r"^× \d\.\d\d$"))).to_be_visible(timeout=120_000)
    ready(page)
    assert sideways(page) == []
    page.locator(".st-key-prune_removal_use button:visible").click()
    expect(page).to_have_url(re.compile(r"edit=neurons(%3A|:)0\.5"), timeout=60_000)
    expect(page.get_by_text("The model in use is already changed")).to_be_visible(timeout=60_000)
    page.locator(".st-key-prune_removal_compare button:visible").click()
    expect(page).to_have_url(re.compile("/Compare"), timeout=60_000)
    expect(page.get_by_text("50 % of the neurons taken out").first).to_be_attached(timeout=60_000)
