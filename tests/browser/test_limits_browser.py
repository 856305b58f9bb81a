"""Limits in a real browser: the batch slider, the planner and its file, on a phone too."""

import csv
import io
import re
from pathlib import Path

from playwright.sync_api import TimeoutError, expect

from core.lab.plan import devices
from tools.browser import sideways, tracebacks


def _take(page, box, option):
    """Choose from a list, which closes where a model that got ready draws the page anew."""
    wanted = page.get_by_role("option", name=option, exact=True)
    for patience in (3_000, 10_000, 30_000):
        page.get_by_role("combobox", name=box).click()
        try:
            wanted.click(timeout=patience)
        except TimeoutError:
            continue
        return
    raise AssertionError(f"{option} cannot be chosen")


def test_the_planner_answers_and_its_rows_can_be_saved(page, ready):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/Limits?lang=en&model=tiny&limits=texts=4")
    expect(
        page.get_by_text("It does not fit: the weights alone take 141 GB of 80 GB")
    ).to_be_visible(timeout=120_000)
    ready(page)
    assert sideways(page) == []
    _take(page, "Devices (TP)", "8")
    expect(page.get_by_text("It fits: 17.7 GB of 80 GB on each device.")).to_be_visible()
    expect(page).to_have_url(re.compile("tp(=|%3D)8"))
    with page.expect_download() as waiting:
        page.get_by_role("button", name="All devices and precisions as CSV").click()
    text = Path(waiting.value.path()).read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    published = [row for row in rows if row["device"] != "this machine"]
    assert len(published) == 4 * len(devices())
    assert {row["tensor_parallel"] for row in rows} == {"8"}
    assert tracebacks(page) == []
    assert sideways(page) == []
