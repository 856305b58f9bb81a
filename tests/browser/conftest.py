"""Every test here fails when the page complains, calls out, or the server shows a traceback."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tools import browser as real

# A busy machine is slow, not wrong: what is there in time is not waited for any longer.
expect.set_options(timeout=30_000)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    options = real.launch_options()
    # So that a page finds what another one of its context has compiled.
    options["args"] = [*options["args"], "--process-per-site"]
    return {**browser_type_launch_args, **options}


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


@pytest.fixture(scope="session")
def heard():
    """What went wrong on any page."""
    return []


@pytest.fixture
def complaints(heard):
    """What went wrong on any page of the test; a test that means to provoke it clears the list."""
    heard.clear()
    return heard


@pytest.fixture
def quiet(complaints, server):
    """Nothing that nobody meant to provoke goes wrong, on a page or in the server."""
    start = server.log.stat().st_size
    yield
    assert complaints == []
    assert real.complaint_in(server.said(start)) == ""


@pytest.fixture
def new_context(new_context, complaints, quiet):
    """Playwright's, watched: a person of its own."""

    def make(**options):
        context = new_context(**options)
        real.watch(context, complaints)
        return context

    return make


@pytest.fixture(scope="session")
def profiles(browser, browser_context_args, heard, server):
    """``profiles(**options)``: the one context with these options, and its first page, which
    stays open. A page beside it takes three fifths of the time of one in a new context, where
    the browser reads and compiles every script again."""
    made = {}

    def profile(**options):
        key = tuple(sorted(options.items()))
        if key not in made:
            context = browser.new_context(**browser_context_args, **options)
            real.watch(context, heard)
            first = context.new_page()
            first.goto(f"{server.url}/Layers?lang=en")
            real.ready(first)
            made[key] = (context, first)
        return made[key]

    yield profile
    for context, _ in made.values():
        context.close()


@pytest.fixture
def lent(profiles, quiet):
    """``lent(**options)``: a context that other tests use too, and that is left as if new."""
    used = []

    def lend(**options):
        used.append(profiles(**options))
        return used[-1][0]

    yield lend
    for context, first in used:
        for page in context.pages:
            if page is not first:
                page.close()
        first.evaluate("localStorage.clear()")
        context.clear_cookies()
        context.clear_permissions()


@pytest.fixture
def context(lent):
    """Of the ``page`` of a test."""
    return lent()


@pytest.fixture
def ready():
    """``ready(page)``: wait until the script has run and every chart has been drawn."""
    return real.ready
