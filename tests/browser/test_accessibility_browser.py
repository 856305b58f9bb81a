"""What axe-core finds on the pages, and that the focus stays where a reader has put it.

Streamlit's own elements are not ours to mend, so only what lies in a component's shadow root
counts.
"""

import itertools
from importlib.resources import files

import pytest
from playwright.sync_api import expect

AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
GRAVE = {"serious", "critical"}
# Only what fails for certain: a path of selectors longer than one leads into a shadow root.
RUN = """async () => {
  const ours = { include: [...document.querySelectorAll(".stBidiComponent")] }
  const found = await axe.run(ours, { resultTypes: ["violations"] })
  return found.violations.flatMap((rule) => rule.nodes
    .filter((node) => Array.isArray(node.target[0]))
    .map((node) => [rule.impact, `${rule.id}: ${node.html} ${node.failureSummary}`]))
}"""
# What is drawn only when the live model is there.
HEAVY = {"/Embeddings": ".waves", "/Attention": ".check.good", "/Layers": ".neuron"}
# The small grey lines, and the commands in them.
FAINT = """async () => {
  const captions = { include: [...document.querySelectorAll("[data-testid=stCaptionContainer]")] }
  const found = await axe.run(captions, { runOnly: ["color-contrast"] })
  return found.violations.flatMap((rule) => rule.nodes.map((node) => node.html))
}"""
LABORATORY = ("KV_cache", "Precision", "Pruning", "Parallel", "Limits", "Training")
OTHERS = ("Tokens", "Attention", "Layers", "Beam_search", "Compare")
FOCUS = """() => {
  let node = document.activeElement
  while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement
  return node.getAttribute("class") ?? node.localName
}"""


@pytest.fixture
def opened(lent, ready):
    """``opened(address)``: a page that has drawn its components and holds still."""

    def open_page(address):
        context = lent(color_scheme="light", bypass_csp=True, reduced_motion="reduce")
        page = context.new_page()
        page.goto(address)
        ready(page)
        page.locator(".player .control.step").wait_for(timeout=120_000)
        ready(page)
        return page

    return open_page


HEADINGS = """() => {
  const found = []
  const walk = (node) => {
    if (/^H[1-6]$/.test(node.tagName)) found.push([Number(node.tagName[1]), node.textContent])
    for (const child of (node.shadowRoot ?? node).children) walk(child)
  }
  walk(document.querySelector("[data-testid=stMain]"))
  return found
}"""


def jumps(page):
    """Headings that skip a level, each with the one before it."""
    found = page.evaluate(HEADINGS)
    assert found[0][0] == 1
    assert len(found) > 1
    pairs = itertools.pairwise(found)
    return [(before, now) for before, now in pairs if now[0] > before[0] + 1]


def in_both_themes(page, ready):
    """The light page, and then the dark one, when it has been drawn anew."""
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.locator(f'.root[data-theme="{theme}"]').first.wait_for()
        ready(page)
        yield theme


@pytest.mark.parametrize("address", ["/", "/Embeddings", "/Probabilities", "/Generate"])
def test_axe_finds_nothing_grave_in_our_components(opened, ready, address):
    page = opened(f"{address}?lang=en&p=0.9&made=3&step=1&layer=2&head=1&key=1")
    if address in HEAVY:
        page.locator(HEAVY[address]).first.wait_for(timeout=120_000)
    if address == "/":
        page.locator("details.tables summary").click()
    page.add_script_tag(content=AXE)
    for theme in in_both_themes(page, ready):
        assert [text for impact, text in page.evaluate(RUN) if impact in GRAVE] == [], theme
    assert jumps(page) == []


@pytest.mark.parametrize("name", LABORATORY)
def test_axe_finds_nothing_grave_in_the_laboratory(opened, ready, name):
    page = opened(f"/{name}?lang=en&model=tiny&prompt=the+thing")
    page.add_script_tag(content=AXE)
    for theme in in_both_themes(page, ready):
        assert [text for impact, text in page.evaluate(RUN) if impact in GRAVE] == [], theme
        assert page.evaluate(FAINT) == [], theme
    assert jumps(page) == []


@pytest.mark.parametrize("name", OTHERS)
def test_no_heading_skips_a_level(opened, name):
    page = opened(f"/{name}?lang=en&model=tiny&prompt=the+thing&max=3")
    assert jumps(page) == []


def test_stepping_to_the_end_keeps_the_focus(opened):
    page = opened("/Generate?lang=en&model=toy&prompt=the&max=2")
    step = page.locator(".control.step")
    step.focus()
    page.keyboard.press("Enter")
    page.locator('.control.step[aria-disabled="true"]').wait_for()
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUS) == "control step"


def test_switching_all_filters_off_keeps_the_focus(opened):
    page = opened("/Probabilities?lang=en&model=toy&prompt=the&p=0.9")
    page.locator(".reset").focus()
    page.keyboard.press("Enter")
    page.locator('.reset[aria-disabled="true"]').wait_for()
    assert page.evaluate(FOCUS) == "reset"


def test_a_step_keeps_the_focus_on_the_same_control(opened):
    page = opened("/Probabilities?lang=en&model=toy&prompt=the")
    page.locator('[data-stage="top_k"] .switch').focus()
    page.keyboard.press("ArrowRight")
    page.locator(".readout", has_text="step 2").wait_for()
    page.wait_for_timeout(500)
    assert page.evaluate(FOCUS) == "switch"


HELD = """() => {
  let node = document.activeElement
  while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement
  return node.textContent.trim() || node.dataset.key || node.type
}"""


def test_the_last_merge_keeps_the_focus(opened):
    page = opened("/Tokens?lang=en")
    last = page.locator(".control.end")
    last.focus()
    page.keyboard.press("Enter")
    page.locator('.control.end[aria-disabled="true"]').wait_for()
    assert page.evaluate(FOCUS) == "control end"


@pytest.mark.parametrize(
    ("selector", "key", "held"),
    [
        ('[data-key="layer"]', "ArrowDown", "layer"),
        ('[data-key="offhead"]', "Enter", "switch this head on again"),
        ("summary >> text=The row in view", "Enter", "The row in view as a table"),
        ("summary >> text=All heads as", "Enter", "All heads as a table"),
    ],
)
def test_what_is_pressed_beside_the_map_keeps_the_focus(opened, selector, key, held):
    page = opened("/Attention?lang=en&layer=2&head=1")
    page.locator(selector).focus()
    page.keyboard.press(key)
    page.wait_for_timeout(1500)
    assert held in page.evaluate(HELD)


def test_the_layer_of_the_rotation_keeps_the_focus(opened):
    page = opened("/Embeddings?lang=en&layer=2&head=1")
    page.locator(".waves rect").first.wait_for()
    page.locator(".controls select").first.focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_timeout(2000)
    assert page.evaluate(HELD).startswith("123")


@pytest.mark.parametrize(
    ("address", "canvas"),
    [("/Attention", '.board[role="application"]'), ("/Layers", "canvas[role=application]")],
)
def test_space_opens_what_the_keys_have_reached_and_does_not_play(opened, address, canvas):
    page = opened(f"{address}?lang=en&layer=2&head=1&at=2")
    page.locator(canvas).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.wait_for_url(lambda url: "layer=3" in url or "layer=4" in url)
    assert page.locator('.control.play[aria-pressed="true"]').count() == 0


def test_a_weight_beside_its_token_stays_on_one_line(opened):
    page = opened("/Attention?lang=en&layer=8&head=8&prompt=%F0%9F%91%A8%E2%80%8D%F0%9F%91%A9+a")
    page.locator(".arcs-body .token .weight").first.wait_for()
    tall = "nodes => Math.max(...nodes.map((node) => node.getBoundingClientRect().height))"
    assert page.locator(".arcs-body .weight, .arcs-body bdi").evaluate_all(tall) < 26


def test_the_last_head_that_is_switched_on_again_keeps_the_focus(opened):
    page = opened("/Attention?lang=en&model=tiny&layer=1&head=1&off=0:1,1:1")
    chips = page.locator(".off-chip")
    expect(chips).to_have_count(2)
    chips.first.focus()
    page.keyboard.press("Enter")
    expect(chips).to_have_count(1)
    assert page.evaluate(FOCUS) == "off-chip"
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing is switched off.")).to_be_visible()
    assert page.evaluate(FOCUS) == "nothing"
