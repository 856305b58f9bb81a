"""How long a start takes: server up, first content on screen, page complete, model ready.

Two starts are made; the second is the one that a person sees every day. Goals: page up in
5 s, model ready in 5 s more.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from core.models.catalog import DEFAULT, resolve, state_on_disk
from tools import browser as real

READY = "text=/^Ready · /"
CONTENT = "[data-testid=stMain] :is(h1, h2, h3, p)"


def start(browser: Browser, log: Path) -> dict[str, float]:
    began = time.perf_counter()
    since: dict[str, float] = {}

    def mark(name: str) -> None:
        since[name] = time.perf_counter() - began

    with real.serving(log) as server:
        mark("server answers")
        page = browser.new_context().new_page()
        page.goto(server.url)
        page.locator(CONTENT).first.wait_for(timeout=60_000)
        mark("first words on screen")
        real.ready(page, within=120)
        mark("page complete")
        page.locator(READY).first.wait_for(state="attached", timeout=120_000)
        mark("model ready")
        page.context.close()
    return since


def main() -> None:
    if state_on_disk(resolve(DEFAULT)) != "ready":
        raise SystemExit(f"{DEFAULT} is not here yet: make models")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(**real.launch_options())
        runs = [start(browser, Path(folder) / f"{n}.txt") for n in range(2)]
        browser.close()
    print("Seconds from `streamlit run` to …      first start   second start")
    for name in runs[0]:
        print(f"  {name:34}{runs[0][name]:12.2f}{runs[1][name]:15.2f}")


if __name__ == "__main__":
    main()
