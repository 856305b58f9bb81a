"""Every test here fails when the page complains, calls out, or the server shows a traceback."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tools import browser as real

# A busy machine is slow, not wrong: what is there in time is not waited for any longer.
expect.set_options(timeout=30_000)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    return {**browser_type_launch_args, **real.launch_options()}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args):
    return {**browser_context_args, "viewport": {"width": 1280, "height": 1000}, "locale": "en-US"}


@pytest.fixture(scope="session")
def server(tmp_path_factory, default_model):
    """The app on a port of its own, with the default model fetched, for all tests."""
    with real.serving(tmp_path_factory.mktemp("server") / "log.txt") as running:
        yield running


@pytest.fixture
def start_server(tmp_path):
    """``start_server(**environment)``: another server, stopped after the test."""
    blocks = []

    def start(**env: str) -> real.Server:
        block = real.serving(Path(tmp_path) / f"server-{len(blocks)}.txt", env=env)
        blocks.append(block)
        return block.__enter__()

    yield start
    for block in reversed(blocks):
        block.__exit__(None, None, None)


@pytest.fixture(scope="session")
def base_url(server):
    """So that ``page.goto("/Generate?lang=zh")`` works."""
    return server.url


@pytest.fixture
def complaints():
    """What went wrong on any page of the test; a test that means to provoke it clears the list."""
    return []


@pytest.fixture
def new_context(new_context, complaints, server):
    """Playwright's, watched."""
    start = server.log.stat().st_size

    def make(**options):
        context = new_context(**options)
        real.watch(context, complaints)
        return context

    yield make
    assert complaints == []
    assert real.complaint_in(server.said(start)) == ""


@pytest.fixture
def ready():
    """``ready(page)``: wait until the script has run and every chart has been drawn."""
    return real.ready
