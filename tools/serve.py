"""Starts the app: fetches the default model the first time, then opens the page.

``make run`` and ``make class`` call it; on Windows it is called by hand (see README).
Nothing here imports torch, so the page is up long before the model is loaded.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

from core.models.catalog import DEFAULT, resolve, state_on_disk

ROOT = Path(__file__).resolve().parent.parent


def is_free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        # A port that a stopped server left in TIME_WAIT is free for Streamlit as well.
        if os.name != "nt":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def room_addresses() -> list[str]:
    """IPv4 addresses at which others on the local network reach this computer, best first.

    Connecting a UDP socket sends nothing; it asks the system which way it would go.
    """
    found: list[str] = []
    for target in ("192.0.2.1", "10.255.255.255", "172.31.255.255", "192.168.255.255"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((target, 9))
            except OSError:
                continue
            found.append(probe.getsockname()[0])
    with contextlib.suppress(OSError):
        found += socket.gethostbyname_ex(socket.gethostname())[2]
    return [a for a in dict.fromkeys(found) if not a.startswith("127.")]


def fetch_default_model() -> None:
    """With the network gone and no model yet, the app still starts: it has a stored run."""
    if state_on_disk(resolve(DEFAULT)) == "ready":
        return
    fetch = [sys.executable, "-m", "core", "models", "fetch", DEFAULT]
    if subprocess.run(fetch, cwd=ROOT, check=False).returncode:
        print(
            f"The model {DEFAULT} could not be fetched, so the app starts without it and shows a "
            "stored run; fetch it later in the app or with 'make models'.",
            flush=True,
        )


def options(port: int, room: list[str] | None) -> list[str]:
    """Streamlit's flags besides .streamlit/config.toml. ``room``: addresses of a class run."""
    flags = [f"--server.port={port}", "--logger.hideWelcomeMessage=true"]
    if room is None:
        return flags
    hosts = ["localhost", "127.0.0.1", *room, socket.gethostname(), socket.gethostname() + ".local"]
    flags += ["--server.address=0.0.0.0", *(f"--browser.serverAddress={a}" for a in room[:1])]
    return flags + [f"--server.allowedHosts={host}" for host in dict.fromkeys(hosts)]


def has_screen() -> bool:
    if os.environ.get("CI") or not sys.stdout.isatty():
        return False
    return sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


def announce(port: int, room: list[str] | None) -> None:
    print(f"\n  Token by Token: http://localhost:{port}", flush=True)
    if room is not None:
        for address in room:
            print(f"  For the class:  http://{address}:{port}", flush=True)
        if not room:
            print("  No address on a local network was found: is this computer connected?")
        print("  Everybody on this network can now open it, without a password.")
    print("  Stop it with Ctrl+C.\n", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--class", dest="room", action="store_true", help="open it to the network")
    choice = parser.parse_args()
    if not is_free("0.0.0.0" if choice.room else "127.0.0.1", choice.port):
        another = choice.port + 1
        print(f"Port {choice.port} is taken by another program. Try: make run PORT={another}")
        return 1
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    if choice.room:
        # Others must not open files of this computer as models.
        os.environ["TOKEN_BY_TOKEN_CLASS"] = "1"
    fetch_default_model()
    room = room_addresses() if choice.room else None
    announce(choice.port, room)
    command = [sys.executable, "-m", "streamlit", "run", "app.py", *options(choice.port, room)]
    command.append(f"--server.headless={str(not has_screen()).lower()}")
    os.chdir(ROOT)
    if os.name == "nt":
        return subprocess.run(command, check=False).returncode
    os.execv(sys.executable, command)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
