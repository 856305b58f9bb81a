"""The guard of the browser tests can fail, and an untouched page passes it."""


def test_home_is_served_and_quiet(page, server, ready, complaints):
    page.goto("/")
    ready(page)
    assert page.get_by_test_id("stApp").is_visible()
    assert page.get_by_test_id("stException").count() == 0
    assert complaints == []
    assert server.url.startswith("http://127.0.0.1:")


def test_guard_notices_what_it_must(page, ready, complaints):
    page.route("http://elsewhere.invalid/*", lambda route: route.fulfill(body="x"))
    page.goto("/")
    ready(page)
    page.evaluate("fetch('http://elsewhere.invalid/pixel', {mode: 'no-cors'})")
    page.evaluate("console.error('broken')")
    page.evaluate("setTimeout(() => { throw new Error('thrown') })")
    page.wait_for_timeout(300)
    kinds = {line.split()[0] for line in complaints}
    assert kinds == {"asked", "console:", "script:"}, complaints
    complaints.clear()
