"""The store: one load for everybody, a bounded number of models, failures that say why."""

import gc
import threading
import time
import weakref
from types import SimpleNamespace

import pytest

from core.engine import gone
from core.engine import store as module
from core.engine.store import ModelStore
from core.faults import Fault, NotReady


class Made:
    """An engine."""

    def __init__(self, entry):
        self.name = entry.name
        self.info = SimpleNamespace(bytes_in_memory=0 if entry.light else 10**9)


class Works:
    """A factory and a fetcher that can be held up, made to fail, and counted."""

    def __init__(self):
        self.built: list[str] = []
        self.fetched: list[str] = []
        self.on_disk = {"smollm2-135m", "tiny", "toy"}
        self.gate = threading.Event()
        self.gate.set()
        self.fault: Exception | None = None

    def factory(self, entry, progress):
        progress(0.5, "load")
        assert entry.light or self.gate.wait(10)
        if self.fault:
            raise self.fault
        self.built.append(entry.name)
        return Made(entry)

    def fetcher(self, entry, progress):
        progress(0.25, "download")
        assert self.gate.wait(10)
        if self.fault:
            raise self.fault
        self.fetched.append(entry.name)
        self.on_disk.add(entry.name)


@pytest.fixture
def works(monkeypatch):
    made = Works()
    monkeypatch.setattr(
        module,
        "state_on_disk",
        lambda entry: "ready" if entry.name in made.on_disk else "absent",
    )
    return made


@pytest.fixture
def store(works):
    return ModelStore(works.factory, fetcher=works.fetcher)


def ready(store, name, **options):
    store.request(name, **options)
    found = store.wait(name, 10)
    assert found.status == "ready", found
    return store.engine(name)


def until(store, name, **wanted):
    end = time.monotonic() + 10
    while time.monotonic() < end:
        state = store.state(name)
        if all(getattr(state, key) == value for key, value in wanted.items()):
            return state
        time.sleep(0.005)
    raise AssertionError(store.state(name))


def test_five_at_the_first_second_load_it_once(store, works):
    works.gate.clear()
    barrier, got = threading.Barrier(5), []

    def ask():
        barrier.wait()
        store.request("smollm2-135m")
        store.wait("smollm2-135m", 10)
        got.append(store.engine("smollm2-135m"))

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    until(store, "smollm2-135m", status="loading", progress=0.5)
    with pytest.raises(NotReady, match="still loading"):
        store.engine("smollm2-135m")
    works.gate.set()
    for thread in threads:
        thread.join(10)
    assert works.built == ["smollm2-135m"]
    assert len(got) == 5
    assert len({id(engine) for engine in got}) == 1


def test_two_spellings_of_an_edit_are_one_model(store, works):
    found = ready(store, "tiny#int4")
    assert store.state("tiny#int4:64").status == "ready"
    assert ready(store, "tiny#int4:64") is found
    assert store.wait("tiny#int4", 1).status == "ready"
    with store.using("tiny#int4") as used:
        assert used is found
    assert works.built == ["tiny#int4:64"]


def test_the_way_from_absent_to_ready(store, works):
    works.on_disk.clear()
    assert store.state("smollm2-135m") == module.ModelState("absent", message="not_fetched")
    with pytest.raises(NotReady, match="not loaded yet"):
        store.engine("smollm2-135m")
    works.gate.clear()
    assert store.request("smollm2-135m").status == "fetching"
    state = until(store, "smollm2-135m", status="fetching", progress=0.25)
    assert state.message == "download"
    works.gate.set()
    state = store.wait("smollm2-135m", 10)
    assert state == module.ModelState("ready", 1.0, "in_memory")
    assert works.fetched == works.built == ["smollm2-135m"]


def test_what_is_on_disk_is_not_fetched(store, works):
    assert store.state("smollm2-135m").message == "on_disk"
    ready(store, "smollm2-135m")
    assert works.fetched == []


def test_terms_come_first(store, works):
    assert store.state("gemma3-270m").message == "needs_terms"
    assert store.request("gemma3-270m").message == "needs_terms"
    assert store.request("org/name").message == "needs_terms"
    assert works.fetched == works.built == []
    ready(store, "gemma3-270m", accept_terms=True)
    assert works.fetched == ["gemma3-270m"]


def test_terms_are_not_asked_for_again(store, works):
    works.on_disk.add("gemma3-270m")
    ready(store, "gemma3-270m")


def test_the_one_used_longest_ago_is_let_go(works):
    store = ModelStore(works.factory, fetcher=works.fetcher, limit=2)
    works.on_disk |= {"gemma3-270m", "org/name"}
    first = ready(store, "smollm2-135m")
    ready(store, "gemma3-270m")
    assert store.engine("smollm2-135m") is first
    ready(store, "org/name")
    assert store.state("gemma3-270m") == module.ModelState("absent", message="on_disk")
    assert store.engine("smollm2-135m") is first
    ready(store, "gemma3-270m")
    assert works.built == ["smollm2-135m", "gemma3-270m", "org/name", "gemma3-270m"]


@pytest.fixture
def no_collector():
    """Nothing but what the store does unties a knot."""
    gc.disable()
    yield
    gc.enable()


def test_a_knot_that_was_let_go_of_gives_its_memory_back(works, no_collector):
    def knotted(entry, progress):
        engine = works.factory(entry, progress)
        engine.itself = engine
        return engine

    names = ["smollm2-135m", "gemma3-270m", "org/name"]
    works.on_disk.update(names)
    store = ModelStore(knotted, fetcher=works.fetcher, limit=1)
    ready(store, names[0])
    held = store.engine(names[0])
    first = weakref.ref(held)
    ready(store, names[1])
    second = weakref.ref(store.engine(names[1]))
    assert first() is not None
    del held
    # The next load fetches it, whoever was the last to hold it.
    ready(store, names[2])
    assert first() is None
    assert second() is None


def test_what_somebody_still_holds_is_looked_for_again_but_not_all_the_time(monkeypatch):
    looks, now = [], [100.0]
    monkeypatch.setattr(gone.gc, "collect", lambda: looks.append(now[0]))
    monkeypatch.setattr(gone.time, "monotonic", lambda: now[0])
    found = gone.Gone()
    found.collect()
    held = Made(SimpleNamespace(name="x", light=False))
    found.add(held)
    for now[0] in (101.0, 102.0, 101.0 + gone.PAUSE, 103.0 + gone.PAUSE):
        found.collect()
    assert looks == [101.0, 101.0 + gone.PAUSE]
    del held
    now[0] += 100
    found.collect()
    assert len(looks) == 2


def test_one_in_use_is_never_let_go(works):
    store = ModelStore(works.factory, fetcher=works.fetcher, limit=1)
    works.on_disk |= {"gemma3-270m", "org/name"}
    ready(store, "smollm2-135m")
    with store.using("smollm2-135m") as engine:
        ready(store, "gemma3-270m")
        ready(store, "org/name")
        assert store.engine("smollm2-135m") is engine
        assert store.state("gemma3-270m").status == "absent"
        # one more than the limit, for as long as it is in use
        assert store.state("org/name").status == "ready"
    assert store.state("org/name").status == "absent"
    assert store.engine("smollm2-135m") is engine


def test_models_stay_within_their_bytes_and_edited_copies_go_first(works):
    store = ModelStore(works.factory, fetcher=works.fetcher, memory=32 * 10**8)
    edited = "gemma3-270m#int8"
    works.on_disk |= {"gemma3-270m", edited, "gemma3-270m#bits:4:channel"}
    for name in ("smollm2-135m", "gemma3-270m", edited):
        ready(store, name)
    store.engine(edited)
    ready(store, "gemma3-270m#bits:4")
    assert store.state(edited).status == "absent"
    assert {store.state(name).status for name in ("smollm2-135m", "gemma3-270m")} == {"ready"}


def test_a_copy_that_does_not_fit_beside_its_original_says_so(works):
    store = ModelStore(works.factory, fetcher=works.fetcher, memory=15 * 10**8)
    copy = "smollm2-135m#bits:4:channel"
    works.on_disk |= {copy, "gemma3-270m"}
    original = ready(store, "smollm2-135m")
    for _ in range(3):
        store.request(copy)
        failed = store.wait(copy, 10)
        assert failed.fault.code == "copy_no_room"
        assert failed.fault.params["budget"] == 1500
        assert store.engine("smollm2-135m") is original
    assert works.built == ["smollm2-135m"]
    # It fits as soon as the original is gone.
    ready(store, "gemma3-270m")
    assert store.state("smollm2-135m").status == "absent"
    store.request(copy, retry=True)
    assert store.wait(copy, 10).status == "ready"


def test_a_model_larger_than_the_budget_is_kept_alone(works):
    store = ModelStore(works.factory, fetcher=works.fetcher, memory=1)
    works.on_disk.add("gemma3-270m")
    ready(store, "smollm2-135m")
    ready(store, "gemma3-270m")
    assert store.state("smollm2-135m").status == "absent"


def test_light_models_push_out_no_heavy_one(store, works):
    works.on_disk.add("gemma3-270m")
    ready(store, "smollm2-135m")
    ready(store, "gemma3-270m")
    ready(store, "tiny")
    ready(store, "toy")
    for name in ("smollm2-135m", "gemma3-270m", "tiny", "toy"):
        assert store.state(name).status == "ready"


def test_a_failure_stays_until_it_is_retried(store, works):
    works.on_disk.clear()
    works.fault = Fault("no_network", name="smollm2-135m")
    store.request("smollm2-135m")
    state = store.wait("smollm2-135m", 10)
    assert (state.status, state.message, state.fault.code) == ("failed", "failed", "no_network")
    with pytest.raises(Fault, match="go online") as first:
        store.engine("smollm2-135m")
    with pytest.raises(Fault) as second:
        store.engine("smollm2-135m")
    assert first.value is not second.value
    works.fault = None
    assert store.request("smollm2-135m").status == "failed"
    assert works.fetched == []
    ready(store, "smollm2-135m", retry=True)


def test_an_error_of_the_program_is_a_sentence_too(store, works, caplog):
    works.fault = RuntimeError("secret path")
    store.request("smollm2-135m")
    state = store.wait("smollm2-135m", 10)
    assert state.fault.code == "model_failed"
    assert "secret" not in str(state.fault)
    assert "secret path" in caplog.text


def test_a_failure_does_not_stop_another_model(store, works):
    works.fault = Fault("no_network", name="x")
    store.request("smollm2-135m")
    store.wait("smollm2-135m", 10)
    works.fault = None
    ready(store, "tiny")


def test_a_slow_download_does_not_hold_up_another_model(store, works):
    works.gate.clear()
    store.request("gemma3-270m", accept_terms=True)
    until(store, "gemma3-270m", progress=0.25)
    ready(store, "tiny")
    assert store.state("gemma3-270m").status == "fetching"
    works.gate.set()
    assert store.wait("gemma3-270m", 10).status == "ready"


def test_waiting_ends(store, works):
    works.gate.clear()
    store.request("smollm2-135m")
    start = time.monotonic()
    assert store.wait("smollm2-135m", 0.05).status == "loading"
    assert time.monotonic() - start < 5
    works.gate.set()


def test_names_that_are_no_models(store):
    for call in (store.state, store.request, store.engine, store.wait):
        with pytest.raises(Fault, match="There is no model"):
            call("nosuch")
    shut = ModelStore(local=False)
    with pytest.raises(Fault, match="does not open files"):
        shut.request("toy:/etc/hostname")


def test_failed_names_are_not_remembered_without_end(store, works):
    works.on_disk |= {f"org/m{n}" for n in range(30)}
    works.fault = Fault("no_network", name="x")
    for n in range(30):
        store.request(f"org/m{n}")
        store.wait(f"org/m{n}", 10)
    assert len(store._slots) <= module.LIGHT_LIMIT + 1


def test_the_real_thing():
    store = ModelStore()
    for name in ("tiny", "toy"):
        ready(store, name)
    assert store.engine("tiny").info.name == "tiny"
    assert store.engine("toy").info.name == "toy"
