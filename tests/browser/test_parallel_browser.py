"""Many machines in a real browser: workers come and go with their experiment."""

import time

import psutil
from playwright.sync_api import Page, expect

from tools.browser import Server, sideways, tracebacks


def workers(server: Server) -> list[psutil.Process]:
    """Processes of this server that hold a piece of a model."""
    found = []
    for child in psutil.Process(server.process.pid).children(recursive=True):
        try:
            if "core.lab.parallel.worker" in child.cmdline():
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


def wait_for(condition, within: float = 120.0) -> None:
    until = time.monotonic() + within
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.2)


def test_workers_end_when_stopped_and_a_killed_one_is_told_of(
    page: Page, server, ready, complaints
):
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto("/Parallel?lang=en&model=tiny&prompt=the+thing")
    run = page.locator(".st-key-lab_run_parallel_tensor button")
    run.wait_for(timeout=120_000)
    ready(page)
    assert sideways(page) == []
    run.click()
    wait_for(lambda: len(workers(server)) == 2)
    page.locator(".st-key-lab_stop_parallel_tensor button").click(timeout=60_000)
    expect(page.get_by_text("Stopped before anything was measured")).to_be_visible(timeout=60_000)
    wait_for(lambda: not workers(server), 20)

    # A button with a tooltip stands on the page twice, once for touch screens.
    page.locator(".st-key-lab_again_parallel_tensor button:visible").click()
    wait_for(lambda: len(workers(server)) == 2)
    workers(server)[1].kill()
    expect(page.get_by_text("was ended from outside (SIGKILL)")).to_be_visible(timeout=60_000)
    wait_for(lambda: not workers(server), 20)
    assert tracebacks(page) == []
