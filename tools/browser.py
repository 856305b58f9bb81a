"""A real server and a real browser, for the browser tests, the pictures and the measurements."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Page

from tools.ready import listen, ready

__all__ = [
    "Server",
    "complaint_in",
    "launch_options",
    "listen",
    "ready",
    "serving",
    "sideways",
    "tracebacks",
    "watch",
]

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOME_ADDRESSES = {"127.0.0.1", "localhost"}
# Streamlit asks for these below the name of the page as well, when a link opens a page.
KNOWN_404 = ("/_stcore/health", "/_stcore/host-config")


def launch_options() -> dict[str, object]:
    """Arguments for Playwright's ``launch``: the browser of the system, else Playwright's own."""
    own = os.environ.get("TOKEN_BY_TOKEN_CHROMIUM")
    found = own or next(filter(None, map(shutil.which, NAMES)), None)
    options: dict[str, object] = {"args": FLAGS}
    if found:
        options["executable_path"] = found
    return options


TRACEBACK = "Traceback (most recent call last)"
_GONE = re.compile(
    r"Exception in ASGI application\n(?:(?!Exception in ASGI application).)*?"
    r'WebSocketDisconnected: Cannot call "send" once a close message has been sent\.\n',
    re.DOTALL,
)


@dataclass(frozen=True)
class Server:
    url: str
    log: Path
    process: subprocess.Popen[bytes]

    def said(self, start: int = 0) -> str:
        """What the server wrote to its terminal, from byte ``start`` on."""
        return self.log.read_bytes()[start:].decode(errors="replace")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def complaint_in(log: str) -> str:
    """What a server's log says of errors; empty where all is well.

    Streamlit itself stumbles when a page is gone before its connection stands. A busy machine
    is slow enough for that, and nobody is harmed.
    """
    rest = _GONE.sub("", log)
    return rest if TRACEBACK in rest else ""


@contextmanager
def serving(
    log: Path, *, env: Mapping[str, str] | None = None, port: int | None = None, within: float = 60
) -> Iterator[Server]:
    """``streamlit run app.py`` until the block ends. Raises RuntimeError if it does not start."""
    port = port or free_port()
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"]
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", **(env or {})}
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out)
    server = Server(f"http://127.0.0.1:{port}", log, process)
    try:
        _wait_for(server, within)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(server: Server, within: float) -> None:
    end = time.monotonic() + within
    while time.monotonic() < end and server.process.poll() is None:
        try:
            with urllib.request.urlopen(server.url + "/_stcore/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(f"the app did not start within {within} s:\n{server.said()}")


def watch(context: BrowserContext, wrong: list[str]) -> None:
    """Add to ``wrong`` each request that leaves this computer and each error on a page."""
    listen(context)

    def on_request(url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in HOME_ADDRESSES:
            wrong.append(f"asked for {url}")

    def on_console(kind: str, text: str, url: str) -> None:
        known = "404" in text and urlsplit(url).path.endswith(KNOWN_404)
        if kind == "error" and not known:
            wrong.append(f"console: {text} ({url})")

    context.on("request", lambda request: on_request(request.url))
    context.on("page", lambda page: page.on("websocket", lambda socket: on_request(socket.url)))
    context.on("console", lambda m: on_console(m.type, m.text, m.location.get("url", "")))
    context.on("weberror", lambda error: wrong.append(f"script: {error.error}"))


SIDEWAYS = """() => {
  const rooms = [document.scrollingElement,
    ...document.querySelectorAll("[data-testid=stAppViewContainer], [data-testid=stMain]"),
    ...document.querySelectorAll("[data-testid=stSidebarContent]")]
  const inside = function* (node) {
    for (const child of node.children) {
      yield child
      yield* inside(child)
      if (child.shadowRoot) yield* inside(child.shadowRoot)
    }
  }
  return rooms.flatMap((room) => {
    const pixels = room.scrollWidth - room.clientWidth
    const folded = room.getBoundingClientRect().right <= 0
    if (pixels <= 0 || folded) return []
    const edge = room.getBoundingClientRect().left + room.clientWidth
    let widest = null, most = edge + 0.5
    for (const node of inside(room)) {
      const { right, width } = node.getBoundingClientRect()
      if (width > 0 && right >= most) { most = right; widest = node }
    }
    const name = `${widest?.localName}.${widest?.getAttribute("class")}`.slice(0, 40)
    const text = (widest?.textContent ?? "").trim().slice(0, 40)
    const where = room.dataset.testid ?? "the document"
    return [`${where} scrolls ${pixels} px sideways: ${name} "${text}"`]
  })
}"""


def sideways(page: Page) -> list[str]:
    """A sentence for each part of the page that can be scrolled sideways; none is right."""
    found: list[str] = page.evaluate(SIDEWAYS)
    return found


def tracebacks(page: Page) -> list[str]:
    """Texts of the boxes in which Streamlit shows an error that nobody caught."""
    return page.locator("[data-testid=stException]").all_inner_texts()
