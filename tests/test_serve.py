"""How the app is started: for one person, and for a room."""

import socket
import subprocess
import sys
import tomllib
from collections import namedtuple

import pytest

from tools import serve

CONFIG = tomllib.loads((serve.ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


def test_one_person_is_served_on_this_computer_only():
    assert CONFIG["server"]["address"] == "127.0.0.1"
    assert CONFIG["server"]["allowedHosts"] == ["localhost", "127.0.0.1"]
    assert CONFIG["browser"]["gatherUsageStats"] is False
    assert CONFIG["client"]["showErrorDetails"] == "none"
    assert serve.options(8600, None) == ["--server.port=8600", "--logger.hideWelcomeMessage=true"]


def test_a_room_is_served_under_its_addresses_and_no_other_name(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "desk")
    flags = serve.options(8501, ["192.0.2.7", "198.51.100.9"])
    assert "--server.address=0.0.0.0" in flags
    assert "--browser.serverAddress=192.0.2.7" in flags
    hosts = [flag.partition("=")[2] for flag in flags if "allowedHosts" in flag]
    expected = ["localhost", "127.0.0.1", "192.0.2.7", "198.51.100.9", "desk", "desk.local"]
    assert hosts == expected


def test_addresses_of_the_room_are_not_loopback():
    for address in serve.room_addresses():
        assert not address.startswith("127.")


def test_a_taken_port_is_one_sentence():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert not serve.is_free("127.0.0.1", port)
        command = [sys.executable, "-m", "tools.serve", "--port", str(port)]
        ended = subprocess.run(
            command, cwd=serve.ROOT, capture_output=True, text=True, check=False, timeout=60
        )
    assert ended.returncode == 1
    another = port + 1 if port < 65535 else 8501
    sentence = f"Port {port} is taken by another program; choose another one, such as {another}.\n"
    assert ended.stdout == sentence


@pytest.mark.parametrize("port", ["0", "-5", "99999", "abc", "", "8501.5", "٨٥٠١" * 3])
def test_a_port_that_is_none_is_one_sentence(port):
    command = [sys.executable, "-m", "tools.serve", f"--port={port}"]
    ended = subprocess.run(
        command, cwd=serve.ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 2
    assert ended.stdout.count("\n") == 1
    assert "from 1 to 65535" in ended.stdout
    assert ended.stderr == ""


def test_a_port_of_the_system_is_one_sentence(monkeypatch):
    def bind(self, address):
        raise PermissionError

    monkeypatch.setattr(socket.socket, "bind", bind)
    assert serve.refused(80, False).startswith("Port 80 is for the system only")


def test_every_interface_counts_for_a_room(monkeypatch):
    """A laptop that is the room's hotspot: its other address is the one that matters."""
    Address = namedtuple("Address", "family address")
    found = {
        "lo": [Address(socket.AF_INET, "127.0.0.1")],
        "wlan0": [Address(socket.AF_INET, "10.42.0.1"), Address(socket.AF_INET6, "fe80::1")],
        "eth0": [Address(socket.AF_INET, "203.0.113.7")],
    }
    monkeypatch.setattr(serve.psutil, "net_if_addrs", lambda: found)
    assert {"10.42.0.1", "203.0.113.7"} <= set(serve.room_addresses())


def test_no_address_of_this_computer_is_asked_for_outside(monkeypatch):
    from streamlit import net_util

    from ui.offline import no_lookups

    def asked(*_, **__):
        pytest.fail("an outside service was asked")

    monkeypatch.setattr(net_util, "_make_blocking_http_get", asked)
    monkeypatch.setattr(net_util, "_external_ip", None)
    no_lookups()
    assert net_util.get_external_ip() == "127.0.0.1"


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_black_and_white():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_theme_can_be_read(theme):
    colours = CONFIG["theme"][theme]
    grounds = [colours["backgroundColor"], colours["secondaryBackgroundColor"]]
    grounds += [colours["sidebar"][k] for k in ("backgroundColor", "secondaryBackgroundColor")]
    for ground in grounds:
        for ink in ("textColor", "linkColor", "grayTextColor"):
            assert contrast(colours[ink], ground) >= 4.5, (ink, ground)
    assert contrast(colours["primaryColor"], "#ffffff") >= 4.5
    for scale in ("chartCategoricalColors", "chartSequentialColors", "chartDivergingColors"):
        # With any other number Plotly ignores them.
        assert len(set(colours[scale])) == 10
