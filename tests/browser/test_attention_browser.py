"""Attention in a real browser: the right way round, pointing, clicking, keys, hostile tokens."""

import re
import time

import pytest
from playwright.sync_api import Page, expect

from tools.browser import sideways, tracebacks

PLACE = "&layer=10&head=3"


def open_page(page: Page, ready, query: str = PLACE) -> None:
    page.goto(f"/Attention?lang=en{query}")
    page.locator(".plot").wait_for(timeout=120_000)
    expect(page.get_by_text("This is a stored real run")).to_have_count(0, timeout=120_000)
    ready(page)


def plot(page: Page):
    return page.locator(".plot")


def at_cell(page: Page, row: int, column: int) -> dict[str, float]:
    """Where a cell of the map lies, relative to the map."""
    left, top, wide, high = plot(page).evaluate(
        "n => ['left', 'top', 'wide', 'high'].map(k => Number(n.dataset[k]))"
    )
    return {"x": left + (column + 0.5) * wide, "y": top + (row + 0.5) * high}


def readout(page: Page) -> str:
    return " ".join(page.locator(".map .readout").inner_text().split())


def shown(weight: float) -> str:
    return f"{weight:.4f}" if weight >= 0.001 else f"{weight:.6f}"


def test_the_map_is_the_right_way_round(page, ready, smollm2):
    open_page(page, ready)
    ids = smollm2.vocabulary.read("The capital of France is").ids
    weights = smollm2.forward(ids).attention[10, 3]
    for row, column in ((0, 0), (1, 0), (3, 1), (4, 0), (4, 3), (0, 1), (1, 3), (2, 4)):
        plot(page).hover(position=at_cell(page, row, column))
        said = readout(page)
        assert f"query (attends from) {row} " in said
        assert f"key (attended to) {column} " in said
        if column > row:
            assert "masked, exactly 0" in said
        else:
            assert f": {shown(weights[row, column])} =" in said
    plot(page).hover(position=at_cell(page, 4, 2))
    assert re.search(r"from\) 4 ␣is → key \(attended to\) 2 ␣of", readout(page))
    # The picture itself: dark where the weight is large, transparent panel behind the mask.
    ratio, tones = plot(page).evaluate(
        """n => { const c = n.querySelector("canvas"), d = n.dataset, out = [];
          const ratio = c.width / parseFloat(c.style.width), pen = c.getContext("2d");
          for (let row = 0; row < 5; row++) for (let column = 0; column < 5; column++) {
            const x = (Number(d.left) + (column + .5) * Number(d.wide)) * ratio
            const y = (Number(d.top) + (row + .5) * Number(d.high)) * ratio
            out.push([...pen.getImageData(x, y, 1, 1).data].slice(0, 3).reduce((a, b) => a + b)) }
          return [ratio, out] }"""
    )
    assert ratio > 0
    below = [(weights[r, c], tones[5 * r + c]) for r in range(5) for c in range(r + 1)]
    order = [tone for _, tone in sorted(below, key=lambda pair: -pair[0])]
    assert order == sorted(order), "a larger weight is darker"
    above = {tones[5 * r + c] for r in range(5) for c in range(r + 1, 5)}
    assert len(above) == 1
    assert above.isdisjoint(order)


def test_a_click_works_the_weight_out_and_the_link_keeps_it(page, ready, smollm2):
    open_page(page, ready)
    ids = smollm2.vocabulary.read("The capital of France is").ids
    weights = smollm2.forward(ids).attention[10, 3]
    plot(page).click(position=at_cell(page, 4, 2))
    expect(page).to_have_url(re.compile(r"at=4.*key=2"), timeout=30_000)
    expect(page.locator("p.check")).to_contain_text("✓", timeout=30_000)
    expect(page.locator(".which .value")).to_have_text(shown(weights[4, 2]))
    table = page.locator(".softmax")
    expect(table.locator("tr.chosen")).to_contain_text("␣of")
    expect(table.locator("tfoot")).to_contain_text("1.0000")
    page.locator(".strips").press("ArrowRight")
    expect(page.locator(".step .readout").first).to_contain_text(
        re.compile(r"dimension 0: q .*\s× k")
    )
    table.get_by_role("button", name="0 The").click()
    expect(page).to_have_url(re.compile("key=0"), timeout=30_000)
    expect(page.locator(".which .value")).to_have_text(shown(weights[4, 0]))
    page.locator(".which").get_by_role("button", name="close").click()
    expect(page.locator(".which")).to_have_count(0, timeout=30_000)
    # A key behind the query: the mask says why it is 0.
    open_page(page, ready, "&layer=10&head=3&at=1&key=3")
    expect(page.locator(".steps")).to_contain_text("comes after the query")
    expect(page.locator(".which .value")).to_have_text("0")


def test_the_grid_by_pointer_and_by_keys(page, ready):
    open_page(page, ready)
    board = page.locator(".board")
    expect(page.locator(".told")).to_contain_text("Layer 11, head 4")
    board.focus()
    board.press("ArrowRight")
    board.press("ArrowDown")
    expect(page.locator(".told")).to_contain_text("Layer 12, head 5")
    board.press("Enter")
    expect(page).to_have_url(re.compile(r"layer=11&head=4"), timeout=30_000)
    assert "made=" not in page.url, "the arrow keys must not step the run"
    ready(page)
    expect(page.locator("select[data-key=head]")).to_have_value("4")
    page.locator("select[data-key=by]").select_option("induction")
    grid = page.locator(".root:has(.board)")
    expect(grid).to_have_attribute("data-shown", "270")
    page.locator("input[data-key=limit]").fill("500")
    few = int(grid.get_attribute("data-shown"))
    assert 1 <= few < 40
    page.locator("input[data-key=sorted]").check()
    board.hover(position={"x": 8, "y": 8})
    # The head with the highest induction score of the default model.
    expect(page.locator(".told")).to_contain_text("Layer 19, head 7")
    board.click(position={"x": 8, "y": 8})
    expect(page).to_have_url(re.compile(r"layer=18&head=6"), timeout=30_000)
    page.get_by_text("All heads as a table").click()
    expect(page.locator(".heads-table tbody tr")).to_have_count(few)
    expect(page.locator(".heads-table tbody tr").first).to_contain_text("91")


def test_arcs_follow_the_token_under_the_pointer_and_a_click_pins_it(page, ready):
    open_page(page, ready)
    side = page.locator(".side")
    expect(side.locator(".arcs path")).to_have_count(5)
    side.locator("[data-query='2']").hover()
    expect(side.locator(".arcs path")).to_have_count(3)
    widths = side.locator(".arcs path").evaluate_all(
        "p => p.map(x => Number(x.getAttribute('stroke-width')))"
    )
    listed = [float(t) for t in side.locator(".weight").all_inner_texts()]
    assert widths == pytest.approx([max(0.6, 15 * w) for w in listed], abs=0.01)
    assert sum(listed) == pytest.approx(1, abs=2e-4)
    side.locator("[data-column='1']").hover()
    expect(side.locator("h2")).to_contain_text("Who reads this token")
    expect(side.locator(".arcs path")).to_have_count(4)
    side.locator("[data-query='2']").click()
    expect(page).to_have_url(re.compile("at=2"), timeout=30_000)
    page.locator(".notes").hover()
    expect(page.locator(".root:has(.plot)")).to_have_attribute("data-query", "2")
    expect(side.locator("[data-query='2']")).to_have_attribute("aria-pressed", "true")
    plot(page).focus()
    plot(page).press("ArrowUp")
    assert "attends from) 1" in readout(page)
    plot(page).press("Escape")
    expect(page).not_to_have_url(re.compile("at="), timeout=30_000)


def test_the_first_token_can_be_hidden_and_the_scale_is_that_of_the_data(page, ready):
    open_page(page, ready, "&layer=10&head=-1")
    ticks = page.locator(".legend-ticks span")
    assert ticks.last.inner_text() == "1.0000"
    page.locator("input[data-key=hide_first]").check()
    expect(page.locator(".warn")).to_contain_text("not renormalised")
    assert float(ticks.last.inner_text()) < 0.9
    page.locator("input[data-key=log_scale]").check()
    low, middle, high = (float(text) for text in ticks.all_inner_texts())
    assert middle == pytest.approx((low * high) ** 0.5, rel=0.02)
    page.get_by_role("button", name="last token, all layers").click()
    expect(page.locator(".label.row")).to_have_count(30)
    plot(page).click(position=at_cell(page, 16, 3))
    expect(page).to_have_url(re.compile("layer=16"), timeout=30_000)


def test_a_head_is_switched_off_and_on_again(page, ready):
    open_page(page, ready, "&layer=0&head=2")
    page.get_by_role("button", name="switch this layer off").click()
    expect(page).to_have_url(re.compile(r"off=0(:|%3A)-1"), timeout=30_000)
    effect = page.locator(".root:has(.shifts)")
    effect.wait_for(timeout=30_000)
    assert float(effect.get_attribute("data-kl")) > 0.1
    expect(effect.locator("tr.chosen")).to_contain_text("␣Paris")
    page.get_by_role("button", name="Write on, with and without").click()
    expect(effect.locator(".texts")).to_contain_text("same dice", timeout=120_000)
    page.locator(".off-chip").click()
    expect(page).not_to_have_url(re.compile("off="), timeout=30_000)
    expect(page.get_by_text("Nothing is switched off.")).to_be_visible()
    page.get_by_text("gradient × input", exact=True).click()
    expect(page.locator(".attribution tbody tr")).to_have_count(5, timeout=30_000)


CUT = """plot => {
  const home = plot.getBoundingClientRect()
  return [...plot.querySelectorAll("text.label")].filter((name) => {
    const box = name.getBoundingClientRect()
    return box.top < home.top - 1 || box.right > home.right + 1 || box.bottom > home.bottom + 1
  }).map((name) => name.textContent)
}"""


@pytest.mark.parametrize("width", [390, 1280])
def test_the_axes_name_the_last_token_and_cut_no_name(page, ready, width):
    page.set_viewport_size({"width": width, "height": 900})
    text = " ".join(f"word{n}" for n in range(30))
    page.goto(f"/Attention?lang=en&model=tiny&layer=1&head=1&prompt={text}")
    plot(page).wait_for(timeout=120_000)
    ready(page)
    last = int(page.locator(".label.row").last.get_attribute("data-row"))
    assert page.locator(".label.column").last.get_attribute("data-column") == str(last)
    assert page.locator(f".side [data-query='{last}']").count() == 1
    assert plot(page).evaluate(CUT) == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_phone_shows_the_weights_of_a_row_whole(page, ready, smollm2, lang):
    page.set_viewport_size({"width": 390, "height": 844})
    # Long names, a score below zero and the masked row: the widest that a row can be.
    text = "Everything considered, international representatives nevertheless acknowledged it"
    page.goto(f"/Attention?lang={lang}&layer=20&head=3&at=6&key=3&prompt={text}")
    table = page.locator("table.softmax")
    table.wait_for(timeout=120_000)
    ready(page)
    assert "−∞" in table.inner_text()
    assert sideways(page) == []
    edges = "n => [n, n.closest('.step')].map((box) => box.getBoundingClientRect().right)"
    own, frame = table.evaluate(edges)
    assert own <= frame


def test_hostile_tokens_are_text(page, ready):
    prompt = (
        "%3Cb%3Ebold%3C%2Fb%3E%20%24x%24%0A%0A%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E " + "a" * 300
    )
    open_page(page, ready, f"&layer=3&head=1&key=0&prompt={prompt}")
    assert (
        page.locator(".root b, .root img").evaluate_all(
            "nodes => nodes.filter(n => n.textContent === 'bold' || n.localName === 'img').length"
        )
        == 0
    )
    names = page.locator(".side bdi").all_inner_texts()
    assert any("<" in name for name in names)
    assert tracebacks(page) == []
    assert sideways(page) == []


def test_five_hundred_tokens_are_soon_there_and_the_page_stays_small(page, ready):
    received: list[int] = []
    page.on("websocket", lambda ws: ws.on("framereceived", lambda data: received.append(len(data))))
    open_page(page, ready)
    sentence = "The old library at the edge of the town had been closed for years. "
    area = page.locator("[data-testid=stSidebar] textarea").first
    area.fill(sentence * 34)
    received.clear()
    began = time.monotonic()
    area.press("Control+Enter")
    root = page.locator(".root:has(.plot)")
    expect(page.locator(".side [data-query='509']")).to_be_visible(timeout=120_000)
    took = time.monotonic() - began
    assert took < 45, "the forward pass included, on a machine that is busy with other tests"
    assert sum(received) < 5_000_000
    plot(page).hover(position=at_cell(page, 400, 100))
    said = readout(page)
    assert "from) 400" in said or "from) 399" in said or "from) 401" in said
    expect(root).to_be_visible()
