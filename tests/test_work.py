"""Times of work: what was waited for is no part of them, and memory takes none."""

import threading

import pytest

from core.decode.beam import search
from core.engine.local import LocalEngine
from core.engine.work import ModelLock, passed, working
from core.models.tiny import tiny_of
from core.settings import BeamSettings
from ui.beam_source import Source, greedy_of, reader_of

PROMPT = (3, 5, 7)


def fresh() -> LocalEngine:
    return LocalEngine(tiny_of("llama"))


def test_waiting_for_the_model_is_no_work():
    """A thread that only waits has all of its time for waiting."""
    lock, held, found = ModelLock(), threading.Event(), []

    def wait() -> None:
        with working() as work:
            held.set()
            with lock:
                pass
        found.append(work)

    with lock:
        thread = threading.Thread(target=wait)
        thread.start()
        held.wait()
        # Long enough to be told from starting a thread.
        threading.Event().wait(0.2)
    thread.join()
    (work,) = found
    assert work.waited > 0.1
    assert work.ms < 1000 * work.waited / 2
    assert work.passes == 0
    assert not lock.locked()


def test_what_is_done_within_is_part_of_what_is_around_it():
    passed()  # nobody watches
    with working() as outer:
        passed()
        with working() as inner:
            passed()
    assert (outer.passes, inner.passes) == (2, 1)
    assert outer.seconds >= inner.seconds


def test_a_pass_is_computed_once_and_then_remembered():
    engine = fresh()
    for passes in (1, 0):
        with working() as work:
            engine.forward(PROMPT)
        assert work.passes == passes
    with working() as work:
        engine.next_logits([(*PROMPT, 1), (*PROMPT, 2)], prompt_length=3, run="a")
    assert work.passes > 0


@pytest.mark.parametrize("width", [1, 3])
def test_a_search_of_what_is_remembered_takes_no_time(width):
    source = Source(fresh(), PROMPT)
    settings = BeamSettings(width=width, max_new=4)
    settings = greedy_of(settings) if width == 1 else settings
    reader = reader_of(source, settings)
    wanted = ((),)
    assert reader(wanted)[1] > 0
    assert reader(wanted)[1] == 0


def test_steps_without_a_pass_are_not_among_those_that_were_timed():
    """A provider that computes nothing leaves steps with the time of choosing only."""
    engine, settings = fresh(), BeamSettings(width=2, max_new=3)

    def rows(prefixes):
        return engine.next_logits([(*PROMPT, *p) for p in prefixes], prompt_length=3, run="b")

    found = search(rows, settings, (), prompt=PROMPT)
    assert found.timed == len(found.steps) == 3
    assert found.ms == sum(step.ms for step in found.steps)
