"""The guard of the browser tests can fail, and an untouched page passes it; `ready` waits."""

from playwright.sync_api import expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NewSession_pb2 import NewSession

from tools.browser import complaint_in
from tools.ready import Talk


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


def test_ready_waits_for_a_run_that_is_asked_for_a_moment_later(page, ready):
    page.goto("/Generate?model=toy&prompt=tell+me&p=off&strategy=greedy&lang=en")
    chips = page.locator(".st-key-strip button.chip")
    expect(chips).to_have_count(1, timeout=120_000)
    ready(page)
    # Streamlit's own sliders ask 200 ms after the last move.
    page.locator(".control.step").evaluate("button => setTimeout(() => button.click(), 200)")
    ready(page)
    assert chips.count() == 2


def test_a_question_is_answered_by_a_run_that_began_after_it_and_came_to_its_end():
    talk = Talk()
    talk.sent(BackMsg(rerun_script=ClientState(query_string="a")).SerializeToString())
    assert talk.waiting
    for message, waiting in (
        # the end of the run before
        (ForwardMsg(script_finished=ForwardMsg.FINISHED_SUCCESSFULLY), True),
        (ForwardMsg(new_session=NewSession()), True),
        # another question cut this one short
        (ForwardMsg(script_finished=ForwardMsg.FINISHED_EARLY_FOR_RERUN), True),
        (ForwardMsg(new_session=NewSession()), True),
        (ForwardMsg(script_finished=ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY), False),
    ):
        talk.received(message.SerializeToString())
        assert talk.waiting is waiting, message
    talk.sent(BackMsg(app_heartbeat=True).SerializeToString())
    talk.sent(BackMsg(rerun_script=ClientState(is_auto_rerun=True)).SerializeToString())
    assert not talk.waiting


GONE = """Exception in ASGI application
  Traceback (most recent call last):
    File "starlette/websockets.py", line 131, in receive_bytes
  starlette.websockets.WebSocketDisconnected: WebSocket is not connected.

  During handling of the above exception, another exception occurred:

  Traceback (most recent call last):
    File "starlette/websockets.py", line 104, in send
  starlette.websockets.WebSocketDisconnected: Cannot call "send" once a close message has been sent.
"""
OURS = """Exception in ASGI application
  Traceback (most recent call last):
    File "ui/frame.py", line 1, in page
  KeyError: 'x'
"""


def test_a_page_that_is_gone_is_no_complaint_and_everything_else_is():
    assert complaint_in("You can now view your app\n" + GONE + GONE) == ""
    assert complaint_in(OURS) == OURS
    assert complaint_in(OURS + GONE) == OURS
    assert complaint_in(GONE + OURS) == OURS
