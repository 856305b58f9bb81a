"""Run all Python tests: those with a browser beside those without, which halves the wait.

    python -m tools.tests [options of pytest]

The exit code is 0 only if both halves passed. The output of the second half follows the first's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

HALVES: Final = ("not browser", "browser")
NICE: Final = 5


def main(options: list[str]) -> int:
    """The worst exit code of pytest."""
    command = [sys.executable, "-m", "pytest", *options]
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "browser.txt"
        with said.open("wb") as log:
            other = subprocess.Popen(
                [*command, "-m", HALVES[1]], stdout=log, stderr=subprocess.STDOUT
            )
            try:
                # A browser waits for answers, and would wait long behind what only computes.
                gentle = (lambda: os.nice(NICE)) if hasattr(os, "nice") else None
                computing = [*command, "-m", HALVES[0]]
                first = subprocess.run(computing, preexec_fn=gentle, check=False).returncode
                second = other.wait()
            finally:
                other.kill()
        print(said.read_text(encoding="utf-8", errors="replace"))
    return max(first, second)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
