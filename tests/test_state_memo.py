"""What readers share: choices are remembered per engine, within a budget of bytes."""

import json

from core.engine.toy import open_toy
from core.settings import Settings
from ui import state


def test_two_tables_in_files_of_one_name_are_two_models(tmp_path):
    chosen = []
    for folder, row in (("one", [1, 0]), ("two", [0, 1])):
        path = tmp_path / folder / "table.json"
        path.parent.mkdir()
        path.write_text(json.dumps({"vocab": ["a", "b"], "next": {"*": row}}), encoding="utf-8")
        engine = open_toy(path)
        ids = engine.vocabulary.read("x").ids
        for _ in range(2):
            choice = state.remembered_choice(engine.forward(ids), Settings(), 0, engine)
        chosen.append(choice.id)
    assert chosen == [0, 1]


def test_a_long_text_weighs_more_in_the_memo(tiny):
    before = state._choices().used
    state.remembered_choice(tiny.forward([1] * 500), Settings(), 0, tiny)
    assert state._choices().used - before > 8 * 500
