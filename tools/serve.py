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

import psutil
from streamlit.web.cli import main as streamlit

from core.models.catalog import DEFAULT, resolve, state_on_disk
from ui.offline import no_lookups

ROOT = Path(__file__).resolve().parent.parent


def is_free(address: str, port: int) -> bool:
    """Whether a server may listen there. Raises PermissionError where only root may."""
    with socket.socket() as probe:
        # A port that a stopped server left in TIME_WAIT is free for Streamlit as well.
        if os.name != "nt":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except PermissionError:
            raise
        except OSError:
            return False
    return True


def room_addresses() -> list[str]:
    """IPv4 addresses at which others reach this computer, the likeliest first.

    All interfaces count: a laptop that is itself the room's hotspot is reached by another
    address than the one it uses for the internet. (Connecting a UDP socket sends nothing; it
    asks the system which way it would go.)
    """
    found: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))
        found.append(probe.getsockname()[0])
    for addresses in psutil.net_if_addrs().values():
        found += [a.address for a in addresses if a.family == socket.AF_INET]
    return [a for a in dict.fromkeys(found) if not a.startswith("127.")]


def fetch_default_model() -> None:
    """With the network gone and no model yet, the app still starts: it has a stored run."""
    if state_on_disk(resolve(DEFAULT)) == "ready":
        return
    fetch = [sys.executable, "-m", "core", "models", "fetch", DEFAULT]
    if subprocess.run(fetch, cwd=ROOT, check=False).returncode:
        print(
            f"The model {DEFAULT} could not be fetched, so the app starts without it and shows a "
            "stored run; fetch it later in the sidebar of the app.",
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
    for address in room or ():
        print(f"  For the class:  http://{address}:{port}", flush=True)
    if room:
        print("  Everybody on this network can now open it, without a password.")
    elif room is not None:
        print("  No address on a local network was found: connect this computer and start again.")
    print("  Stop it with Ctrl+C.\n", flush=True)


def a_port(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 65535:
        raise ValueError(text)
    return number


def refused(port: int, everywhere: bool) -> str | None:
    """Why no server can listen on the port, in a sentence; ``None``: it can."""
    try:
        if is_free("0.0.0.0" if everywhere else "127.0.0.1", port):
            return None
    except PermissionError:
        return f"Port {port} is for the system only; choose one from 1024 on, such as 8501."
    another = port + 1 if port < 65535 else 8501
    return f"Port {port} is taken by another program; choose another one, such as {another}."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", default="8501")
    parser.add_argument("--class", dest="room", action="store_true", help="open it to the network")
    choice = parser.parse_args()
    try:
        port = a_port(choice.port)
    except ValueError:
        print(
            f"The port {choice.port!r} is not a number from 1 to 65535; choose one, such as 8501."
        )
        return 2
    problem = refused(port, choice.room)
    if problem:
        print(problem)
        return 1
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    if choice.room:
        # Others must not open files of this computer as models.
        os.environ["TOKEN_BY_TOKEN_CLASS"] = "1"
    fetch_default_model()
    room = room_addresses() if choice.room else None
    announce(port, room)
    os.chdir(ROOT)
    no_lookups()
    headless = f"--server.headless={str(not has_screen()).lower()}"
    return int(streamlit(["run", "app.py", *options(port, room), headless], prog_name="streamlit"))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
