"""What the sidebar says of a model that is ready."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from core.models.catalog import CATALOGUE
from ui import model_card
from ui.figures.words import in_bytes
from ui.i18n import catalog


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("edit", ["", "#neurons:0.1"])
def test_the_bits_of_the_file_are_never_taken_for_the_edit(lang, edit, tiny, monkeypatch):
    said, t = [], catalog(lang)
    engines = SimpleNamespace(engine=lambda name: tiny)
    monkeypatch.setattr(model_card.state, "store", lambda: engines)
    monkeypatch.setattr(model_card.st, "caption", said.append)
    plain = CATALOGUE["smollm2-135m"]
    model_card._ready(t, replace(plain, name=plain.name + edit))
    key = "frame.model_note_bits_before" if edit else "frame.model_note_bits"
    size = in_bytes(plain.bytes_download)
    note = t(key, bits=plain.source_bits, download=size, dtype=tiny.info.dtype)
    assert said[1:] == [note]
