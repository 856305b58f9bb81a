"""The player and the candidates in a real browser."""

import re
import time
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tools.browser import sideways

TOY = "/Generate?model=toy&prompt=tell+me&p=off&strategy=greedy&lang=en"


@pytest.fixture
def open_page(page, ready):
    def go(address: str):
        page.goto(address)
        ready(page)
        expect(page.locator(".player")).to_be_visible(timeout=30_000)
        return page

    return go


def at_step(page, n: int | str) -> None:
    expect(page.locator(".readout")).to_have_text(re.compile(f"^step {n} of"), timeout=15_000)


def button(page, name: str):
    return page.locator(f".control.{name}")


def rows(page):
    return page.locator(".st-key-candidates tbody tr")


def text(page) -> list[str]:
    return page.locator("button.chip .label").all_text_contents()


def test_step_back_and_a_click_on_a_token(open_page):
    page = open_page(TOY)
    at_step(page, 1)
    button(page, "step").click()
    at_step(page, 2)
    assert text(page) == ["sun", "shines"]
    button(page, "step").click()
    at_step(page, 3)
    button(page, "back").click()
    at_step(page, 2)
    assert text(page) == ["sun", "shines", "brightly"]
    expect(page.locator("button.chip.later")).to_have_text(["brightly"])
    page.locator("button.chip", has_text="sun").click()
    at_step(page, 1)
    expect(page.locator(".chip.current[aria-current=step]")).to_have_text(["sun"])


def test_the_keyboard_steps_plays_and_leaves_typing_alone(open_page):
    page = open_page(TOY)
    page.locator("body").press("ArrowRight")
    at_step(page, 2)
    page.locator("body").press("ArrowLeft")
    at_step(page, 1)
    prompt = page.get_by_role("textbox", name="Prompt")
    prompt.press("ArrowRight")
    prompt.press(" ")
    page.wait_for_timeout(400)
    at_step(page, 1)
    page.locator(".about").click()
    page.locator("body").press(" ")
    expect(button(page, "play")).to_have_attribute("data-moving", "true")
    at_step(page, 4)
    expect(button(page, "play")).to_have_attribute("data-moving", "false")
    expect(page.locator(".note")).to_have_text(re.compile("the model chose its end token"))
    expect(button(page, "step")).to_be_disabled()


def test_quick_presses_are_all_carried_out(open_page):
    page = open_page(TOY)
    for _ in range(3):
        page.locator("body").press("ArrowRight")
    at_step(page, 4)
    for _ in range(2):
        page.locator("body").press("ArrowLeft")
    at_step(page, 2)
    assert len(text(page)) == 4


def test_play_keeps_its_pace_and_a_click_elsewhere_pauses(open_page):
    page = open_page(TOY.replace("greedy", "sample") + "&k=1&force=2:4,3:5,4:4,5:5,6:4,7:5,8:4")
    page.locator(".speed select").select_option("2")
    start = time.monotonic()
    button(page, "play").click()
    at_step(page, "[4-9]")
    assert time.monotonic() - start >= 0.9  # 0, 0.5, 1.0 s and the last answer
    assert "made=" not in page.url  # or the browser's history would hold every step
    page.locator("h1").first.click()
    expect(button(page, "play")).to_have_attribute("data-moving", "false")
    expect(page).to_have_url(re.compile("made=[4-9]"))


def test_run_to_the_end_and_the_scrubber(open_page):
    page = open_page(TOY)
    button(page, "run").click()
    at_step(page, 4)
    scrubber = page.get_by_role("slider", name="Step in view")
    expect(scrubber).to_have_attribute("aria-valuetext", "step 4 of at most 24: <end>")
    scrubber.press("Home")
    at_step(page, 1)
    expect(scrubber).to_have_attribute("aria-valuetext", "step 1 of at most 24: sun")
    button(page, "restart").click()
    expect(page.locator("button.chip")).to_have_count(1)


def test_force_forks_the_run_and_back_undoes_it(open_page, ready):
    page = open_page(TOY + "&made=3&step=1")
    row = rows(page).filter(has_text="rises")
    row.locator("button").click()
    expect(page.locator("button.chip.forced")).to_have_text(["rises"])
    assert text(page) == ["sun", "rises"]
    expect(page.locator(".why")).to_contain_text("You forced “rises”.")
    expect(page.locator("tr.chosen .pick")).to_contain_text("▶")
    ready(page)
    assert "force=1%3A3" in page.url
    page.locator("body").press("ArrowLeft")
    expect(page.locator("button.chip.forced")).to_have_count(0)
    at_step(page, 2)
    assert text(page) == ["sun", "shines", "brightly"]


def test_a_candidate_is_forced_with_the_keyboard(open_page):
    page = open_page(TOY)
    page.locator(".pick[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("button.chip.forced")).to_have_text(["moon"])


def test_fifty_candidates_and_all_others(open_page):
    page = open_page("/Generate?lang=en")
    expect(page.locator("tr.others")).to_contain_text("49,132 others")
    page.locator(".sizes button", has_text="50").click()
    expect(rows(page)).to_have_count(51)
    expect(page.locator("tr.others")).to_contain_text("49,102 others")
    expect(page.locator(".segment.chosen")).to_have_count(1)
    expect(page.locator(".u")).to_have_text(re.compile(r"u = 0\.\d+"))


@pytest.mark.parametrize(("lang", "width"), [("en", 1920), ("zh", 390)])
def test_hostile_and_long_prompts_are_text_and_fit(open_page, page, lang, width):
    page.set_viewport_size({"width": width, "height": 1600})
    tags = '<img src=x onerror="document.title=1"> <script>document.title=2</script>'
    prompt = f"{tags} **b** مرحبا $x$ 👨‍👩‍👧‍👦 " + " ".join(f"word{i}" for i in range(40))
    open_page(f"/Generate?lang={lang}&made=2&prompt={quote(prompt)}")
    strip = page.locator(".st-key-strip")
    hidden = strip.locator(".chip").count()
    strip.locator(".more").click()
    assert strip.locator(".chip").count() > hidden
    letters = "".join(strip.locator(".chip .label").all_text_contents()).replace("␣", " ")
    assert tags in letters
    assert "👨‍👩‍👧‍👦" in letters
    assert strip.locator("img, script, b").count() == 0
    assert page.title() not in ("1", "2")
    assert sideways(page) == []
    if width == 390:
        for control in page.locator(".control, .pick").all():
            box = control.bounding_box()
            assert box["height"] >= 44
            assert box["width"] >= 44


def test_the_table_stays_in_its_card_with_every_stage_on(open_page):
    stages = "t=1.4&k=6&p=0.99&m=0.001&typical=0.99&repeat=1.3&presence=0.5&frequency=0.2&ngram=3"
    page = open_page(f"/Generate?model=toy&prompt=tell+me&made=3&step=2&lang=en&ban=x&{stages}")
    box = page.locator(".st-key-candidates .box", has=page.locator("table"))
    expect(box).to_contain_text("Changing no number here:")
    # What stands out of a card lies over its neighbour; nothing scrolls, so no other check sees it.
    assert box.evaluate("(box) => box.scrollWidth <= box.clientWidth")
    assert box.locator("table").evaluate(
        "(table) => table.parentElement.getBoundingClientRect().right"
        " <= table.closest('.box').getBoundingClientRect().right"
    )


def test_what_a_screen_reader_hears_follows_a_language_switched_in_the_session(open_page):
    page = open_page(f"{TOY}&made=1&step=0")
    said = page.locator(".root .sr-only[aria-live]", has_text=re.compile("step|步"))
    expect(said.first).to_have_text(re.compile("^step 1 of at most"))
    page.get_by_text("简体中文").click()
    expect(said.first).to_have_text(re.compile(r"^第 1\s步，最多"), timeout=15_000)
