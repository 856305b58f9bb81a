"""Probabilities in a real browser: what moves at once, what is heard, what stays text."""

import json
import re
import statistics

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from core.decode import choose
from core.settings import Settings
from tools.browser import sideways, tracebacks

FRAME_MS = 50

# Drag through many values, one a frame, and note how long each took: the computation and the
# DOM (as the component measures itself), and until the frame after it.
DRAG = """async (slider) => {
  const root = slider.getRootNode().querySelector(".root")
  const own = [], painted = []
  const next = () => new Promise((done) => requestAnimationFrame(done))
  for (let i = 0; i < 40; i++) {
    slider.value = String(Math.round(((i % 20) / 20) * Number(slider.max)))
    const began = performance.now()
    slider.dispatchEvent(new Event("input"))
    await next()
    await next()
    painted.push(performance.now() - began)
    own.push(Number(root.dataset.ms))
  }
  return { own, painted }
}"""


def open_page(page: Page, ready, query: str = "") -> None:
    page.goto(f"/Probabilities?lang=en{query}")
    page.locator(".cards").wait_for(timeout=60_000)
    ready(page)
    # The live model takes over from the stored run: wait for it, so that nothing moves later.
    expect(page.get_by_text("This is a stored real run")).to_have_count(0, timeout=60_000)
    ready(page)


def card(page: Page, name: str):
    return page.locator(f".card[data-stage={name}]")


def rows(page: Page) -> dict[int, float]:
    """Token id → probability after the filters, as the rows have it."""
    found = page.locator(".rows:not(.found) tr[data-id]").evaluate_all(
        "rows => rows.map(r => [Number(r.dataset.id), Number(r.dataset.after)])"
    )
    return {int(id): after for id, after in found}


def root(page: Page):
    return page.locator(".root:has(.cards)")


def agreed(page: Page) -> None:
    expect(root(page)).to_have_attribute("data-agrees", "yes", timeout=30_000)


def test_a_drag_moves_the_bars_without_the_server_and_the_release_is_heard(page, ready):
    sent: list[object] = []
    page.on("websocket", lambda ws: ws.on("framesent", lambda _: sent.append(1)))
    open_page(page, ready)
    agreed(page)
    before = rows(page)
    assert page.locator(".rows:not(.found) tr[data-id]").first.locator(".label").inner_text() == (
        "␣Paris"
    )
    slider = card(page, "temperature").get_by_role("slider")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.wait_for_timeout(300)
    sent.clear()
    page.mouse.move(box["x"] + box["width"] * 0.4, middle)
    page.mouse.down()
    for part in (0.5, 0.6, 0.7, 0.8):
        page.mouse.move(box["x"] + box["width"] * part, middle)
        page.wait_for_timeout(40)
    during = rows(page)
    assert sent == []
    assert during[7042] < before[7042] / 2
    assert card(page, "temperature").get_attribute("data-off") == "false"
    expect(root(page)).to_have_attribute("data-agrees", "waiting")
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"[?&]t=\d"), timeout=30_000)
    agreed(page)
    assert sent
    assert rows(page) == during


def test_every_slider_reweights_the_whole_vocabulary_within_a_frame(page, ready):
    open_page(page, ready)
    for name in ("temperature", "top_k", "top_p", "min_p"):
        slider = card(page, name).get_by_role("slider")
        times = slider.evaluate(DRAG)
        assert statistics.median(times["own"]) <= FRAME_MS, (name, times)
    assert "49,152 tokens re-weighted" in root(page).locator(".foot .speed").inner_text()


def test_browser_and_core_agree_to_a_millionth_after_every_release(page, ready):
    open_page(page, ready, "&p=0.9")
    for name, text in [
        ("temperature", "1.7"),
        ("top_k", "300"),
        ("top_p", "0.97"),
        ("min_p", "0.01"),
    ]:
        field = card(page, name).get_by_role("spinbutton")
        field.fill(text)
        field.press("Enter")
        expect(page).to_have_url(re.compile(re.escape(text)), timeout=30_000)
        agreed(page)
    assert "largest difference" in page.locator(".agree").inner_text()
    shown = sum(rows(page).values()) + float(page.locator("tr.others").get_attribute("data-after"))
    assert shown == pytest.approx(1, abs=1e-9)


def test_typed_numbers_are_those_of_the_core(page, ready):
    open_page(page, ready, "&own=p:a 0.4, b 0.3, c 0.2, d 0.1&t=1.4&m=0.3")
    agreed(page)
    settings = Settings(temperature=1.4, top_p=0.9, min_p=0.3)
    logits = np.log([0.4, 0.3, 0.2, 0.1])
    last = choose(logits, settings, step=0).stages[-1].logits
    expected = np.exp(last - last.max()) / np.exp(last - last.max()).sum()
    got = rows(page)
    assert [got[i] for i in range(4)] == pytest.approx(list(expected), abs=1e-6)


def test_the_order_is_changed_by_button_and_changes_who_survives(page, ready):
    open_page(page, ready, "&own=l:a 3, b 2, c 1, d 0&t=2&p=0.6")
    expect(card(page, "min_p")).to_have_attribute("data-survivors", "2")
    earlier = card(page, "top_p").get_by_role("button", name="Move top-p one place earlier")
    earlier.focus()
    earlier.press("Enter")
    expect(earlier).to_be_focused()
    earlier.press("Enter")
    expect(card(page, "min_p")).to_have_attribute("data-survivors", "1")
    expect(page.get_by_text("The order is not the usual one")).to_be_visible()
    expect(page).to_have_url(re.compile("order=top_p"), timeout=30_000)
    agreed(page)
    order = page.locator(".card[data-stage]").evaluate_all("c => c.map(x => x.dataset.stage)")
    assert order == ["top_p", "temperature", "top_k", "min_p"]
    page.get_by_role("button", name="All filters off").click()
    expect(card(page, "min_p")).to_have_attribute("data-survivors", "4")
    expect(page).not_to_have_url(re.compile("order="), timeout=30_000)
    agreed(page)


def test_any_token_is_found_with_its_numbers_and_can_be_forced(page, ready):
    open_page(page, ready, "&k=3")
    field = page.get_by_role("searchbox", name="Find a token of the vocabulary")
    field.fill("Rome")
    hit = page.locator(".found tr").first
    expect(hit.locator(".label")).to_have_text("␣Rome")
    expect(hit.locator(".why")).to_have_text("removed by top-k")
    assert int(hit.locator(".rank").inner_text()) > 20
    assert float(hit.get_attribute("data-model")) > 0
    id = hit.get_attribute("data-id")
    field.fill("zzzzzzzzqq")
    expect(page.get_by_text("No token of this vocabulary contains that.")).to_be_visible()
    field.fill(f"#{id}")
    page.locator(".found").get_by_role("button", name="␣Rome").click()
    expect(page).to_have_url(re.compile(f"force=0(%3A|:){id}"), timeout=30_000)
    expect(page.locator(".sentence")).to_contain_text("You forced")
    expect(page.locator(".rows:not(.found) tr.chosen .mark")).to_have_text("◀ forced")
    agreed(page)


def test_switch_number_and_keys_say_the_same(page, ready):
    open_page(page, ready, "&own=p:a 0.5, b 0.3, c 0.15, d 0.05&p=off")
    top_k = card(page, "top_k")
    slider, number = top_k.get_by_role("slider"), top_k.get_by_role("spinbutton")
    expect(slider).to_have_attribute("aria-valuetext", "off")
    top_k.get_by_role("switch").click()
    expect(top_k).to_have_attribute("data-survivors", "2")
    expect(slider).to_have_attribute("aria-valuetext", "2")
    expect(number).to_have_value("2")
    slider.press("ArrowRight")
    expect(number).to_have_value("3")
    expect(page).to_have_url(re.compile(r"[?&]k=3"), timeout=30_000)
    number.fill("0")
    expect(top_k.get_by_role("status")).to_have_text("k is a whole number, 1 or more.")
    number.fill("1")
    number.press("Enter")
    expect(top_k).to_have_attribute("data-survivors", "1")
    top_k.get_by_role("switch").click()
    expect(page).not_to_have_url(re.compile(r"[?&]k="), timeout=30_000)
    agreed(page)


def test_greedy_says_that_no_filter_changes_the_winner(page, ready):
    open_page(page, ready, "&strategy=greedy&k=5")
    expect(page.get_by_text("Greedy takes the highest score (logit).")).to_be_visible()
    expect(page.locator(".needle")).to_be_hidden()
    expect(page.locator("tr.chosen .label")).to_have_text("␣Paris")


def test_rows_and_scale_are_chosen_in_the_browser(page, ready):
    open_page(page, ready)
    assert len(rows(page)) == 20
    page.get_by_role("group", name="Rows").get_by_role("button", name="100").click()
    expect(page.locator(".rows:not(.found) tr[data-id]")).to_have_count(100)
    expect(page.locator("tr.others .label")).to_have_text("all others (49,052 tokens)")
    tail = page.locator(".rows:not(.found) tr[data-id] .bar.model").nth(50)
    before = tail.bounding_box()["width"]
    page.get_by_role("group", name="Bars").get_by_role("button", name="log").click()
    page.wait_for_timeout(100)
    assert tail.bounding_box()["width"] > 10 * before


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_hostile_labels_stay_text_and_a_phone_does_not_scroll_sideways(page, ready, lang):
    page.set_viewport_size({"width": 390, "height": 900})
    alerts: list[str] = []
    page.on("dialog", lambda d: (alerts.append(d.message), d.dismiss()))
    own = "p:<img src=x onerror=alert(1)> 0.5, <script>alert(2)</script> 0.3, " + "x" * 40 + " 0.2"
    page.goto(f"/Probabilities?lang={lang}&own={own}")
    page.locator(".cards").wait_for(timeout=60_000)
    ready(page)
    expect(page.locator("tr.chosen .label")).to_have_text("<img␣src=x␣onerror=alert(1)>")
    assert page.locator(".root img, .root script").count() == 0
    assert alerts == []
    assert sideways(page) == []
    assert tracebacks(page) == []


def test_a_table_can_be_downloaded(page, ready):
    open_page(page, ready, "&own=p:=1%2B1 0.5, b 0.5")
    expect(page.get_by_text("134.5M")).to_be_attached(timeout=120_000)
    ready(page)
    page.get_by_text("Table and download").click()
    # The table pushes the button down when it is drawn: a press begun before ends beside it.
    ready(page)
    with page.expect_download() as download:
        page.get_by_test_id("stDownloadButton").get_by_role("button").click()
    text = download.value.path().read_text(encoding="utf-8-sig")
    assert text.splitlines()[1].startswith("1,'=1+1,0,")
    assert json.dumps(text).count("\\n") >= 3
