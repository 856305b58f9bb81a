"""Where results go: the screen or a file, as JSON that every reader can read."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any, TextIO

from core.faults import Fault


def safe(value: Any) -> Any:
    """The same value with ``None`` for NaN and infinities, which JSON doesn't have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [safe(item) for item in value]
    return value


def check_target(target: str | None) -> None:
    """Find out before the work whether the result can be written. Raises Fault if not."""
    if target in (None, "-"):
        return
    if not target:
        raise Fault("json_unwritable", name=target, reason="its name is empty")
    path = Path(target)
    folder = path.parent
    try:
        kind = "a folder" if path.is_dir() else "a file"
    except OSError as error:  # too long a name, a folder that may not be looked into
        raise Fault("json_unwritable", name=target, reason=error.strerror) from None
    if kind == "a folder":
        reason = "it is a folder"
    elif not folder.is_dir():
        reason = "its folder does not exist"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        reason = "writing is not permitted"
    else:
        return
    raise Fault("json_unwritable", name=target, reason=reason)


def write_json(content: Any, target: str) -> None:
    """Write to the file ``target``, or to the screen for ``-``. Raises Fault when that fails."""
    text = json.dumps(safe(content), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise Fault("json_unwritable", name=target, reason=error.strerror) from None


def any_terminal() -> None:
    """Print every character everywhere: half of one becomes ``\\udce9``, legal JSON too."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def check_screen() -> None:
    """Have a stderr at all; raise Fault where there is no stdout (``>&-``)."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    if sys.stdout is None:
        raise Fault("screen_unwritable", reason="it is closed")


def say(sentence: object) -> None:
    """One line on stderr; where that is not possible either, the exit code has to do."""
    try:
        print(sentence, file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Let what could not be written go, so that the interpreter doesn't try it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
