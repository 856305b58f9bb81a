"""Playing with chance in a real browser: the dice, the draws, the branches."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_accessibility_browser import AXE, GRAVE, RUN
from tools.browser import sideways

TOY = "/Generate?model=toy&prompt=tell+me&p=off&lang=en"


@pytest.fixture
def open_page(page, ready):
    def go(address: str):
        page.goto(address)
        ready(page)
        expect(page.locator(".st-key-candidates .dice-row")).to_be_visible(timeout=30_000)
        return page

    return go


def rolls(page):
    return page.locator(".dice-row .rolls")


def test_a_step_s_dice_are_thrown_again_by_button_and_key_and_back_undoes_it(open_page, ready):
    page = open_page(TOY + "&made=3&step=1")
    again = page.locator(".dice-row .act").first
    expect(again).to_contain_text("Throw again")
    again.click()
    expect(rolls(page)).to_have_text(re.compile(r"^thrown again once: u 0\.\d{3} → 0\.\d{3}$"))
    expect(page.locator("button.chip .label")).to_have_count(2)
    expect(page.locator(".needle.earlier")).to_have_count(1)
    expect(again).to_be_focused()
    page.keyboard.press("d")
    expect(rolls(page)).to_contain_text("thrown again 2 times")
    page.locator("input.seed").press("d")
    page.wait_for_timeout(300)
    page.locator("input.seed").press("Escape")
    expect(rolls(page)).to_contain_text("thrown again 2 times")
    ready(page)
    assert "rolls=1%3A2" in page.url
    expect(page.locator(".st-key-branches .paths li")).to_have_count(3)
    page.locator(".about").click()
    page.locator("body").press("ArrowLeft")
    expect(rolls(page)).to_contain_text("thrown again once")
    page.locator("body").press("ArrowLeft")
    expect(rolls(page)).to_have_count(0)
    expect(page.locator("button.chip .label")).to_have_count(3)


def test_a_seed_is_exact_and_a_wrong_one_is_answered(open_page, ready):
    page = open_page(TOY)
    field = page.locator("input.seed")
    field.fill("9007199254740993")
    field.press("Enter")
    ready(page)
    expect(page).to_have_url(re.compile("seed=9007199254740993"))
    page.get_by_role("button", name="New seed").click()
    expect(field).to_have_value("9007199254740994")
    field.fill("12.5")
    field.press("Enter")
    expect(page.locator(".dice-row .problem")).to_have_text(re.compile("^A seed is a whole number"))
    field.press("Escape")
    expect(field).to_have_value("9007199254740994")
    expect(page.locator(".dice-row .problem")).to_be_empty()


def test_a_thousand_draws(open_page, ready):
    page = open_page(TOY)
    page.get_by_role("button", name="Throw", exact=True).click()
    chart = page.locator(".st-key-draws_chart")
    expect(chart).to_be_visible(timeout=15_000)
    ready(page)
    expect(page.get_by_test_id("stMetric").filter(has_text="χ²")).to_be_visible()
    assert "draws=1000%3A0" in page.url
    page.get_by_role("button", name="Throw that many again").click()
    expect(page).to_have_url(re.compile("draws=1000%3A1"))


def test_branches_are_opened_named_saved_and_compared(open_page, page, ready):
    page = open_page(TOY + "&made=3&step=2")
    page.locator(".st-key-candidates tbody tr:not(.chosen) button").first.click()
    panel = page.locator(".st-key-branches")
    expect(panel.locator(".paths li")).to_have_count(2)
    expect(panel.locator(".paths li.now")).to_contain_text("this run")
    name = panel.get_by_role("textbox", name="Name of branch “A”")
    name.fill("<img src=x onerror=alert(1)> 词元")
    name.press("Enter")
    shown = panel.locator(".lane-name").nth(1)
    expect(shown).to_have_text("<img src=x onerror=alert(1)> 词元")
    assert panel.locator("img").count() == 0
    part = panel.locator("button.part[tabindex='0']")
    part.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(panel.locator(".paths li.now input.name")).to_have_value(re.compile("^<img"))
    expect(panel.locator(".paths li")).to_have_count(2)
    ready(page)
    page.get_by_text("Table and file").click()
    ready(page)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save all branches (JSON)").click()
    content = json.loads(saved.value.path().read_text(encoding="utf-8"))
    assert [branch["in_view"] for branch in content["branches"]] == [True, False]
    panel.locator("input[type=checkbox]").first.check()
    panel.get_by_role("button", name="Compare 1 with this run").click()
    expect(page).to_have_url(re.compile("/Compare.*columns="), timeout=20_000)
    ready(page)
    expect(page.locator("h1").first).to_be_visible()


def test_a_saved_tree_is_loaded_again(open_page, page, ready, tmp_path):
    page = open_page(TOY + "&made=2&branches=2%3B0%3B%3B0%3A1%3Bmine")
    panel = page.locator(".st-key-branches")
    page.get_by_text("Table and file").click()
    ready(page)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save all branches (JSON)").click()
    page = open_page(TOY + "&made=2")
    page.get_by_text("Table and file").click()
    upload = page.locator("input[type=file]")
    kind = {"name": "x.json", "mimeType": "application/json"}
    upload.set_input_files({**kind, "buffer": b"[]"})
    expect(page.get_by_text("This file holds no branches that can be read")).to_be_visible()
    tree = {**kind, "buffer": saved.value.path().read_bytes()}
    upload.set_input_files(tree)
    expect(panel.locator("input.name").nth(1)).to_have_value("mine", timeout=15_000)


def test_deleting_all_branches_asks_first(open_page):
    page = open_page(TOY + "&made=2&branches=2%3B0%3B%3B0%3A1%3BA%0A2%3B0%3B0%3A1%3B%3BB")
    panel = page.locator(".st-key-branches")
    expect(panel.locator(".paths li")).to_have_count(3)
    panel.get_by_role("button", name="Delete branch “A”").click()
    expect(panel.locator(".paths li")).to_have_count(2)
    panel.get_by_role("button", name="Delete all").click()
    panel.get_by_role("button", name="Really delete all 1?").click()
    expect(panel.locator(".paths li")).to_have_count(1)
    expect(panel.locator(".tree")).to_have_count(0)


def test_the_page_of_many_branches_fits_a_phone(open_page, page):
    page.set_viewport_size({"width": 390, "height": 1600})
    lines = "%0A".join(f"3%3B{n}%3B0%3A{n % 7}%3B%3Bbranch+{n}+" + "w" * 30 for n in range(12))
    page = open_page(TOY.replace("lang=en", "lang=zh") + f"&made=3&draws=100:0&branches={lines}")
    expect(page.locator(".st-key-branches .paths li")).to_have_count(13, timeout=20_000)
    assert sideways(page) == []
    for control in page.locator(".st-key-branches .act, .dice-row .act").all():
        assert control.bounding_box()["height"] >= 44


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_grave_in_dice_and_branches(lent, ready, theme):
    page = lent(color_scheme=theme, bypass_csp=True, reduced_motion="reduce").new_page()
    lines = "3%3B0%3B%3B0%3A1%3BA%0A3%3B0%3B0%3A1%2B1%3A999999%3B%3BB"
    page.goto(f"{TOY}&made=3&step=1&rolls=1:2&branches={lines}")
    expect(page.locator(".st-key-branches .paths li")).to_have_count(3, timeout=30_000)
    ready(page)
    page.add_script_tag(content=AXE)
    assert [text for impact, text in page.evaluate(RUN) if impact in GRAVE] == []
