"""A text of about 512 tokens on every page: what is sent, and how long it takes to be drawn.

The text is typed on each page, so that the forward pass is made once and remembered. Then the
page is drawn anew, in the other language: the model has nothing to do, and what is timed is the
page itself, up to the last chart (the time of watching whether more comes is taken off). Goals:
Attention's grid and head in 2 s, no page above 5 MB.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, WebSocket, sync_playwright

from tools import browser as real
from ui.controls import page_files

TEXT = "The lighthouse keeper wrote down the weather every morning before he lit his pipe. " * 33
GOAL_S, GOAL_MB = 2.0, 5.0


class Received:
    """Bytes that the server sent to a page."""

    def __init__(self, page: Page) -> None:
        self.bytes = 0
        page.on("websocket", self._open)

    def _open(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._add)

    def _add(self, payload: str | bytes) -> None:
        self.bytes += len(payload)


def watching(page: Page) -> float:
    """Seconds that ``ready`` itself takes on a page where nothing happens."""
    real.ready(page)
    began = time.perf_counter()
    real.ready(page)
    return time.perf_counter() - began


def measured(page: Page, received: Received, url: str) -> tuple[float, float, float, str]:
    """(MB of the first drawing, MB of the second, seconds of the second, what was read)."""
    page.goto(url)
    page.locator("text=/^Ready · /").first.wait_for(state="attached", timeout=120_000)
    real.ready(page)
    before = received.bytes
    field = page.get_by_label("Prompt", exact=True).first
    field.fill(TEXT)
    field.press("Control+Enter")
    real.ready(page)
    first = received.bytes - before
    said = page.locator("text=/^This prompt has /").first.inner_text()
    idle = watching(page)
    before, began = received.bytes, time.perf_counter()
    page.get_by_text("简体中文", exact=True).first.click()
    real.ready(page)
    seconds = time.perf_counter() - began - idle
    return first / 1e6, (received.bytes - before) / 1e6, seconds, said.split(".")[0]


def main() -> None:
    print(f"{'page':16}{'sent first':>12}{'sent again':>12}{'drawn again':>13}")
    worst, attention = 0.0, 0.0
    with (
        tempfile.TemporaryDirectory() as folder,
        real.serving(Path(folder) / "server.log") as server,
        sync_playwright() as player,
        player.chromium.launch(**real.launch_options()) as browser,  # type: ignore[arg-type]
    ):
        for address, area in (("", "home"), *page_files()):
            name = "" if not address else Path(address).stem.split("_", 1)[1]
            context = browser.new_context(viewport={"width": 1366, "height": 768})
            real.listen(context)
            page = context.new_page()
            received = Received(page)
            first, again, seconds, said = measured(page, received, f"{server.url}/{name}")
            print(
                f"{area:16}{first:>9.2f} MB{again:>9.2f} MB{seconds:>11.2f} s   {said}", flush=True
            )
            worst = max(worst, first, again)
            attention = seconds if area == "attention" else attention
            context.close()
    print(f"\nAttention drawn in {attention:.2f} s   (goal < {GOAL_S:.0f} s)")
    print(f"most sent: {worst:.2f} MB   (goal < {GOAL_MB:.0f} MB)")
    raise SystemExit(0 if attention < GOAL_S and worst < GOAL_MB else 1)


if __name__ == "__main__":
    main()
