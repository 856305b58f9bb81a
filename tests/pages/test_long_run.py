"""A link to many steps: made in turns, stopped between two of them."""

import pytest

from tests.pages.app import healthy, open_app, query_of
from ui import long_run
from ui.i18n import catalog

LONG = {"model": "tiny", "strategy": "greedy", "max": "12", "made": "12"}


def progress(at):
    return [p.proto.text for p in at.get("progress")]


def drawn(at):
    return any(b.proto.component_name == "tbt_strip" for b in at.get("bidi_component"))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_it_can_be_stopped_and_keeps_what_is_made(monkeypatch, lang):
    monkeypatch.setattr(long_run, "MANY", 5)
    monkeypatch.setattr(long_run, "TURN", 0)
    at = open_app("6_Generate", prompt=f"a long thing {lang}", lang=lang, **LONG)
    t = catalog(lang)
    assert progress(at) == [t("frame.computing", step=1, steps=12)]
    assert not drawn(at)
    healthy(at.run())
    assert progress(at) == [t("frame.computing", step=2, steps=12)]
    assert query_of(at)["made"] == "12"
    assert at.button(key="long_run_stop").label == t("frame.computing_stop")
    healthy(at.button(key="long_run_stop").click().run())
    assert query_of(at)["made"] == "2"
    assert progress(at) == []
    assert drawn(at)


def test_it_comes_to_its_end(monkeypatch):
    monkeypatch.setattr(long_run, "MANY", 5)
    monkeypatch.setattr(long_run, "TURN", 0)
    at = open_app("6_Generate", prompt="the whole long thing", lang="en", **LONG)
    seen = 1
    while progress(at):
        assert seen < 12
        seen += 1
        healthy(at.run())
    assert seen == 12
    assert drawn(at)
    assert query_of(at)["made"] == "12"


def test_short_runs_are_made_at_once(monkeypatch):
    monkeypatch.setattr(long_run, "TURN", 0)
    at = open_app("6_Generate", prompt="a short thing", lang="en", **LONG)
    assert progress(at) == []
    assert drawn(at)
