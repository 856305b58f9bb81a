"""``lab quantize`` on the command line: the figures of the page, and how it refuses."""

import pytest

from core.amounts import in_bytes
from core.cli.lab_quantize import effect_record, speed_record
from core.cli.lab_quantize_lines import _setting_lines
from core.lab import quantize_recorded
from core.lab.machine import Machine
from core.lab.quantize_records import Effect, Point, Speed, Stored
from core.lab.timing import Spread

TINY = ("lab", "quantize", "--model", "tiny")


def test_one_setting(as_json):
    found = as_json(*TINY, "--bits", "4", "--span", "group", "--group", "32", "--asym", "hi")
    assert found["origin"] == {"tensors": 21, "weights": 36_384, "on_grids": []}
    setting = found["setting"]
    assert (setting["edit"], setting["really_stored"]) == ("bits:4:group:32:asym", False)
    # 18,432 weights in the layers: half a byte, and 4 bytes for each 32; the rest in 16 bits.
    linear, rest = 18_432, 36_384 - 18_432
    assert setting["quality"]["bytes"] == linear // 2 + linear // 32 * 4 + 2 * rest + 32
    assert 0.05 < setting["quality"]["kl"] < 1
    assert len(setting["layers"]) == 2
    assert setting["next_tokens"][0]["before"] >= setting["next_tokens"][1]["before"]


def test_a_group_means_groups_and_a_storage_is_really_stored(as_json):
    assert as_json(*TINY, "--group", "32")["setting"]["edit"] == "bits:4:group:32"
    found = as_json(*TINY, "--storage", "int4", "--group", "32", "--head")["setting"]
    assert (found["edit"], found["really_stored"]) == ("int4:32:head", True)
    assert found["quality"]["bytes"] < found["bytes_before"] / 2.5


def test_the_sweep_and_the_times(as_json):
    found = as_json(*TINY, "--sweep", "--speed", "--repeats", "1", "--asym")
    kls = [point["kl"] for point in found["sweep"]["points"]]
    assert kls == sorted(kls)
    assert found["sweep"]["points"][0]["edit"] == "bits:8:channel:asym"
    rows = {row["edit"]: row for row in found["speed"]["rows"]}
    assert rows[""]["step_ratio"] == rows[""]["bytes_ratio"] == 1
    assert rows["int8"]["bytes"] == 55_392
    assert "setting" not in found


def test_an_edit_comes_first(as_json):
    found = as_json(*TINY, "--edit", "neurons:0.25", "--bits", "8", "hi")
    assert found["model"] == "tiny#neurons:0.25"
    assert found["origin"]["weights"] < 36_384


def test_lines_for_people(cli, as_json):
    code, out, err = cli(*TINY, "--bits", "2", "hi")
    assert (code, err) == (0, "")
    assert "bits:2:channel (rounded)" in out
    # 18,432 weights of two bits with 16 bits a row; the other half of the model in 16 bits.
    codes = in_bytes(as_json(*TINY, "--bits", "2", "hi")["setting"]["quality"]["bytes"])
    assert (
        f"in memory: 146 kB, unchanged, because rounded weights are computed with as before · size "
        f"of such codes: {codes} (computed; embeddings and LM head, unless they are rounded too, "
        "in 16 bits)"
    ) in out.splitlines()
    assert "in memory: 146 kB → " in cli(*TINY, "--storage", "int8", "hi")[1]
    assert "before:" in out
    code, out, _ = cli(*TINY, "--sweep", "--speed", "--repeats", "1")
    assert code == 0
    assert "(as loaded)" in out
    assert "int8:head" in out


def test_what_is_measured_can_be_stored(as_json, tmp_path, monkeypatch):
    path = tmp_path / "recorded.json"
    monkeypatch.setattr(quantize_recorded, "FILE", path)
    monkeypatch.setattr(
        quantize_recorded, "record", lambda m, f, r=quantize_recorded.record: r(m, f, path)
    )
    short = quantize_recorded.recorded_settings()[:2]
    monkeypatch.setattr(quantize_recorded, "recorded_settings", lambda: short)
    quantize_recorded.recorded.cache_clear()
    as_json(*TINY, "--record", "--repeats", "1")
    quantize_recorded.recorded.cache_clear()
    first = quantize_recorded.recorded("tiny")
    assert [point.edit for point in first.sweep.points] == ["bits:8:tensor", "bits:7:tensor"]
    # The times alone, once more.
    as_json(*TINY, "--record", "--speed", "--repeats", "2")
    quantize_recorded.recorded.cache_clear()
    again = quantize_recorded.recorded("tiny")
    assert again.sweep == first.sweep
    assert again.speed.rows[0].step.repeats == 2
    quantize_recorded.recorded.cache_clear()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--bits", "1"), "from 2 to 8"),
        (("--bits", "four"), "bits"),
        (("--span", "layer"), "layer"),
        (("--group", "0"), "group"),
        (("--storage", "int3"), "int3"),
        (("--storage", "bits:4"), "bits:4"),
        (("--storage", "int4", "--group", "48"), "48"),
        (("--repeats", "0"), "repeats"),
        (("--edit", "int8"), "twice"),
        (("",), "prompt"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(cli, typed, said):
    code, out, err = cli(*TINY, *typed)
    assert (code, out) == (2, "")
    assert said.lower() in err.lower()
    assert "Traceback" not in err


def test_ratios_are_to_the_original_and_texts_stand_in_their_places(tiny):
    def stored(edit, nbytes, step, prefill):
        return Stored(edit, nbytes, Spread(step, 1, 9, 2), Spread(prefill, 1, 99, 2), True)

    rows = (stored("", 100, 4.0, 20.0), stored("int8", 25, 2.0, 40.0))
    machine = Machine("p", 1, 1, 1, "2", "cpu", "2026-12-01")
    first, second = speed_record(Speed(rows, (), 1, 2, 1, machine, 1.0, True))["rows"]
    assert (first["bytes_ratio"], first["step_ratio"], first["prefill_ratio"]) == (1, 1, 1)
    assert (second["bytes_ratio"], second["step_ratio"], second["prefill_ratio"]) == (0.25, 0.5, 2)
    ids = tiny.vocabulary.read("the thing").ids
    point = Point("bits:4:channel", 0.5, 0.75, 9.0, 10, 0.125, 2_000_000)
    effect = Effect(
        "bits:4:channel", False, point, 8.0, (), ids[:1], ids[1:], (), 4_000_000, machine, 1.0, True
    )
    found = effect_record(effect, tiny.vocabulary)
    texts = [tiny.vocabulary.text(part) for part in (ids[:1], ids[1:])]
    assert [found["text_before"], found["text_after"]] == texts
    said = "\n".join(_setting_lines(found))
    assert "KL 0.5 nats, same favourite 75.0%, perplexity 8 → 9 (10 positions)" in said
    assert "in memory: 4 MB, unchanged" in said
    assert "size of such codes: 2 MB" in said
    assert f"before: {texts[0]!r}\nafter:  {texts[1]!r}" in said
