"""When a page has nothing left to do: no run asked for, none going on, nothing moving.

The page's own marker ("the script is not running") is not enough: it says so, too, between a
click and the run that the click asks for. So the conversation over the websocket is read.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from playwright.sync_api import BrowserContext, Page, WebSocket
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

QUIET: Final = 0.3
"""Seconds without anything to do. Streamlit waits 0.2 s for a slider's next move."""
LOOKS: Final = 5
"""Times that this is seen in a row, two frames apart: a busy machine draws slowly."""
STATE: Final = """async () => {
  const frame = () => new Promise((go) => requestAnimationFrame(go))
  await frame()
  await frame()
  const idle =
    document.querySelector("[data-testid=stApp][data-test-script-state=notRunning]") !== null
    && document.querySelector("[data-testid=stSkeleton]") === null
  return [idle, document.querySelector("[data-testid=stMain]")?.scrollHeight ?? 0]
}"""
"""Whether nothing is to be done, and how tall the page is: while a box opens, or a table takes its
place in it, a press would miss."""


@dataclass
class Talk:
    """What a page asked its server for, and whether it was answered."""

    waiting: bool = False
    """A run was asked for and has not come to its end."""
    begun: bool = False
    """A run began after the last question."""
    heard: float = 0.0
    """When either side last spoke of a run (monotonic seconds)."""

    def opened(self, socket: WebSocket) -> None:
        if "/_stcore/stream" not in socket.url:
            return
        # A page asks for its first run as soon as it is connected.
        self._asked()
        socket.on("framesent", self.sent)
        socket.on("framereceived", self.received)

    def sent(self, payload: str | bytes) -> None:
        if isinstance(payload, str):
            return
        message = BackMsg.FromString(payload)
        # A page that polls would never be ready on a slow machine.
        if message.HasField("rerun_script") and not message.rerun_script.is_auto_rerun:
            self._asked()

    def received(self, payload: str | bytes) -> None:
        if isinstance(payload, str):
            return
        message = ForwardMsg.FromString(payload)
        if message.HasField("new_session"):
            self.begun, self.heard = True, time.monotonic()
        elif message.HasField("script_finished"):
            self.heard = time.monotonic()
            early = message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN
            if self.begun and not early:
                self.waiting = False

    def _asked(self) -> None:
        self.waiting, self.begun, self.heard = True, False, time.monotonic()


_TALKS: Final[WeakKeyDictionary[Page, Talk]] = WeakKeyDictionary()


def listen(context: BrowserContext) -> None:
    """Follow what the pages opened in ``context`` from now on say to their server."""

    def follow(page: Page) -> None:
        talk = _TALKS[page] = Talk()
        page.on("websocket", talk.opened)

    context.on("page", follow)


def ready(page: Page, *, within: float = 120) -> None:
    """Wait until every run that the page asked for is over and everything has been drawn.

    Raises TimeoutError after ``within`` seconds, with what was still missing.
    """
    talk = _TALKS.get(page)
    end = time.monotonic() + within
    since, seen, tall = 0.0, 0, -1
    while True:
        before = tall
        idle, tall = page.evaluate(STATE)
        waiting = talk is not None and talk.waiting
        now = time.monotonic()
        if waiting or not idle or tall != before:
            seen = 0
        else:
            since, seen = (since if seen else now), seen + 1
            if seen >= LOOKS and now - max(since, talk.heard if talk else 0.0) >= QUIET:
                return
        if now > end:
            why = "a run that it asked for" if waiting else "its script, a chart, or its height"
            raise TimeoutError(f"after {within} s {page.url} still waits for {why}")
        page.wait_for_timeout(40)
