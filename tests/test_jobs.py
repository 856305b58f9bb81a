"""Long work in threads: shared, watched, stopped, forgotten."""

import itertools
import threading
import time

import pytest

from core.compare_records import Column, Comparison, Question, Text, Written
from core.decode.generate import Stopped
from core.faults import Fault
from core.settings import Settings
from ui import jobs as module
from ui.compare_jobs import size
from ui.jobs import Jobs

QUESTION = Question("a", "toy", (Column(Settings()),))


AT_ONCE = 2


def comparisons():
    return Jobs("compare_failed", size=size, kept_bytes=10**6, at_once=AT_ONCE)


def found(steps: int, *, done: bool = False, cancelled: bool = False) -> Comparison:
    text = Text(0, (), "end_token" if done else None)
    return Comparison(QUESTION, (Written(QUESTION.columns[0], (text,)),), steps, 1.0, cancelled)


class Script:
    """A comparison of ``count`` turns, each of which waits for ``go``."""

    def __init__(self, count: int = 3) -> None:
        self.count, self.made, self.started = count, 0, 0
        self.go = threading.Semaphore(0)

    def __call__(self):
        self.started += 1
        for step in range(1, self.count + 1):
            assert self.go.acquire(timeout=10)
            self.made = step
            try:
                yield found(step, done=step == self.count)
            except Stopped:
                yield found(step, cancelled=True)
                return


def until(condition) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_two_readers_share_one_job_and_its_answer():
    jobs, script = comparisons(), Script()
    job = jobs.start("k", script, "a")
    assert jobs.start("k", script, "b") is job
    assert job.watch("a").value is None
    script.go.release()
    until(lambda: job.watch("a").value is not None)
    assert job.watch("a").running
    script.go.release(2)
    assert not job.wait(10).running
    assert jobs.known("k").done
    assert script.started == 1
    assert jobs.job("k") is None


def test_the_last_reader_who_leaves_stops_it_within_a_turn():
    jobs, script = comparisons(), Script(100)
    job = jobs.start("k", script, "a")
    job.watch("b")
    script.go.release()
    until(lambda: script.made == 1)
    job.leave("a")
    script.go.release()
    until(lambda: script.made == 2)
    assert job.watch("b").running
    job.leave("b")
    script.go.release()
    look = job.wait(10)
    assert not look.running
    assert look.value.cancelled
    assert script.made <= 3
    assert jobs.known("k") is None
    assert jobs.job("k") is None


def test_a_job_that_nobody_looks_at_pauses_and_goes_on(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.15)
    jobs, script = comparisons(), Script(3)
    job = jobs.start("k", script, "a")
    time.sleep(0.3)
    script.go.release(3)
    time.sleep(0.2)
    assert script.made == 1
    for _ in range(200):
        if not job.watch("a").running:
            break
        time.sleep(0.02)
    assert script.made == 3
    assert jobs.known("k").done


def test_paused_jobs_hold_up_nobody(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    jobs, left = comparisons(), [Script(3) for _ in range(AT_ONCE)]
    for index, script in enumerate(left):
        jobs.start(index, script, "a")
    time.sleep(0.1)  # longer than their reader is waited for: none begins a second turn
    for script in left:
        script.go.release()
    until(lambda: all(script.made == 1 for script in left))
    other = Script(1)
    job = jobs.start("other", other, "b")
    other.go.release()
    assert job.wait(10).value.done


def test_a_job_that_nobody_comes_back_to_ends(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    monkeypatch.setattr(module, "FORGET", 0.2)
    jobs, script = comparisons(), Script(3)
    job = jobs.start("k", script, "a")
    time.sleep(0.1)
    script.go.release(3)
    look = job.wait(10)
    assert look.value.cancelled
    assert script.made == 1


def test_a_fault_is_told_and_not_kept():
    def broken():
        raise Fault("no_columns")
        yield

    jobs = comparisons()
    look = jobs.start("k", broken, "a").wait(10)
    assert (look.running, look.fault.code, look.value) == (False, "no_columns", None)
    assert jobs.known("k") is None
    assert jobs.job("k") is None
    assert jobs.fault("k").code == "no_columns"
    jobs.retry("k")
    assert jobs.fault("k") is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_crash_is_a_sentence():
    def broken():
        yield found(1)
        raise ZeroDivisionError

    jobs = comparisons()
    job = jobs.start("k", broken, "a")
    assert job.wait(10).fault.code == "compare_failed"
    job.join(10)


def test_only_some_are_computed_at_a_time():
    jobs = comparisons()
    scripts = [Script(1) for _ in range(AT_ONCE + 1)]
    started = [jobs.start(i, script, "a") for i, script in enumerate(scripts)]
    until(lambda: sum(script.started for script in scripts) == AT_ONCE)
    time.sleep(0.05)
    assert sum(script.started for script in scripts) == AT_ONCE
    for script in scripts:
        script.go.release()
    assert all(not job.wait(10).running for job in started)


def test_work_that_knows_nothing_of_stopping_leaves_what_it_had():
    script = Script(5)

    def plain():
        for step in range(1, 6):
            assert script.go.acquire(timeout=10)
            yield found(step, done=step == 5)

    jobs = comparisons()
    job = jobs.start("k", plain, "a")
    script.go.release()
    until(lambda: job.look.value is not None)
    job.leave("a")
    script.go.release(4)
    look = job.wait(10)
    assert (look.running, look.fault) == (False, None)
    assert look.value.steps <= 2
    assert jobs.known("k") is None


def test_an_answer_can_be_forgotten():
    jobs = comparisons()
    jobs.start("k", lambda: iter_of(found(1, done=True)), "a").wait(10)
    assert jobs.known("k").done
    jobs.forget("k")
    assert jobs.known("k") is None


def iter_of(value):
    yield value


def test_a_patient_kind_of_job_goes_on_without_a_look(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    jobs, script = Jobs("lab_failed", size=size, kept_bytes=10**6, patience=30), Script(3)
    job = jobs.start("k", script, "a")
    time.sleep(0.05)
    script.go.release(3)
    assert not job.wait(10).running
    assert script.made == 3


def test_a_job_that_takes_long_keeps_nobody_waiting_for_its_end():
    """Whoever leaves a plain semaphore is mostly the first to enter it again."""
    jobs, order = Jobs("compare_failed", size=size, kept_bytes=10**6, at_once=1), []
    started = threading.Event()

    def taking(name):
        def turns():
            started.wait(10)
            for step in range(1, 31):
                time.sleep(0.002)
                order.append(name)
                yield found(step, done=step == 30)

        return turns

    both = [jobs.start(name, taking(name), "a") for name in "xy"]
    time.sleep(0.1)  # one waits at the gate when the other begins
    started.set()
    assert all(not job.wait(10).running for job in both)
    # Turn about, but for what one of them may do before the other has asked again.
    changes = sum(before != after for before, after in itertools.pairwise(order))
    assert changes >= 40


def experiments():
    return Jobs("lab_failed", size=size, kept_bytes=10**6, at_once=1, patience=30, one_by_one=True)


def test_one_experiment_after_the_other():
    jobs, scripts = experiments(), [Script(3) for _ in range(3)]
    started = [jobs.start(index, script, "a") for index, script in enumerate(scripts)]
    until(lambda: sum(script.started for script in scripts) >= 1)
    for script in scripts:
        script.go.release(2)
    until(lambda: scripts[0].made == 2)
    time.sleep(0.05)
    assert [script.made for script in scripts] == [2, 0, 0]
    assert [job.before for job in started] == [0, 1, 2]
    # What takes a second does not wait for them.
    quick = Script(1)
    quick.go.release()
    assert jobs.start("quick", quick, "a", beside=True).wait(10).value.done
    # Whoever waits can be stopped, and leaves the queue.
    started[1].leave("a")
    assert started[1].wait(10).value is None
    until(lambda: started[2].before == 1)
    scripts[0].go.release()
    scripts[2].go.release()
    assert all(started[index].wait(10).value.done for index in (0, 2))
    assert scripts[1].made == 0


def test_an_experiment_that_pauses_lets_others_through(monkeypatch):
    monkeypatch.setattr(module, "AWAY", 0.1)
    jobs, left, other = experiments(), Script(3), Script(1)
    job = jobs.start("left", left, "a")
    job.away("a")
    time.sleep(0.2)
    left.go.release(1)
    other.go.release()
    assert jobs.start("other", other, "b").wait(10).value.done
    assert left.made == 1
    job.watch("a")
    left.go.release(2)
    assert job.wait(10).value.done


def test_readers_whose_page_is_closed_hold_nothing_up(monkeypatch):
    open_pages = {"reloaded"}
    monkeypatch.setattr(module, "here", lambda who: who in open_pages)
    monkeypatch.setattr(module, "AWAY", 0.1)
    jobs, script = experiments(), Script(100)
    job = jobs.start("k", script, "before the reload")
    job.watch("reloaded")
    job.leave("reloaded")
    script.go.release()
    assert not job.wait(10).running
    assert script.made <= 1
    # Closed without a word: it pauses soon, however patient it is with readers.
    left = Script(100)
    job = jobs.start("left", left, "closed")
    time.sleep(0.2)
    left.go.release(5)
    until(lambda: left.made == 1)
    time.sleep(0.1)
    assert left.made == 1


def test_all_end_with_the_program():
    jobs, scripts = experiments(), [Script(100) for _ in range(2)]
    started = [jobs.start(index, script, "a") for index, script in enumerate(scripts)]
    for script in scripts:
        script.go.release()
    jobs.end()
    assert all(not job.look.running for job in started)
