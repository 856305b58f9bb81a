"""The KV cache page in a real browser: an experiment is watched, stopped and asked for again."""

import re

from playwright.sync_api import Page, expect

from tools.browser import sideways, tracebacks


def test_an_experiment_stops_within_a_step_and_keeps_what_there_is(page: Page, ready):
    page.goto("/KV_cache?lang=en&kv=steps%3D32")
    run = page.locator(".st-key-lab_run_kv_steps button")
    run.wait_for(timeout=120_000)
    ready(page)
    run.click()
    # A step is there: the picture is drawn while more comes.
    expect(page.locator(".st-key-kv_steps_chart")).to_be_visible(timeout=240_000)
    page.locator(".st-key-lab_stop_kv_steps button").click()
    expect(page.get_by_text("Stopped before the end")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("Both ways wrote the same tokens")).to_be_visible()
    expect(page.get_by_text("largest difference of logits").first).to_be_visible()
    page.wait_for_timeout(1500)
    expect(page.locator(".st-key-lab_stop_kv_steps")).to_have_count(0)
    assert tracebacks(page) == []


def test_on_a_phone_a_step_adds_a_framed_row(page: Page, ready):
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto("/KV_cache?lang=zh")
    ticks = page.locator(".st-key-kv_keys .ytick text")
    # Only the live model has a cache. The prompt's rows are written at once, and all framed.
    expect(ticks.filter(has_text="▸")).to_have_count(5, timeout=120_000)
    ready(page)
    expect(ticks).to_have_count(5)
    page.get_by_role("button", name=re.compile("下一步")).first.click()
    expect(ticks).to_have_count(6, timeout=60_000)
    expect(ticks.filter(has_text="▸")).to_have_count(1)
    expect(ticks.filter(has_text="Paris")).to_have_count(1)
    ready(page)
    assert sideways(page) == []
