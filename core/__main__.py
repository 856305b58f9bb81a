"""``python -m core``: the same core without a browser, for scripts and checks."""

import os
import sys

# Before torch is imported: its threads would otherwise spin while they wait (ARCHITECTURE.md).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from core.cli.main import main

if __name__ == "__main__":
    # In a plain ASCII locale Python hides the bytes of 法国 in surrogates; they are UTF-8.
    sys.exit(main([os.fsencode(a).decode("utf-8", "surrogateescape") for a in sys.argv[1:]]))
