"""One worker process: ``python -m core.lab.parallel.worker SPEC.json``.

It is told what to do line by line on its standard input, as JSON, and answers each line with one
line on its standard output; arrays travel as files. It ends when its input ends (so it cannot
outlive the process that started it), when its time is over, or at the first failure.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Final, Protocol, TextIO

# Before torch is imported: its threads would otherwise spin while they wait (ARCHITECTURE.md).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

TASKS: Final = ("tensor", "stage", "whole")


class Task(Protocol):
    def do(self, what: str, asked: dict[str, Any]) -> dict[str, Any]:
        """Carry out one command and say what came of it, in plain values."""


def main(path: str) -> int:
    """Serve until the input ends. Returns the exit code."""
    spec: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    answers = _own_output()
    _end_after(spec["limit"])
    commands: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    try:
        task = _task(spec)
        _say(answers, {"ready": True})
        while True:
            asked = commands.get()
            _say(answers, task.do(str(asked.pop("do")), asked))
    except MemoryError:
        _say(answers, {"failed": "memory"})
    except Exception as error:
        import traceback  # noqa: PLC0415 - only for the log

        traceback.print_exc()
        memory = "out of memory" in str(error).lower() or "alloc" in str(error).lower()
        _say(answers, {"failed": "memory" if memory else type(error).__name__})
    return 1


def _own_output() -> TextIO:
    """Standard output for answers alone: what libraries print goes to standard error."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return own


def _say(answers: TextIO, answer: dict[str, Any]) -> None:
    try:
        print(json.dumps(answer), file=answers, flush=True)
    except BrokenPipeError:
        os._exit(0)


def _end_after(seconds: float) -> None:
    """The system ends the process then, whatever it is doing."""
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
    # Ctrl-C in a terminal is the starter's business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _listen(commands: queue.SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        commands.put(json.loads(line))
    # Nobody is left to answer to. Other threads may be waiting inside a library.
    os._exit(0)


def _task(spec: dict[str, Any]) -> Task:
    # The imports take seconds and come after the listener, which must hear the end at once.
    if spec["task"] == "tensor":
        from core.lab.parallel.tensor_worker import TensorTask  # noqa: PLC0415

        return TensorTask(spec)
    if spec["task"] == "stage":
        from core.lab.parallel.stage_worker import StageTask  # noqa: PLC0415

        return StageTask(spec)
    from core.lab.parallel.whole_worker import WholeTask  # noqa: PLC0415

    return WholeTask(spec)


if __name__ == "__main__":
    code = main(sys.argv[1])
    # Threads of torch.distributed may wait for ranks that are gone.
    sys.stderr.flush()
    os._exit(code)
