"""The app as two people meet it: at once, by link, by keyboard, going back."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from core.decode.generate import run
from core.settings import RunSpec, Settings
from tools.browser import sideways

READY = 120_000
CHIPS = ".st-key-strip .chip:not(.sample)"


def open_page(page: Page, ready, path: str = "/?lang=en") -> None:
    page.goto(path)
    expect(page.get_by_text("134.5M")).to_be_visible(timeout=READY)
    ready(page)


def chips(page: Page) -> list[str]:
    """The text of the strip, chip by chip."""
    found = page.locator(CHIPS)
    expect(found.first).to_be_visible(timeout=READY)
    return [text.strip() for text in found.locator("bdi.label").all_text_contents()]


def test_two_readers_at_once_each_get_what_they_would_get_alone(page, new_context, ready, smollm2):
    """Different prompts and seeds, stepping by turns on one server."""
    asked = {"Once upon a time": 11, "The best way to learn is": 12}
    pages = dict(zip(asked, (page, new_context().new_page()), strict=True))
    for prompt, seed in asked.items():
        pages[prompt].goto(f"/Generate?lang=en&p=off&seed={seed}&prompt={quote(prompt)}")
    for opened in pages.values():
        expect(opened.get_by_text("134.5M")).to_be_visible(timeout=READY)
        ready(opened)
    for _ in range(4):
        for opened in pages.values():
            opened.get_by_role("button", name=re.compile("^Step")).click()
        for opened in pages.values():
            ready(opened)
    for prompt, seed in asked.items():
        spec = RunSpec(prompt=prompt, settings=Settings(seed=seed))
        alone = run(smollm2, spec, steps=5)
        labels = [smollm2.vocabulary.label(i) for i in alone.ids]
        expect(pages[prompt].locator(CHIPS)).to_have_count(len(labels))
        assert chips(pages[prompt]) == labels


def test_the_link_opens_the_same_run_elsewhere(page, new_context, ready, base_url):
    open_page(page, ready, "/Generate?lang=en&seed=5&p=off")
    for _ in range(3):
        page.get_by_role("button", name=re.compile("^Step")).click()
        ready(page)
    expect(page).to_have_url(re.compile("made=4"))
    elsewhere = new_context().new_page()
    open_page(elsewhere, ready, page.url)
    assert chips(elsewhere) == chips(page)


def test_back_in_the_browser_goes_back(page, ready):
    open_page(page, ready)
    field = page.get_by_label("Prompt", exact=True)
    field.fill("One two three")
    field.press("Control+Enter")
    expect(page).to_have_url(re.compile("prompt=One"))
    ready(page)
    page.go_back()
    expect(field).to_have_value("The capital of France is")
    ready(page)
    assert chips(page)[0] == "The"


def test_an_empty_prompt_stays_empty(page, ready):
    open_page(page, ready)
    field = page.get_by_label("Prompt", exact=True)
    field.fill("")
    field.press("Control+Enter")
    expect(page.get_by_text("The prompt is empty")).to_be_visible(timeout=READY)
    page.get_by_role("slider", name="Temperature").press("ArrowRight")
    ready(page)
    expect(page.get_by_text("The prompt is empty")).to_be_visible()
    expect(field).to_have_value("")


def test_the_page_says_its_language_to_the_browser(page, ready):
    open_page(page, ready)
    assert page.evaluate("document.documentElement.lang") == "en"
    page.get_by_text("简体中文").click()
    ready(page)
    expect(page.get_by_text("一个词元的旅程").first).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "zh-Hans"
    expect(page).to_have_url(re.compile("lang=zh"))


def test_settings_and_steps_survive_a_change_of_page(page, ready):
    open_page(page, ready, "/?lang=en&k=7&t=0.5&made=3&step=2")
    before = chips(page)
    page.get_by_test_id("stSidebar").get_by_text("Generate").click()
    ready(page)
    expect(page).to_have_url(re.compile("/Generate.*k=7"))
    assert chips(page) == before
    expect(page.get_by_role("spinbutton", name=re.compile("Top-k"))).to_have_value("7")


def test_the_link_can_be_copied(page, ready, context):
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_page(page, ready, "/?lang=en&seed=3&prompt=" + quote("1 + 1 ="))
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Link copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "seed=3" in copied
    assert "prompt=1+%2B+1+%3D" in copied


def test_a_typed_prompt_is_not_lost_when_the_page_draws_itself_anew(page, ready):
    open_page(page, ready)
    field = page.get_by_label("Prompt", exact=True)
    field.fill("Half a sen")
    page.get_by_role("button", name=re.compile("^Step")).click()
    ready(page)
    expect(field).to_have_value("Half a sen")


@pytest.mark.parametrize("path", ["/", "/Probabilities", "/Generate"])
def test_no_page_scrolls_sideways(page, ready, path):
    page.set_viewport_size({"width": 390, "height": 1200})
    page.goto(f"{path}?lang=zh&made=3&step=1")
    expect(page.locator(CHIPS).first).to_be_visible(timeout=READY)
    for width in (390, 1920):
        page.set_viewport_size({"width": width, "height": 1200})
        ready(page)
        assert sideways(page) == [], width


CUT = """() => {
  const root = document.querySelector('.st-key-journey [data-testid=stBidiComponentIsolated]')
  const inner = root.shadowRoot ?? root.firstElementChild.shadowRoot ?? root
  const board = inner.querySelector('.board')
  const tops = [...board.querySelectorAll('.stage')].map((s) => s.getBoundingClientRect().top)
  const cut = [...board.querySelectorAll('.chip, .cand, .cand > *, .filter-name, .filter small')]
    .filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1)
    .map((e) => e.className + ': ' + e.textContent)
  return { rows: new Set(tops.map(Math.round)).size, cut }
}"""


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("query", ["", "&t=0"])
def test_a_projector_shows_the_three_stages_side_by_side_and_cuts_nothing(page, ready, query, lang):
    page.set_viewport_size({"width": 1366, "height": 768})
    open_page(page, ready, f"/?lang={lang}{query}")
    # An old one shows the whole way and the loop without scrolling.
    loop = page.locator(".st-key-journey .loop").bounding_box()
    assert loop["y"] + loop["height"] <= 768
    for width in (1280, 1366, 1600, 1920):
        page.set_viewport_size({"width": width, "height": 768})
        ready(page)
        assert page.evaluate(CUT) == {"rows": 1, "cut": []}, width


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_phone_cuts_nothing_either(page, ready, lang):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/?lang={lang}")
    expect(page.locator(CHIPS).first).to_be_visible(timeout=READY)
    ready(page)
    assert page.evaluate(CUT)["cut"] == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_menu_has_the_parts_of_the_story_and_cuts_no_name(page, ready, lang):
    open_page(page, ready, f"/?lang={lang}")
    menu = page.locator(".st-key-menu")
    names = {"en": ["Look inside", "Decoding"], "zh": ["看看内部", "怎样选词"]}[lang]
    assert menu.locator("[data-testid=stCaptionContainer]").all_inner_texts()[:2] == names
    cut = "all => all.filter((n) => n.scrollWidth > n.clientWidth + 1).map((n) => n.textContent)"
    links = page.locator("[data-testid=stPageLink-NavLink] span, [data-testid=stPageLink-NavLink]")
    assert links.evaluate_all(cut) == []


def test_where_the_sidebar_is_folded_the_page_offers_the_prompt(page, ready):
    open_page(page, ready)
    here = page.locator(".st-key-prompt_here").get_by_role("button").first
    expect(here).to_be_hidden()
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    expect(here).to_be_visible(timeout=READY)
    ready(page)
    here.click()
    page.get_by_role("button", name="1, 2, 3, 4,").click()
    expect(page.locator(CHIPS).first).to_have_text(re.compile("1"), timeout=READY)
    expect(page).to_have_url(re.compile("prompt=1"))


def test_one_reader_does_not_wait_for_another(page, new_context, ready):
    """While one reader runs to the end, another opens the app and steps."""
    open_page(page, ready, "/Generate?lang=en&max=60&p=off&t=1.5&prompt=" + quote("A list of"))
    page.get_by_role("button", name=re.compile("^Run to the end")).click()
    second = new_context().new_page()
    open_page(second, ready)
    second.get_by_role("button", name=re.compile("^Step")).click()
    expect(second.locator(CHIPS)).to_have_count(7, timeout=READY)


def test_many_at_once(new_context, ready):
    """Five readers in one second: each sees a whole prediction."""
    pages = [new_context().new_page() for _ in range(5)]
    for opened in pages:
        opened.goto("/?lang=en", wait_until="commit")
    for opened in pages:
        expect(opened.locator(CHIPS).last).to_have_text(re.compile("Paris"), timeout=READY)
