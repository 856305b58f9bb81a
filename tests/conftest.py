"""Engines for all tests, loaded once, and no network.

The real models must have been fetched (``make models``). Where one is missing its tests are
skipped by hand and fail in CI, so that a green run always means that they ran.
"""

import os

os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"

import ipaddress
import json
import socket
import sys

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "here", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("here")


def pytest_collection_modifyitems(items):
    """Browser tests last: Playwright's event loop stays in this thread until the end."""
    items.sort(key=lambda item: "tests/browser" in item.nodeid)
    for item in items:
        if "tests/browser" in item.nodeid:
            item.add_marker(pytest.mark.browser)


def _stays_here(address) -> bool:
    if not isinstance(address, tuple):
        return True  # a file, not a network
    try:
        return ipaddress.ip_address(address[0]).is_loopback
    except ValueError:
        return address[0] == "localhost"


def _no_network(event, args):
    if event == "socket.connect" and not _stays_here(args[1]):
        # Connecting a UDP socket sends nothing: so a computer learns its own address.
        if args[0].type & socket.SOCK_DGRAM:
            return
        raise ConnectionRefusedError(f"a test tried to reach {args[1]}")


sys.addaudithook(_no_network)


def _fetched(name: str) -> str:
    from core.models.catalog import resolve, state_on_disk

    if state_on_disk(resolve(name)) != "ready":
        message = f"{name} is not on this machine: make models"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return name


def _engine(name: str):
    from core.engine.local import LocalEngine
    from core.models.load import load

    return LocalEngine(load(name, device="cpu", dtype="float32"))


@pytest.fixture(scope="session")
def tiny():
    """The random two-layer Llama: real in everything but its text."""
    return _engine("tiny")


@pytest.fixture(scope="session")
def default_model():
    """The name of the default model, which is on this machine."""
    return _fetched("smollm2-135m")


@pytest.fixture(scope="session")
def smollm2(default_model):
    """The default model."""
    return _engine(default_model)


@pytest.fixture(scope="session")
def gemma3_name():
    """The name of the multilingual model, which is on this machine."""
    return _fetched("gemma3-270m")


@pytest.fixture(scope="session")
def gemma3(gemma3_name):
    """The multilingual model, with sliding windows."""
    return _engine(gemma3_name)


@pytest.fixture
def cli(capsys):
    """Runs the command line in this process: exit code, stdout, stderr."""
    from core.cli.main import main

    def call(*argv):
        code = main(list(argv))
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def as_json(cli):
    """What a command that succeeds prints as JSON; NaN and Infinity are none."""

    def call(*argv):
        code, out, err = cli(*argv, "--json", "-")
        assert (code, err) == (0, "")
        return json.loads(out, parse_constant=_no_constant)

    return call


def _no_constant(name):
    raise AssertionError(f"{name} is no JSON")
