"""A picture of every page, language, theme and width: ``make look``, ``make look PAGES=home``.

The pictures and one contact sheet a page go to ``.look/``. Exits with 1 when a page can be
scrolled sideways, shows an error that nobody caught, complains in the console, or calls out.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tools import browser as real

OUT = real.ROOT / ".look"
LANGUAGES = ("en", "zh")
THEMES = ("light", "dark")
WIDTHS = (390, 1920)
HEIGHT = 1000
TALLEST = 12000
"""Pixels. Chromium runs out of memory on endless pages, and so do readers."""


@dataclass(frozen=True)
class Shot:
    page: str
    lang: str
    theme: str
    width: int

    @property
    def path(self) -> Path:
        return OUT / f"{self.page}-{self.lang}-{self.theme}-{self.width}.png"


def addresses() -> dict[str, str]:
    """Name of each page (as its file, lower case) → its path in the address bar."""
    found = {"home": "/"}
    for path in sorted(
        (real.ROOT / "pages").glob("*_*.py"), key=lambda p: int(p.stem.split("_")[0])
    ):
        name = path.stem.split("_", 1)[1]
        found[name.lower()] = "/" + name
    return found


def wait_for_model(page: Page, url: str, seconds: float) -> bool:
    """Open the first page and wait until no load is in progress any more."""
    page.goto(url)
    real.ready(page, within=120)
    loading = page.locator("[data-testid=stSidebar] [data-testid=stProgress]")
    try:
        loading.first.wait_for(state="detached", timeout=seconds * 1000)
    except Exception:
        return False
    return True


def take(page: Page, url: str, shot: Shot, query: str) -> list[str]:
    page.set_viewport_size({"width": shot.width, "height": HEIGHT})
    page.goto(f"{url}?lang={shot.lang}{query}")
    real.ready(page, within=120)
    wrong = [f"shows an error: {text[:200]}" for text in real.tracebacks(page)]
    wrong += real.sideways(page)
    # Streamlit scrolls a box inside the page, so the window has to grow to hold all of it.
    tall = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": shot.width, "height": max(HEIGHT, min(TALLEST, tall))})
    real.ready(page)
    page.screenshot(path=shot.path)
    return wrong


def unfold_menu(page: Page, url: str, lang: str, theme: str) -> list[str]:
    """A picture of the sidebar on a phone, where it is folded away."""
    page.goto(f"{url}/?lang={lang}")
    real.ready(page, within=120)
    page.get_by_test_id("stExpandSidebarButton").click()
    page.wait_for_timeout(600)
    page.screenshot(path=OUT / f"menu-{lang}-{theme}-{WIDTHS[0]}.png")
    return real.sideways(page)


def sheet(name: str, shots: list[Shot]) -> Path:
    """All pictures of one page beside each other, the wide ones at a third of their size."""
    pictures = []
    for shot in shots:
        picture = Image.open(shot.path).convert("RGB")
        scale = 1 / 3 if shot.width > 1000 else 1 / 2
        pictures.append(
            picture.resize((round(picture.width * scale), round(picture.height * scale)))
        )
    gap = 12
    width = sum(p.width for p in pictures) + gap * (len(pictures) + 1)
    board = Image.new("RGB", (width, max(p.height for p in pictures) + 2 * gap), "#888888")
    x = gap
    for picture in pictures:
        board.paste(picture, (x, gap))
        x += picture.width + gap
    path = OUT / f"{name}.png"
    board.save(path)
    return path


def look(browser: Browser, url: str, pages: dict[str, str], query: str) -> list[str]:
    report: list[str] = []
    done: dict[str, list[Shot]] = {name: [] for name in pages}
    for theme, width in itertools.product(THEMES, WIDTHS):
        context = browser.new_context(
            color_scheme=theme, viewport={"width": width, "height": HEIGHT}, locale="en-US"
        )
        real.listen(context)
        for name, lang in itertools.product(pages, LANGUAGES):
            shot = Shot(name, lang, theme, width)
            wrong: list[str] = []
            page = context.new_page()
            page.on("pageerror", lambda error, wrong=wrong: wrong.append(f"script: {error}"))
            wrong += take(page, url + pages[name], shot, query)
            page.close()
            done[name].append(shot)
            print(f"  {shot.path.name}  {'; '.join(wrong) or 'ok'}", flush=True)
            report += [f"{shot.path.name}: {line}" for line in wrong]
        context.close()
    if "home" in pages:
        for theme, lang in itertools.product(THEMES, LANGUAGES):
            # The browser remembers an unfolded sidebar, so each of these is a new one.
            context = browser.new_context(
                color_scheme=theme, viewport={"width": WIDTHS[0], "height": HEIGHT}
            )
            real.listen(context)
            wrong = unfold_menu(context.new_page(), url, lang, theme)
            report += [f"menu-{lang}-{theme}: {line}" for line in wrong]
            context.close()
    for name, shots in done.items():
        order = sorted(shots, key=lambda s: (s.width, LANGUAGES.index(s.lang), s.theme))
        print(f"  sheet: {sheet(name, order).relative_to(real.ROOT)}")
    return report


def main() -> int:
    known = addresses()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", nargs="*", help=f"any of: {', '.join(known)} (default: all)")
    parser.add_argument("--url", help="of a server that runs already")
    parser.add_argument(
        "--query", default="", help="more of the address, such as 'prompt=Hi&made=3'"
    )
    parser.add_argument("--wait", type=float, default=60, help="seconds for the model to load")
    choice = parser.parse_args()
    unknown = set(choice.pages) - known.keys()
    if unknown:
        parser.error(f"no such page: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    pages = {name: known[name] for name in choice.pages or known}
    query = "&" + choice.query if choice.query else ""
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(**real.launch_options())
        if choice.url:
            report = look(browser, choice.url.rstrip("/"), pages, query)
        else:
            with real.serving(Path(folder) / "log.txt") as server:
                page = browser.new_page()
                if not wait_for_model(page, server.url, choice.wait):
                    print("  The model is still loading; the pictures show the stored run.")
                page.close()
                report = look(browser, server.url, pages, query)
                complaint = real.complaint_in(server.said())
                if complaint:
                    report.append("the server's log has a traceback:\n" + complaint[-3000:])
        browser.close()
    print("\n".join(report) or "All pages are as wide as their window.")
    return bool(report)


if __name__ == "__main__":
    sys.exit(main())
