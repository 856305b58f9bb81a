"""Worker processes end: when told to, when one fails, when nobody looks, when the parent dies."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from safetensors import SafetensorError

from core.faults import Fault
from core.lab.parallel import crew as crew_module
from core.lab.parallel.crew import Crew
from core.lab.parallel.folders import LEFTOVER, private_folder
from core.lab.parallel.tensor import tensor_turns

SOON = 10.0
SPEC = {"task": "tensor", "folder": "none", "dtype": "float32", "attention": "split"}


def gone(pids, within=SOON):
    """Whether all of these have ended and were reaped."""
    until = time.monotonic() + within
    while any(psutil.pid_exists(pid) for pid in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def started(crew):
    """A crew whose processes have been started, but have hardly begun."""
    turns = crew.begin()
    assert next(turns) == "start"
    assert len(crew.pids) == 2
    assert all(psutil.pid_exists(pid) for pid in crew.pids)
    return turns, crew.pids


def test_a_killed_rank_ends_all_with_one_sentence():
    with Crew([SPEC, SPEC]) as crew:
        turns, pids = started(crew)
        folder = crew.folder
        os.kill(pids[1], signal.SIGKILL)
        began = time.monotonic()
        with pytest.raises(Fault) as caught:
            list(turns)
        assert time.monotonic() - began < SOON
        assert caught.value.code == "rank_killed"
        assert caught.value.params == {"rank": 1, "ranks": 2, "signal": "SIGKILL"}
        assert "Worker 1 of 2" in str(caught.value)
    assert gone(pids)
    assert not folder.exists()


def test_a_rank_that_its_own_clock_ends_was_too_slow():
    with Crew([SPEC, SPEC], limit=77) as crew:
        turns, pids = started(crew)
        os.kill(pids[1], signal.SIGALRM)
        with pytest.raises(Fault) as fault:
            list(turns)
    assert (fault.value.code, fault.value.params) == ("ranks_too_slow", {"seconds": "77"})
    assert gone(pids)


def test_a_rank_that_hangs_is_not_waited_for():
    with Crew([SPEC, SPEC], patience=1.0) as crew:
        turns, pids = started(crew)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        with pytest.raises(Fault) as caught:
            list(turns)
        assert caught.value.code == "ranks_too_slow"
    assert gone(pids)


def test_workers_that_nobody_speaks_to_are_ended(monkeypatch):
    monkeypatch.setattr(crew_module, "IDLE", 0.2)
    with Crew([SPEC, SPEC]) as crew:
        turns = crew.attend(crew.begin())
        assert next(turns) == "start"
        pids = crew.pids
        # The page was left: the generator stands still.
        assert gone(pids)
        with pytest.raises(Fault) as caught:
            list(turns)
        assert caught.value.code == "ranks_left"


def test_the_next_crew_waits_for_its_turn():
    with Crew([SPEC, SPEC]) as first:
        _, pids = started(first)
        with Crew([SPEC, SPEC]) as second:
            waiting = second.begin()
            assert [next(waiting) for _ in range(2)] == ["wait", "wait"]
            assert second.pids == ()
            first.close()
            assert gone(pids)
            while (phase := next(waiting)) == "wait":
                continue
            assert phase == "start"
            pids = second.pids
    assert gone(pids)


def test_workers_do_not_outlive_a_parent_that_is_killed(tmp_path):
    script = (
        "import sys, time\n"
        "from core.lab.parallel.crew import Crew\n"
        f"crew = Crew([{SPEC!r}] * 2)\n"
        "next(crew.begin())\n"
        "print(*crew.pids, flush=True)\n"
        "time.sleep(60)\n"
    )
    root = Path(__file__).resolve().parents[1]
    parent = subprocess.Popen(
        [sys.executable, "-c", script], cwd=root, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    parent.kill()
    parent.wait()
    assert gone(pids)


def test_killing_a_rank_in_the_middle_of_the_work(tiny):
    """The others notice by their broken connection; the sentence names the one that was killed."""
    ids = tiny.vocabulary.read("the thing").ids
    turns = tensor_turns(tiny, "tiny", ids, 2)
    while (now := next(turns)).phase != "measure":
        assert not now.done
    (running,) = [crew for crew in crew_module._crews if crew.pids]
    pids = running.pids
    os.kill(pids[0], signal.SIGKILL)
    with pytest.raises(Fault) as caught:
        list(turns)
    assert len(pids) == 2
    assert caught.value.code == "rank_killed"
    assert caught.value.params["rank"] == 0
    assert gone(pids)


def test_stopping_ends_the_workers(tiny):
    turns = tensor_turns(tiny, "tiny", tiny.vocabulary.read("the").ids, 2)
    while next(turns).phase != "start":
        continue
    (running,) = [crew for crew in crew_module._crews if crew.pids]
    pids = running.pids
    turns.close()
    assert gone(pids)


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/secret/folder")


def full_to_safetensors(*_, **__):
    raise SafetensorError("I/O error: No space left on device (os error 28)")


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("tempfile.mkdtemp", full),
        ("safetensors.torch.save_file", full_to_safetensors),
        ("pathlib.Path.write_text", full),
    ],
)
def test_a_full_folder_for_temporary_files_is_a_sentence(place, error, tiny, monkeypatch):
    monkeypatch.setattr(place, error)
    with pytest.raises(Fault) as fault:
        list(tensor_turns(tiny, "tiny", [1, 2, 3], 2))
    assert fault.value.code == "temporary_unwritable"
    assert fault.value.params == {"reason": os.strerror(errno.ENOSPC)}


def test_what_a_worker_complains_of_is_told_and_not_where_its_files_are(tmp_path):
    with Crew([{**SPEC, "folder": str(tmp_path / "nowhere")}] * 2) as crew:
        list(crew.begin())
        with pytest.raises(Fault) as caught:
            list(crew.ask("load"))
        assert caught.value.code == "rank_failed"
        assert str(tmp_path) not in str(caught.value)


def test_what_a_killed_process_left_behind_goes(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    names = ("token-by-token-old", "token-by-token-new", "another-old")
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "kept").mkdir()
    (tmp_path / "token-by-token-link").symlink_to(tmp_path / "kept", target_is_directory=True)
    hours_ago = time.time() - 2 * LEFTOVER
    for name in ("token-by-token-old", "another-old", "kept"):
        os.utime(tmp_path / name, (hours_ago, hours_ago))
    os.utime(tmp_path / "token-by-token-link", (hours_ago, hours_ago), follow_symlinks=False)
    with private_folder() as made:
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {
            "token-by-token-new", "another-old", "kept", "token-by-token-link", Path(made).name
        }  # fmt: skip
    assert not Path(made).exists()
